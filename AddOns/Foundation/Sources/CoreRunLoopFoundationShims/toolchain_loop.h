/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The toolchain's run loop: its declarations, and its functions behind those that foundation_loop.c defines a second time.
 *
 * It is declared here by hand: its headers would have to stand on the search path of every program that uses this package, where ours may
 * stand as well.
 */
#ifndef CRL_TOOLCHAIN_LOOP_H
#define CRL_TOOLCHAIN_LOOP_H

#include <stdbool.h>
#include <stdint.h>

enum { run_finished = 1, run_stopped = 2, run_timed_out = 3, run_handled_source = 4 };
enum { before_sources = 1 << 2, before_waiting = 1 << 5 };
enum { utf8 = 0x08000100 };

static const double for_ever = 1e10; /* no timer is made for it */

struct source_context {
    long version;
    void *info;
    const void *(*retain)(const void *info);
    void (*release)(const void *info);
    const void *(*copyDescription)(const void *info);
    bool (*equal)(const void *info1, const void *info2);
    unsigned long (*hash)(const void *info);
    void *(*schedule_or_port)(void *info);
    void *cancel_or_perform;
    void (*perform)(void *info);
};

struct observer_context {
    long version;
    void *info;
    const void *(*retain)(const void *info);
    void (*release)(const void *info);
    const void *(*copyDescription)(const void *info);
};

extern const void *const kCFRunLoopDefaultMode;
extern const void *const kCFRunLoopCommonModes;
extern void *CFRunLoopSourceCreate(const void *allocator, long order, struct source_context *context);
extern void CFRunLoopAddSource(void *loop, void *source, const void *mode);
extern void CFRunLoopRemoveSource(void *loop, void *source, const void *mode);
extern void CFRunLoopSourceInvalidate(void *source);
extern void CFRunLoopSourceSignal(void *source);
extern void CFRunLoopWakeUp(void *loop);
extern void *CFRunLoopObserverCreate(const void *allocator, unsigned long activities, unsigned char repeats, long order,
                                     void (*callout)(void *observer, unsigned long activity, void *info), struct observer_context *context);
extern void CFRunLoopAddObserver(void *loop, void *observer, const void *mode);
extern void CFRunLoopObserverInvalidate(void *observer);
extern const void *CFStringCreateWithCString(const void *allocator, const char *text, uint32_t encoding);
extern unsigned char CFStringGetCString(const void *string, char *buffer, long size, uint32_t encoding);
extern long CFStringGetLength(const void *string);
extern unsigned char CFEqual(const void *one, const void *other);
extern const void *CFRetain(const void *object);
extern void CFRelease(const void *object);

/* Found once by foundation_loop.c. `is_finished` is private to the toolchain: without it the loops stay apart. */
struct toolchain_loop {
    void *(*get_current)(void);
    void *(*get_main)(void);
    int32_t (*run_in_mode)(const void *mode, double seconds, unsigned char returns_after_source);
    void (*stop)(void *loop);
    unsigned char (*is_finished)(void *loop, const void *mode);
};

extern struct toolchain_loop toolchain_loop;

#endif
