/* SPDX-License-Identifier: Apache-2.0 */
/* Modes of a loop: found by name, made when something is added under the name (rule 11), never removed while the loop lives. */
#include <stdlib.h>

#include "Loop/block.h"
#include "Loop/loop.h"
#include "Loop/main_queue.h"
#include "Loop/observer.h"
#include "Loop/source_set.h"
#include "Loop/watch.h"
#include "Support/fault.h"

bool mode_name_equals_common(CFStringRef name)
{
    return name == kCFRunLoopCommonModes || CFEqual(name, kCFRunLoopCommonModes);
}

static struct mode *find_identical(CFRunLoopRef loop, CFStringRef name)
{
    struct mode *mode = loop->modes;

    while (mode && mode->name != name) {
        mode = mode->next;
    }
    return mode;
}

bool mode_name_means_common(CFRunLoopRef loop, CFStringRef name)
{
    return !find_identical(loop, name) && mode_name_is_common(name);
}

static struct mode *find_any(CFRunLoopRef loop, CFStringRef name)
{
    struct mode *identical = find_identical(loop, name);
    CFHashCode hash;

    if (identical) {
        return identical;
    }
    hash = CFHash(name);
    for (struct mode *mode = loop->modes; mode; mode = mode->next) {
        if (mode->name_hash == hash && CFEqual(mode->name, name)) {
            return mode;
        }
    }
    return NULL;
}

struct mode *mode_find(CFRunLoopRef loop, CFStringRef name)
{
    struct mode *mode = find_any(loop, name);

    return mode && mode->is_declared ? mode : NULL;
}

static struct mode *mode_create(CFStringRef name)
{
    struct mode *mode = calloc(1, sizeof *mode);

    if (!mode) {
        return NULL;
    }
    mode->name = CFStringCreateCopy(kCFAllocatorSystemDefault, name); /* of our own: the caller's may be mutable */
    if (!mode->name) {
        free(mode);
        return NULL;
    }
    mode->name_hash = CFHash(name);
    link_init(&mode->pending);
    block_queue_init(&mode->blocks);
    return mode;
}

struct mode *mode_create_undeclared(CFRunLoopRef loop, CFStringRef name)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    struct mode *mode = find_any(loop, name);
    struct mode **last = &loop->modes;

    if (mode) {
        return mode;
    }
    mode = mode_create(name);
    if (!mode) {
        fault_log_once(&logged, "CFRunLoop: there is no memory for another mode");
        return NULL;
    }
    while (*last) {
        last = &(*last)->next;
    }
    *last = mode;
    return mode;
}

bool mode_resolve(CFRunLoopRef loop, CFStringRef name, struct mode **ret_mode)
{
    *ret_mode = find_identical(loop, name);
    if (*ret_mode) {
        return false;
    }
    if (mode_name_is_common(name)) {
        return true;
    }
    *ret_mode = mode_create_undeclared(loop, name);
    return false;
}

struct mode *mode_declare(CFRunLoopRef loop, CFStringRef name)
{
    struct mode *mode = mode_create_undeclared(loop, name);

    if (mode) {
        mode->is_declared = true;
    }
    return mode;
}

bool mode_is_empty(CFRunLoopRef loop, const struct mode *mode)
{
    bool has_sources = mode->sources.count > mode->resting_count;

    return !has_sources && mode->timer_count == 0 && !blocks_are_queued(loop, mode) && !main_queue_serves(loop, mode);
}

void mode_free(struct mode *mode)
{
    watch_set_free(mode);
    source_set_free(&mode->sources);
    heap_free(&mode->timers);
    free(mode->advanced);
    CFRelease(mode->name);
    free(mode);
}
