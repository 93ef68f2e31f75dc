/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recorder for one CFFileDescriptor: what its callback was told, and how its context was counted. For the tests of this folder.
 */
#ifndef CRL_TESTS_WATCHER_H
#define CRL_TESTS_WATCHER_H

#include <stdbool.h>
#include <stddef.h>

#include "CoreFoundation/CFFileDescriptor.h"
#include "Loop/loop_trace.h"

/* Logs name:R, name:W or name:RW. It must outlive the object made for it. */
struct watcher {
    const char *name;
    void (*action)(struct watcher *watcher); /* in the callback, after the logging */
    void *context; /* the action's own */
    bool is_silent;
    CFFileDescriptorRef object; /* owned until watcher_free */
    CFOptionFlags kinds; /* of the callback that is under way */
    _Atomic int calls;
    _Atomic int retains;
    _Atomic int releases;
};

#define WATCHER(name_, action_) {.name = (name_), .action = (action_)}

/* The object alone; its callbacks are disabled. */
CFFileDescriptorRef watcher_create(struct watcher *watcher, int descriptor, bool closes);
/* The same with its source in MODE of the calling thread's loop, and `kinds` enabled. */
CFFileDescriptorRef watcher_add(struct watcher *watcher, int descriptor, bool closes, CFOptionFlags kinds);
/* Invalidates and releases the object. */
void watcher_free(struct watcher *watcher);

/* Actions. */
void watcher_rearms(struct watcher *watcher); /* the kinds it was called for */
void watcher_reads_a_byte(struct watcher *watcher);
void watcher_stops_loop(struct watcher *watcher);

enum { reads = kCFFileDescriptorReadCallBack, writes = kCFFileDescriptorWriteCallBack };

/* Pipes, not blocking; ends[0] to read. */
void pipe_open(int ends[2]);
void pipe_close(int ends[2]);
void pipe_fill(int ends[2], const char *text);

/* How often the library waited in a set, made one, or registered a descriptor, since the call of watcher_count_calls. */
struct call_counts {
    _Atomic int waits;
    _Atomic int sets;
    _Atomic int adds;
    _Atomic int changes;
    _Atomic int removals;
};
extern struct call_counts call_counts;
void watcher_count_calls(void);

#endif
