/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the toolchain's streams lack: clients, which its Foundation never sets, and the common modes, in which its streams tell nothing and
 * keep the loop busy.
 *
 * The functions that schedule streams are defined here a second time, as foundation_loop.c does it with those of the loop. They put a
 * stream into each mode that is common at that moment. Any thread.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "CoreRunLoopFoundationShims.h"
#include "foundation_loop.h"
#include "toolchain_loop.h"

struct client_context {
    long version;
    void *info;
    void *(*retain)(void *info);
    void (*release)(void *info);
    const void *(*copy_description)(void *info);
};

/* Of the toolchain's Core Foundation, whose headers cannot be used beside ours. */
extern unsigned char CFReadStreamSetClient(void *stream, unsigned long events, foundation_stream_told *told,
                                           struct client_context *context);
extern unsigned char CFWriteStreamSetClient(void *stream, unsigned long events, foundation_stream_told *told,
                                            struct client_context *context);

bool foundation_stream_set_client(void *stream, bool reads, foundation_stream_told *told, void *info, void (*release)(void *info))
{
    enum { all_events = 31 };
    struct client_context context = {.info = info, .release = release};

    if (reads) {
        return CFReadStreamSetClient(stream, info ? all_events : 0, info ? told : NULL, info ? &context : NULL);
    }
    return CFWriteStreamSetClient(stream, info ? all_events : 0, info ? told : NULL, info ? &context : NULL);
}

/* ---- scheduling ---- */

typedef void schedule_call(void *stream, void *loop, const void *mode);

/* The toolchain's own functions, found once. */
static struct {
    schedule_call *schedule_reader;
    schedule_call *unschedule_reader;
    schedule_call *schedule_writer;
    schedule_call *unschedule_writer;
} toolchain;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_toolchain(void)
{
    toolchain.schedule_reader = (schedule_call *)dlsym(RTLD_NEXT, "CFReadStreamScheduleWithRunLoop");
    toolchain.unschedule_reader = (schedule_call *)dlsym(RTLD_NEXT, "CFReadStreamUnscheduleFromRunLoop");
    toolchain.schedule_writer = (schedule_call *)dlsym(RTLD_NEXT, "CFWriteStreamScheduleWithRunLoop");
    toolchain.unschedule_writer = (schedule_call *)dlsym(RTLD_NEXT, "CFWriteStreamUnscheduleFromRunLoop");
}

struct move {
    schedule_call *call;
    void *stream;
    void *loop;
};

static void move_in_mode(const char *text, void *info)
{
    const struct move *move = info;
    const void *mode = CFStringCreateWithCString(NULL, text, utf8);

    if (mode) {
        move->call(move->stream, move->loop, mode);
        CFRelease(mode);
    }
}

/* Calls the toolchain for the mode, or for each of the common modes. */
static void move_stream(schedule_call *call, void *stream, void *loop, const void *mode)
{
    struct move move = {call, stream, loop};

    if (CFEqual(mode, kCFRunLoopCommonModes)) {
        library_loop_each_common_mode(loop == toolchain_loop.get_main(), move_in_mode, &move);
    } else {
        call(stream, loop, mode);
    }
}

static void schedule_reader(void *stream, void *loop, const void *mode)
{
    (void)pthread_once(&once, find_toolchain);
    move_stream(toolchain.schedule_reader, stream, loop, mode);
}

static void unschedule_reader(void *stream, void *loop, const void *mode)
{
    (void)pthread_once(&once, find_toolchain);
    move_stream(toolchain.unschedule_reader, stream, loop, mode);
}

static void schedule_writer(void *stream, void *loop, const void *mode)
{
    (void)pthread_once(&once, find_toolchain);
    move_stream(toolchain.schedule_writer, stream, loop, mode);
}

static void unschedule_writer(void *stream, void *loop, const void *mode)
{
    (void)pthread_once(&once, find_toolchain);
    move_stream(toolchain.unschedule_writer, stream, loop, mode);
}

/* Weak, so that a program that is linked with Foundation statically has one definition of each. */
#define FOUND_FIRST(_function) __attribute__((weak, visibility("default"), alias(#_function)))
FOUND_FIRST(schedule_reader) void CFReadStreamScheduleWithRunLoop(void *stream, void *loop, const void *mode);
FOUND_FIRST(unschedule_reader) void CFReadStreamUnscheduleFromRunLoop(void *stream, void *loop, const void *mode);
FOUND_FIRST(schedule_writer) void CFWriteStreamScheduleWithRunLoop(void *stream, void *loop, const void *mode);
FOUND_FIRST(unschedule_writer) void CFWriteStreamUnscheduleFromRunLoop(void *stream, void *loop, const void *mode);
