/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors, counters, alarms and wait sets; see files.h. */
#include "files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler.h"
#include "tables.h"

static struct file *tables[processes_max][descriptors_max];
static struct file *sets; /* all of them */
static int limit = descriptors_max;
static bool slow_may_be_closed; /* by the simulated kernel itself: nobody could close it elsewhere */
static __thread int slow_closes;

/* ---- descriptors ---- */

static struct file **own_table(void)
{
    return tables[scheduler_process()->number];
}

int descriptor_limit(void)
{
    return limit;
}

bool descriptor_is_left(void)
{
    for (int i = first_descriptor; i < limit; i++) {
        if (!own_table()[i]) {
            return true;
        }
    }
    return false;
}

struct file *file_of(int descriptor)
{
    return descriptor >= 0 && descriptor < descriptors_max ? own_table()[descriptor] : NULL;
}

struct file *file_create(enum file_kind kind)
{
    struct file *file = calloc(1, sizeof *file);

    if (!file) {
        scheduler_fail("the simulation has no memory");
    }
    file->kind = kind;
    file->references = 1;
    file->tail = &file->queue;
    file->owner = scheduler_process()->number;
    file->changed_ns = scheduler_now_ns();
    file->deadline_ns = kernel_never;
    if (kind == file_set) {
        file->next_set = sets;
        sets = file;
    }
    return file;
}

void file_retain(struct file *file)
{
    file->references++;
}

static void drop_items(struct file *set, const struct file *file)
{
    for (struct watch_item **place = &set->items; *place;) {
        struct watch_item *item = *place;

        if (!file || item->file == file) {
            *place = item->next;
            free(item);
        } else {
            place = &item->next;
        }
    }
}

static void note_slow_close(void)
{
    if (slow_may_be_closed) {
        return;
    }
    if (!tables_may_close_slowly()) {
        scheduler_fail("a thread of the program waits in the close of what a peer has sent");
    }
    slow_closes++;
}

int slow_make(void)
{
    return file_install(file_create(file_slow));
}

void slow_allow(bool may_be_closed)
{
    slow_may_be_closed = may_be_closed;
}

int slow_take_closes(void)
{
    int result = slow_closes;

    slow_closes = 0;
    return result;
}

/* The last reference has gone: so has every watch on it. */
static void destroy(struct file *file)
{
    for (struct file *set = sets; set; set = set->next_set) {
        drop_items(set, file);
    }
    if (file->kind == file_set) {
        struct file **place = &sets;

        drop_items(file, NULL);
        while (*place != file) {
            place = &(*place)->next_set;
        }
        *place = file->next_set;
    }
    if (file->kind == file_datagram || file->kind == file_channel) {
        socket_closed(file);
    }
    if (file->kind == file_stream) {
        stream_closed(file);
    }
    if (file->kind == file_slow) {
        note_slow_close();
    }
    if (file->node) {
        if (file->node->locker == file) {
            file->node->locker = NULL;
        }
        node_release(file->node);
    }
    free(file->bytes);
    free(file);
}

void file_release(struct file *file)
{
    if (--file->references == 0) {
        destroy(file);
    }
}

int file_install(struct file *file)
{
    struct file **table = own_table();

    for (int i = first_descriptor; i < limit; i++) {
        if (!table[i]) {
            table[i] = file;
            return i;
        }
    }
    file_release(file);
    return -EMFILE;
}

int file_close(int descriptor)
{
    struct file *file = file_of(descriptor);

    if (!file) {
        return -EBADF;
    }
    own_table()[descriptor] = NULL;
    file_release(file);
    return 0;
}

int file_duplicate(int descriptor)
{
    struct file *file = file_of(descriptor);

    if (!file) {
        return -EBADF;
    }
    file_retain(file);
    return file_install(file);
}

int file_replace_number(int from, int number)
{
    struct file *file = file_of(from);
    struct file *old = file_of(number);

    if (!file || number < 0 || number >= limit) {
        return -EBADF;
    }
    file_retain(file);
    own_table()[number] = file;
    if (old) {
        file_release(old);
    }
    return number;
}

bool files_drain_dead(void)
{
    for (int i = 0; i < processes_max; i++) {
        for (int k = 0; scheduler_processes[i].has_died && k < descriptors_max; k++) {
            struct file *file = tables[i][k];

            if (file) {
                tables[i][k] = NULL;
                slow_allow(true); /* nobody waits */
                file_release(file);
                slow_allow(false);
                return true;
            }
        }
    }
    return false;
}

int files_open(int process, const char **ret_first)
{
    static const char *const kinds[] = {"a counter", "an alarm", "a wait set", "a datagram socket",
                                        "a channel",    "memory",   "a file",     "a stream", "a file that closes slowly"};
    int count = 0;

    for (int i = 0; i < descriptors_max; i++) {
        const struct file *file = tables[process][i];

        if (file && count++ == 0) {
            *ret_first = kinds[file->kind];
        }
    }
    return count;
}

int64_t files_next_alarm_ns(void)
{
    int64_t next_ns = streams_next_ns();

    for (int i = 0; i < processes_max; i++) {
        for (int k = 0; k < descriptors_max; k++) {
            const struct file *file = tables[i][k];

            if (file && file->kind == file_alarm && file->deadline_ns > scheduler_now_ns() && file->deadline_ns < next_ns) {
                next_ns = file->deadline_ns;
            }
        }
    }
    return next_ns;
}

/* ---- counters and alarms ---- */

void files_begin(size_t datagrams, int descriptors)
{
    datagrams_max = datagrams;
    limit = descriptors;
    nodes_begin();
}

static struct file *file_of_kind(int descriptor, enum file_kind kind)
{
    struct file *file = file_of(descriptor);

    return file && file->kind == kind ? file : NULL;
}

int counter_create(void)
{
    return file_install(file_create(file_counter));
}

int counter_add(int descriptor)
{
    struct file *file = file_of_kind(descriptor, file_counter);

    if (!file) {
        return -EBADF;
    }
    file->count++;
    file_stir(file);
    return 0;
}

int counter_renew(int descriptor)
{
    struct file *old = file_of_kind(descriptor, file_counter);

    if (!old) {
        return -EBADF;
    }
    own_table()[descriptor] = file_create(file_counter);
    file_release(old);
    return 0;
}

int counter_take(int descriptor)
{
    struct file *file = file_of(descriptor);

    if (!file) {
        return -EBADF;
    }
    if (file->kind == file_alarm && file->deadline_ns <= scheduler_now_ns()) {
        file->deadline_ns = kernel_never;
        return 0;
    }
    if (file->kind != file_counter || file->count == 0) {
        return -EAGAIN;
    }
    file->count = 0;
    return 0;
}

int alarm_make(void)
{
    return file_install(file_create(file_alarm));
}

int resume_make(void)
{
    int descriptor = alarm_make();
    struct file *file = descriptor < 0 ? NULL : file_of(descriptor);

    if (file) {
        file->deadline_ns = kernel_never;
        file->is_resume = true;
    }
    return descriptor;
}

void files_resume(void)
{
    for (int i = 0; i < processes_max; i++) {
        for (int k = 0; k < descriptors_max; k++) {
            struct file *file = tables[i][k];

            if (file && file->is_resume) {
                file->deadline_ns = scheduler_now_ns();
                file_stir(file);
            }
        }
    }
}

int alarm_arm(int descriptor, int64_t deadline_ns)
{
    struct file *file = file_of_kind(descriptor, file_alarm);

    if (!file) {
        return -EBADF;
    }
    file->deadline_ns = deadline_ns;
    file->edges++; /* at that time */
    return 0;
}

/* ---- readiness ---- */

static int status_of(const struct file *file)
{
    switch (file->kind) {
    case file_counter:
        return status_out | (file->count > 0 ? status_in : 0);
    case file_alarm:
        return file->deadline_ns <= scheduler_now_ns() ? status_in : 0;
    case file_set:
        return set_has_ready(file) ? status_in : 0;
    case file_datagram:
    case file_channel:
        return socket_status(file);
    case file_stream:
        return stream_status(file);
    case file_memory:
    case file_node:
    case file_slow:
        break;
    }
    return status_in | status_out;
}

uint32_t file_ready(const struct file *file, uint32_t interest)
{
    int status = status_of(file);
    bool has_half_closed = (interest & kernel_readable) && (status & status_half_closed);

    return ((interest & kernel_readable) && (status & (status_in | status_half_closed)) ? kernel_readable : 0u) |
           ((interest & kernel_writable) && (status & status_out) ? kernel_writable : 0u) |
           (status & (status_hang_up | status_error) ? kernel_failed : 0u) |
           (has_half_closed || (status & status_hang_up) ? kernel_ended : 0u) | (status & status_error ? kernel_error : 0u);
}

/* ---- wait sets ---- */

int set_make(void)
{
    return file_install(file_create(file_set));
}

static struct watch_item *item_of(const struct file *set, int descriptor, const struct file *file)
{
    for (struct watch_item *item = set->items; item; item = item->next) {
        if (item->descriptor == descriptor && item->file == file) {
            return item;
        }
    }
    return NULL;
}

static bool has_item_stirred_by(const struct file *set, const struct file *file)
{
    for (const struct watch_item *item = set->items; item; item = item->next) {
        if (item->file == file && file_ready(file, item->interest)) {
            return true;
        }
    }
    return false;
}

/* A wait set tells the sets that it is in itself each time, whether or not anybody has taken the last report out of it. */
void file_stir(struct file *file)
{
    file->edges++;
    for (struct file *set = sets; set; set = set->next_set) {
        if (has_item_stirred_by(set, file)) {
            file_stir(set);
        }
    }
}

int set_insert(int set_descriptor, int descriptor, uint32_t interest, uint64_t token, bool is_edge)
{
    struct file *set = file_of_kind(set_descriptor, file_set);
    struct file *file = file_of(descriptor);
    struct watch_item *item;
    struct watch_item **last;

    if (!set || !file) {
        return -EBADF;
    }
    if (file->kind == file_memory || file->kind == file_node) {
        return -EPERM;
    }
    if (item_of(set, descriptor, file)) {
        return -EEXIST;
    }
    item = calloc(1, sizeof *item);
    if (!item) {
        return -ENOMEM;
    }
    *item = (struct watch_item){.file = file, .descriptor = descriptor, .interest = interest, .token = token, .is_edge = is_edge};
    item->seen = file->edges - (file_ready(file, interest) ? 1 : 0);
    for (last = &set->items; *last; last = &(*last)->next) {
    }
    *last = item;
    if (file_ready(file, interest)) {
        file_stir(set);
    }
    return 0;
}

static struct watch_item *item_of_descriptor(int set, int descriptor, int *ret_error)
{
    const struct file *file = file_of(descriptor);
    const struct file *own = file_of_kind(set, file_set);
    struct watch_item *item = own && file ? item_of(own, descriptor, file) : NULL;

    *ret_error = own && file ? -ENOENT : -EBADF;
    return item;
}

int set_alter(int set, int descriptor, uint32_t interest, uint64_t token)
{
    int error;
    struct watch_item *item = item_of_descriptor(set, descriptor, &error);

    if (!item) {
        return error;
    }
    item->interest = interest;
    item->token = token;
    item->is_edge = interest & kernel_edge;
    item->seen = item->file->edges - (file_ready(item->file, interest) ? 1 : 0);
    return 0;
}

int set_delete(int set, int descriptor)
{
    int error;
    struct watch_item *item = item_of_descriptor(set, descriptor, &error);
    struct watch_item **place;

    if (!item) {
        return error;
    }
    for (place = &file_of(set)->items; *place != item; place = &(*place)->next) {
    }
    *place = item->next;
    free(item);
    return 0;
}

static uint32_t item_ready(const struct watch_item *item)
{
    return item->is_edge && item->file->edges == item->seen ? 0 : file_ready(item->file, item->interest);
}

bool set_has_ready(const struct file *set)
{
    for (const struct watch_item *item = set->items; item; item = item->next) {
        if (item_ready(item)) {
            return true;
        }
    }
    return false;
}

/* What was reported goes behind the rest, as in Linux's list of what is ready. */
int set_collect(struct file *set, struct kernel_event *events, int capacity)
{
    struct watch_item *reported = NULL;
    struct watch_item **reported_end = &reported;
    struct watch_item **place = &set->items;
    int count = 0;

    while (*place && count < capacity) {
        struct watch_item *item = *place;
        uint32_t ready = item_ready(item);

        if (!ready) {
            place = &item->next;
            continue;
        }
        events[count++] = (struct kernel_event){.token = item->token, .ready = ready};
        item->seen = item->file->edges;
        *place = item->next;
        item->next = NULL;
        *reported_end = item;
        reported_end = &item->next;
    }
    while (*place) {
        place = &(*place)->next;
    }
    *place = reported;
    return count;
}
