/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recorder for one CFFileDescriptor. It records the callbacks and counts the retains and releases of the context. For the tests of this
 * folder.
 */
#ifndef CRL_TESTS_WATCHER_H
#define CRL_TESTS_WATCHER_H

#include <stdbool.h>
#include <stddef.h>

#include "CoreFoundation/CFFileDescriptor.h"
#include "Loop/loop_trace.h"

/* Logs name:R, name:W, name:RW and so on, with P for priority. It must outlive the object made for it. */
struct watcher {
    const char *name;
    void (*action)(struct watcher *watcher); /* in the callback, after the logging */
    void *context; /* the action's own */
    bool is_silent;
    CFFileDescriptorRef object; /* owned until watcher_free */
    CFOptionFlags kinds; /* of the callback that is under way */
    int ends[2]; /* of the pipe that watcher_add_on_pipe has opened */
    _Atomic int calls;
    _Atomic int retains;
    _Atomic int releases;
};

#define WATCHER(name_, action_) {.name = (name_), .action = (action_)}

/* The object alone; its callbacks are disabled. */
CFFileDescriptorRef watcher_create(struct watcher *watcher, int descriptor, bool closes);
/* As watcher_create, with the source in MODE of the calling thread's loop, and `kinds` enabled. */
CFFileDescriptorRef watcher_add(struct watcher *watcher, int descriptor, bool closes, CFOptionFlags kinds);
/* As watcher_add, on the reading end of a new pipe with `text` in it. The object does not close it: watcher_free_with_pipe does. */
CFFileDescriptorRef watcher_add_on_pipe(struct watcher *watcher, const char *text, CFOptionFlags kinds);
/* Invalidates and releases the object. */
void watcher_free(struct watcher *watcher);
/* As watcher_free, and closes both ends of the watcher's pipe. */
void watcher_free_with_pipe(struct watcher *watcher);

/* Actions. */
void watcher_rearms(struct watcher *watcher); /* the kinds it was called for */
void watcher_reads_a_byte(struct watcher *watcher);
void watcher_stops_loop(struct watcher *watcher);

enum { reads = kCFFileDescriptorReadCallBack, writes = kCFFileDescriptorWriteCallBack, priorities = kCRLFileDescriptorPriorityCallBack };

/* Pipes that do not block; ends[0] is for reading. */
void pipe_open(int ends[2]);
void pipe_close(int ends[2]);
void pipe_fill(int ends[2], const char *text);

/* The library's calls of the kernel since watcher_count_calls: waits in an epoll set, sets made, descriptors added, changed, removed. */
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
