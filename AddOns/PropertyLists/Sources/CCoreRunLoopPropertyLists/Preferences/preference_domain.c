/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains in memory and their files (preference_domain.h).
 *
 * Two locks: the fork lock guards the fields, over a few steps; the lock of the file, which other processes take as well, is held from
 * reading the file over writing it up to the change of the fields, so that these follow the file's order. The fork lock is taken inside.
 */
#define _GNU_SOURCE
#include "Preferences/preference_domain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "File/plist_file.h"
#include "Support/uncancelled.h"
#include "Tree/tree_check.h"
#include "Tree/tree_copy.h"

struct preference_domain {
    struct preference_place place; /* constant */
    struct preference_domain *next; /* constant once the domain is in the list */
    CFMutableDictionaryRef values GUARDED_BY(the_fork_lock); /* of the file, with the changes; NULL before the file is read */
    CFMutableDictionaryRef changes GUARDED_BY(the_fork_lock); /* by key the value, or kCFNull for a removal */
    struct stat read_status GUARDED_BY(the_fork_lock); /* of the file that was read last, or zero */
    uint64_t read_count GUARDED_BY(the_fork_lock); /* of all times that the file was read */
};

static struct preference_domain *domains GUARDED_BY(the_fork_lock);

static void say(const struct preference_domain *domain, const char *step, const struct read_fault *fault)
{
    char path[PATH_MAX];

    if (!preference_place_file(&domain->place, "", "", path)) {
        (void)snprintf(path, sizeof path, "of %s, for which there is no folder", domain->place.application);
    }
    (void)uncancelled(fprintf(stderr, "CoreRunLoop: preferences: the file %s %s. %s\n", path, step, fault->words));
}

static void release_any(CFTypeRef object)
{
    if (object) {
        CFRelease(object);
    }
}

static CFMutableDictionaryRef create_dictionary(void)
{
    return CFDictionaryCreateMutable(kCFAllocatorSystemDefault, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
}

/* ---- the list ---- */

REQUIRES(the_fork_lock) static struct preference_domain *find(const struct preference_place *place)
{
    struct preference_domain *domain = domains;

    while (domain && !preference_place_is_same(&domain->place, place)) {
        domain = domain->next;
    }
    return domain;
}

static void free_domain(struct preference_domain *domain)
{
    if (domain) {
        int cancel_state = fork_lock_take();
        CFTypeRef changes = domain->changes;
        CFTypeRef values = domain->values;

        fork_lock_drop(cancel_state);
        release_any(changes);
        release_any(values);
        free(domain);
    }
}

/* Puts a new domain into the list, unless another thread has been faster. */
static struct preference_domain *add(const struct preference_place *place)
{
    struct preference_domain *made = calloc(1, sizeof *made);
    CFMutableDictionaryRef changes = made ? create_dictionary() : NULL;

    if (!changes) {
        free(made);
        return NULL;
    }
    made->place = *place;
    int cancel_state = fork_lock_take();
    struct preference_domain *domain = find(place);
    made->changes = changes;
    if (!domain) {
        made->next = domains;
        domains = domain = made;
        made = NULL;
    }
    fork_lock_drop(cancel_state);
    free_domain(made);
    return domain;
}

/* ---- what is read ---- */

struct reading {
    enum plist_file_state state;
    CFMutableDictionaryRef values; /* NULL without memory */
    struct stat status; /* of the file, or zero: it is to be read again */
    uint64_t count; /* it counts only if the file has been read so often; or UINT64_MAX */
};

/* A file that cannot be read has no values here, and a line on stderr. */
static struct reading read_values(const struct preference_domain *domain)
{
    struct reading reading = {.state = plist_file_is_absent, .count = UINT64_MAX};
    struct read_fault fault = {{0}};
    CFDictionaryRef dictionary = NULL;
    char path[PATH_MAX];

    if (preference_place_file(&domain->place, "", "", path)) {
        if (stat(path, &reading.status) != 0) {
            memset(&reading.status, 0, sizeof reading.status);
        }
        reading.state = plist_file_read(path, &dictionary, &fault);
    }
    if (reading.state == plist_file_is_unknown) {
        memset(&reading.status, 0, sizeof reading.status);
    }
    if (reading.state == plist_file_is_damaged || reading.state == plist_file_is_unknown) {
        say(domain, reading.state == plist_file_is_damaged ? "is damaged" : "is out of reach", &fault);
    }
    reading.values = dictionary ? CFDictionaryCreateMutableCopy(kCFAllocatorSystemDefault, 0, dictionary) : create_dictionary();
    release_any(dictionary);
    return reading;
}

static bool put_change(CFMutableDictionaryRef values, CFTypeRef key, CFTypeRef value)
{
    if (value == kCFNull) {
        CFDictionaryRemoveValue(values, key);
        return true;
    }
    CFDictionarySetValue(values, key, value);
    return CFDictionaryGetValue(values, key) == value;
}

/* Puts changes over the values. False without memory. */
static bool put_changes(CFMutableDictionaryRef values, CFDictionaryRef changes)
{
    CFIndex count = CFDictionaryGetCount(changes);
    const void **pairs = count > 0 ? calloc((size_t)count * 2, sizeof *pairs) : NULL;
    bool is_done = count == 0 || pairs;

    if (pairs) {
        CFDictionaryGetKeysAndValues(changes, pairs, pairs + count);
        for (CFIndex i = 0; is_done && i < count; i++) {
            is_done = put_change(values, pairs[i], pairs[count + i]);
        }
    }
    free(pairs);
    return is_done;
}

/*
 * Makes the reading what the process sees, with what has been changed and not written over it. `written` are changes that have been, or
 * NULL. Takes the values. False without memory: what was seen stays, and the changes are written again at the next time.
 */
static bool install(struct preference_domain *domain, struct reading *reading, CFDictionaryRef written)
{
    CFMutableDictionaryRef changes = create_dictionary();
    CFTypeRef before = reading->values;
    CFIndex left = 0;
    int cancel_state = fork_lock_take();
    CFMutableDictionaryRef old_changes = domain->changes;
    CFIndex count = CFDictionaryGetCount(old_changes);
    const void **pairs = changes ? calloc((size_t)count * 2 + 1, sizeof *pairs) : NULL;
    bool is_done = reading->values && pairs;
    bool is_late = reading->count != UINT64_MAX && reading->count != domain->read_count;

    if (is_done && !is_late) {
        CFDictionaryGetKeysAndValues(old_changes, pairs, pairs + count);
        for (CFIndex i = 0; i < count; i++) {
            if (!written || CFDictionaryGetValue(written, pairs[i]) != pairs[count + i]) {
                is_done = is_done && put_change(reading->values, pairs[i], pairs[count + i]);
                CFDictionarySetValue(changes, pairs[i], pairs[count + i]);
                left++;
            }
        }
        is_done = is_done && CFDictionaryGetCount(changes) == left;
    }
    if (is_done && !is_late) {
        before = domain->values;
        domain->values = reading->values;
        domain->changes = changes;
        changes = old_changes;
        domain->read_status = reading->status;
        domain->read_count++;
    }
    fork_lock_drop(cancel_state);
    free(pairs);
    release_any(changes);
    release_any(before);
    return is_done;
}

static uint64_t look_at_count(struct preference_domain *domain, struct stat *ret_status, bool *ret_is_read)
{
    int cancel_state = fork_lock_take();
    uint64_t count = domain->read_count;

    *ret_status = domain->read_status;
    *ret_is_read = domain->values;
    fork_lock_drop(cancel_state);
    return count;
}

/* Reads the file again without its lock, if it is another one than before. What another thread has read meanwhile counts. */
static bool refresh(struct preference_domain *domain)
{
    struct stat before;
    struct stat now;
    char path[PATH_MAX];
    bool is_read;
    uint64_t count = look_at_count(domain, &before, &is_read);

    if (!preference_place_file(&domain->place, "", "", path) || stat(path, &now) != 0) {
        memset(&now, 0, sizeof now);
    }
    if (is_read && now.st_dev == before.st_dev && now.st_ino == before.st_ino && now.st_size == before.st_size &&
        now.st_mtim.tv_sec == before.st_mtim.tv_sec && now.st_mtim.tv_nsec == before.st_mtim.tv_nsec) {
        return true;
    }
    struct reading reading = read_values(domain);
    reading.count = count;
    return install(domain, &reading, NULL);
}

struct preference_domain *preference_domain_get(const struct preference_place *place)
{
    int cancel_state = fork_lock_take();
    struct preference_domain *domain = find(place);
    bool is_read = domain && domain->values;

    fork_lock_drop(cancel_state);
    domain = domain ? domain : add(place);
    return domain && (is_read || refresh(domain)) ? domain : NULL;
}

/* ---- values ---- */

static CFTypeRef copy_under(CFDictionaryRef dictionary, CFTypeRef key)
{
    CFTypeRef value = CFDictionaryGetValue(dictionary, key);

    return value ? CFRetain(value) : NULL;
}

CFTypeRef preference_domain_copy_value(struct preference_domain *domain, CFStringRef key)
{
    int cancel_state = fork_lock_take();
    CFTypeRef value = copy_under(domain->values, key);

    fork_lock_drop(cancel_state);
    return value;
}

CFDictionaryRef preference_domain_copy_all(struct preference_domain *domain)
{
    int cancel_state = fork_lock_take();
    CFDictionaryRef all = CFDictionaryCreateCopy(kCFAllocatorSystemDefault, domain->values);

    fork_lock_drop(cancel_state);
    return all;
}

/* A copy in the system's memory that shares nothing with the string, whose bytes may be the program's. */
static CFStringRef create_own_key(CFStringRef key)
{
    CFMutableStringRef copy = CFStringCreateMutable(kCFAllocatorSystemDefault, 0);
    CFStringRef own = NULL;

    if (copy) {
        CFStringAppend(copy, key);
        own = CFStringGetLength(copy) == CFStringGetLength(key) ? CFStringCreateCopy(kCFAllocatorSystemDefault, copy) : NULL;
        CFRelease(copy);
    }
    return own;
}

/* A property list that will be read again: the readers refuse deeper trees, and the dictionary around it is a level, too. */
static bool can_be_kept(CFTypeRef value)
{
    CFTypeRef object;
    size_t height;

    return tree_check(value, kCFPropertyListBinaryFormat_v1_0, &object, &height) == tree_is_valid && height < tree_depth_max;
}

bool preference_domain_set_value(struct preference_domain *domain, CFStringRef key, CFTypeRef value)
{
    if (value && !can_be_kept(value)) {
        return false;
    }
    CFStringRef own_key = create_own_key(key);
    CFTypeRef own = value ? tree_copy(kCFAllocatorSystemDefault, value, kCFPropertyListImmutable) : CFRetain(kCFNull);
    if (!own_key || !own) {
        release_any(own_key);
        release_any(own);
        return false;
    }
    int cancel_state = fork_lock_take();
    CFTypeRef old_value = copy_under(domain->values, own_key); /* whose last reference must not go under the lock */
    CFTypeRef old_change = copy_under(domain->changes, own_key);
    CFDictionarySetValue(domain->changes, own_key, own);
    bool is_set = CFDictionaryGetValue(domain->changes, own_key) == own && put_change(domain->values, own_key, own);
    if (!is_set && old_change) {
        CFDictionarySetValue(domain->changes, own_key, old_change); /* in a place that is there, which needs no memory */
    } else if (!is_set) {
        CFDictionaryRemoveValue(domain->changes, own_key);
    }
    fork_lock_drop(cancel_state);
    release_any(old_value);
    release_any(old_change);
    release_any(own_key);
    release_any(own);
    return is_set;
}

/* ---- synchronizing ---- */

/* Makes the folders of a path that are missing. */
static void make_folders(char path[PATH_MAX], mode_t mode)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, mode);
        *slash = '/';
    }
}

/* Returns the descriptor of the lock of the file, or -1. */
static int take_file_lock(const struct preference_domain *domain, struct read_fault *fault)
{
    char path[PATH_MAX];
    int file = -1;

    if (!preference_place_folder(&domain->place, path)) {
        (void)read_fault_set(fault, "Neither XDG_CONFIG_HOME nor HOME leads to a folder");
        return -1;
    }
    make_folders(path, domain->place.is_of_any_user ? 0755 : 0700);
    if (!preference_place_file(&domain->place, ".", ".lock", path)) {
        (void)read_fault_set(fault, "Its path is too long");
        return -1;
    }
    file = plist_file_take_lock(path);
    if (file < 0) {
        char words[100];
        (void)read_fault_set(fault, "Its lock %s cannot be taken: %s", path, strerror_r(errno, words, sizeof words));
    }
    return file;
}

/* With the lock of the file. */
static bool write_changes(struct preference_domain *domain, CFDictionaryRef changes, struct read_fault *fault)
{
    char path[PATH_MAX];
    struct reading reading = read_values(domain);
    bool is_kept_aside = reading.state == plist_file_is_damaged;
    bool is_done = false;

    if (reading.state == plist_file_is_unknown) {
        (void)read_fault_set(fault, "It may hold what must not be overwritten");
    } else if (!reading.values || !put_changes(reading.values, changes)) {
        (void)read_fault_set_no_memory(fault);
    } else if (reading.state == plist_file_is_absent && CFDictionaryGetCount(reading.values) == 0) {
        is_done = true;
    } else if (preference_place_file(&domain->place, "", "", path)) {
        is_done = plist_file_write(path, reading.values, domain->place.is_of_any_user ? 0644 : 0600, is_kept_aside, fault);
        memset(&reading.status, 0, sizeof reading.status); /* who knows no lock may have written behind this */
    }
    if (!is_done) {
        release_any(reading.values);
        return false;
    }
    (void)install(domain, &reading, changes);
    return true;
}

/* The changes up to now, in a copy; NULL without memory. */
static CFDictionaryRef copy_changes(struct preference_domain *domain)
{
    int cancel_state = fork_lock_take();
    CFDictionaryRef changes = CFDictionaryCreateCopy(kCFAllocatorSystemDefault, domain->changes);

    fork_lock_drop(cancel_state);
    return changes;
}

bool preference_domain_synchronize(struct preference_domain *domain)
{
    struct read_fault fault = {{0}};
    int cancel_state = fork_lock_take();
    bool has_changes = CFDictionaryGetCount(domain->changes) > 0;

    fork_lock_drop(cancel_state);
    if (!has_changes) {
        return refresh(domain);
    }
    int lock = take_file_lock(domain, &fault);
    /* With the lock of the file: changes of before may be older than what another thread has written meanwhile. */
    CFDictionaryRef changes = lock >= 0 ? copy_changes(domain) : NULL;
    bool is_done = lock >= 0 && (changes ? write_changes(domain, changes, &fault) : read_fault_set_no_memory(&fault));
    if (lock >= 0) {
        plist_file_drop_lock(lock);
    }
    if (!is_done) {
        say(domain, "was not written", &fault);
    }
    release_any(changes);
    return is_done;
}

#if defined(CRL_TESTING)
void preference_domains_give_back(void)
{
    int cancel_state = fork_lock_take();
    struct preference_domain *domain = domains;

    domains = NULL;
    fork_lock_drop(cancel_state);
    while (domain) {
        struct preference_domain *next = domain->next;

        free_domain(domain);
        domain = next;
    }
}
#endif
