/* SPDX-License-Identifier: Apache-2.0 */
/* See child_plan.h. */
#define _GNU_SOURCE /* environ */
#include "Child/child_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Child/child_kernel.h"
#include "Support/invariant.h"

/* ---- the files ---- */

/* The part of PATH that begins at `*path`, whose end it moves on; NULL behind the last one. */
static const char *take_folder(const char **path, size_t *ret_length)
{
    const char *begin = *path;

    if (!begin) {
        return NULL;
    }
    *ret_length = strcspn(begin, ":");
    *path = begin[*ret_length] ? begin + *ret_length + 1 : NULL;
    return begin;
}

/* Lists `file` in each folder of `path`, or itself if `path` is NULL. Returns a block, or NULL if there is no memory. */
static const char **list_files(const char *file, const char *path)
{
    size_t file_size = strlen(file) + 1;
    size_t count = 1;
    size_t length;
    const char **files;
    char *text;

    for (const char *p = path; p && *p; p++) {
        count += *p == ':';
    }
    files = malloc((count + 1) * sizeof *files + (path ? strlen(path) : 0) + count * (file_size + 1));
    if (!files) {
        return NULL;
    }
    text = (char *)(files + count + 1);
    for (size_t i = 0; i < count; i++) {
        const char *folder = take_folder(&path, &length);

        files[i] = text;
        if (folder && length > 0) {
            memcpy(text, folder, length);
            text += length;
            *text++ = '/';
        }
        memcpy(text, file, file_size);
        text += file_size;
    }
    files[count] = NULL;
    return files;
}

/* As execvp: a name without a slash is looked for. */
static const char **files_of(const CRLChildSpecification *specification)
{
    const char *file = specification->file ? specification->file : specification->arguments[0];
    const char *path = strchr(file, '/') || !*file ? NULL : getenv("PATH");

    return list_files(file, strchr(file, '/') || !*file ? NULL : path ? path : "/bin:/usr/bin");
}

/* ---- the descriptors ---- */

static int compare_slots(const void *one, const void *other)
{
    int first = ((const struct child_slot *)one)->number;
    int second = ((const struct child_slot *)other)->number;

    return (first > second) - (first < second);
}

static struct child_slot *slot_at(const struct child_plan *plan, int number)
{
    struct child_slot wanted = {.number = number};

    return bsearch(&wanted, plan->slots, plan->slot_count, sizeof *plan->slots, compare_slots);
}

/* Is called in the child: no call of the C library. */
bool child_plan_has(const struct child_plan *plan, int number)
{
    size_t low = 0;
    size_t high = plan->slot_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (plan->slots[middle].number == number) {
            return true;
        }
        if (plan->slots[middle].number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

static bool slots_make_sense(const struct child_plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++) {
        const struct child_slot *slot = &plan->slots[i];
        const struct child_slot *same = slot->kind == kCRLChildSame ? slot_at(plan, slot->asked) : NULL;

        if (slot->number < 0 || slot->kind > kCRLChildReads || (i > 0 && slot[-1].number == slot->number) ||
            (slot->kind == kCRLChildSame && (!same || same->kind == kCRLChildSame)) || (slot->kind == kCRLChildGiven && slot->asked < 0)) {
            return false;
        }
    }
    return true;
}

/* Takes the list, and adds 0, 1 and 2 where they are missing. */
static int take_slots(struct child_plan *plan, const CRLChildDescriptor *listed, size_t count)
{
    struct child_slot *slots = calloc(count + STDERR_FILENO + 1, sizeof *slots);

    if (!slots) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        slots[i] = (struct child_slot){listed[i].number, listed[i].kind, listed[i].descriptor, -1, -1, -1, false};
    }
    plan->slots = slots;
    plan->slot_count = count;
    qsort(slots, count, sizeof *slots, compare_slots);
    for (int number = STDIN_FILENO; number <= STDERR_FILENO; number++) {
        if (!child_plan_has(plan, number)) {
            slots[plan->slot_count++] = (struct child_slot){number, kCRLChildNothing, -1, -1, -1, -1, false};
            qsort(slots, plan->slot_count, sizeof *slots, compare_slots);
        }
    }
    return slots_make_sense(plan) ? 0 : -EINVAL;
}

/* ---- making ---- */

static bool specification_makes_sense(const CRLChildSpecification *specification)
{
    return specification && specification->version == 0 && specification->arguments && specification->arguments[0] &&
           specification->descriptorCount >= 0 && specification->limitCount >= 0 && specification->group >= -1 &&
           (specification->descriptors || specification->descriptorCount == 0) &&
           (specification->limits || specification->limitCount == 0) && !(specification->startsSession && specification->group > 0);
}

int child_plan_make(struct child_plan *plan, const CRLChildSpecification *specification)
{
    const CRLChildSpecification *s = specification;
    int result;

    if (!specification_makes_sense(s)) {
        return -EINVAL;
    }
    *plan = (struct child_plan){
        .files = files_of(s),
        .arguments = s->arguments,
        .environment = s->environment ? s->environment : (const char *const *)environ,
        .folder = s->folder,
        .limits = s->limits,
        .limit_count = (size_t)s->limitCount,
        .group = s->group,
        .starts_session = s->startsSession,
        .report = -1,
    };
    result = plan->files ? take_slots(plan, s->descriptors, (size_t)s->descriptorCount) : -ENOMEM;
    if (result < 0) {
        child_plan_free(plan);
    }
    return result;
}

static int open_slot(struct child_slot *slot)
{
    int ends[2];
    int result;

    switch (slot->kind) {
    case kCRLChildNothing:
        result = child_kernel.null_open();
        slot->source = result < 0 ? -1 : result;
        slot->closes_source = result >= 0;
        return result < 0 ? result : 0;
    case kCRLChildGiven:
        slot->source = slot->asked;
        return 0;
    case kCRLChildSame:
        return 0;
    default:
        result = child_kernel.pipe_create(ends, slot->kind == kCRLChildReads);
        if (result == 0) {
            slot->source = ends[slot->kind == kCRLChildWrites];
            slot->program_end = ends[slot->kind == kCRLChildReads];
            slot->closes_source = true;
        }
        return result;
    }
}

int child_plan_open(struct child_plan *plan)
{
    int result = 0;

    for (size_t i = 0; i < plan->slot_count && result == 0; i++) {
        result = open_slot(&plan->slots[i]);
    }
    for (size_t i = 0; i < plan->slot_count && result == 0; i++) {
        if (plan->slots[i].kind == kCRLChildSame) {
            plan->slots[i].source = slot_at(plan, plan->slots[i].asked)->source;
        }
        invariant(plan->slots[i].source >= 0);
    }
    return result;
}

void child_plan_close_sources(struct child_plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++) {
        if (plan->slots[i].closes_source) {
            child_kernel.close(plan->slots[i].source);
            plan->slots[i].closes_source = false;
        }
    }
}

void child_plan_free(struct child_plan *plan)
{
    child_plan_close_sources(plan);
    for (size_t i = 0; i < plan->slot_count; i++) {
        if (plan->slots[i].program_end >= 0) {
            child_kernel.close(plan->slots[i].program_end);
        }
    }
    free(plan->slots);
    free((void *)(uintptr_t)plan->files);
}
