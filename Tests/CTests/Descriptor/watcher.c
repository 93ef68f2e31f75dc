/* SPDX-License-Identifier: Apache-2.0 */
/* See watcher.h. Counters are atomic because loops on several threads are tested. */
#define _GNU_SOURCE
#include "Descriptor/watcher.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "Kernel/kernel.h"

static void *info_retain(void *info)
{
    ((struct watcher *)info)->retains++;
    return info;
}

static void info_release(void *info)
{
    ((struct watcher *)info)->releases++;
}

static void called(CFFileDescriptorRef object, CFOptionFlags kinds, void *info)
{
    struct watcher *watcher = info;

    watcher->calls++;
    watcher->kinds = kinds;
    EXPECT(object == watcher->object);
    if (!watcher->is_silent) {
        probe_note("%s:%s%s%s", watcher->name, kinds & reads ? "R" : "", kinds & writes ? "W" : "", kinds & priorities ? "P" : "");
    }
    if (watcher->action) {
        watcher->action(watcher);
    }
}

CFFileDescriptorRef watcher_create(struct watcher *watcher, int descriptor, bool closes)
{
    CFFileDescriptorContext context = {.info = watcher, .retain = info_retain, .release = info_release};

    watcher->object = CFFileDescriptorCreate(NULL, descriptor, closes, called, &context);
    return watcher->object;
}

CFFileDescriptorRef watcher_add(struct watcher *watcher, int descriptor, bool closes, CFOptionFlags kinds)
{
    CFRunLoopSourceRef source;

    REQUIRE(watcher_create(watcher, descriptor, closes) != NULL);
    source = CFFileDescriptorCreateRunLoopSource(NULL, watcher->object, 0);
    REQUIRE(source != NULL);
    CFRunLoopAddSource(LOOP, source, MODE);
    CFRelease(source);
    CFFileDescriptorEnableCallBacks(watcher->object, kinds);
    return watcher->object;
}

CFFileDescriptorRef watcher_add_on_pipe(struct watcher *watcher, const char *text, CFOptionFlags kinds)
{
    pipe_open(watcher->ends);
    pipe_fill(watcher->ends, text);
    return watcher_add(watcher, watcher->ends[0], false, kinds);
}

void watcher_free(struct watcher *watcher)
{
    CFFileDescriptorInvalidate(watcher->object);
    CFRelease(watcher->object);
    watcher->object = NULL;
}

void watcher_free_with_pipe(struct watcher *watcher)
{
    watcher_free(watcher);
    pipe_close(watcher->ends);
}

void watcher_rearms(struct watcher *watcher)
{
    CFFileDescriptorEnableCallBacks(watcher->object, watcher->kinds);
}

void watcher_reads_a_byte(struct watcher *watcher)
{
    char byte;

    EXPECT_EQ(read(CFFileDescriptorGetNativeDescriptor(watcher->object), &byte, 1), 1);
}

void watcher_stops_loop(struct watcher *watcher)
{
    (void)watcher;
    CFRunLoopStop(LOOP);
}

void pipe_open(int ends[2])
{
    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
}

void pipe_close(int ends[2])
{
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0) {
            close(ends[i]);
        }
    }
}

void pipe_fill(int ends[2], const char *text)
{
    REQUIRE(write(ends[1], text, strlen(text)) == (ssize_t)strlen(text));
}

/* ---- counting ---- */

struct call_counts call_counts;

static int counted_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    call_counts.waits++;
    return kernel_linux.set_wait(set, events, capacity, deadline_ns);
}

static int counted_create(void)
{
    call_counts.sets++;
    return kernel_linux.set_create();
}

static int counted_add(int set, int descriptor, uint32_t interest, uint64_t token)
{
    call_counts.adds++;
    return kernel_linux.set_add(set, descriptor, interest, token);
}

static int counted_change(int set, int descriptor, uint32_t interest, uint64_t token)
{
    call_counts.changes++;
    return kernel_linux.set_change(set, descriptor, interest, token);
}

static int counted_remove(int set, int descriptor)
{
    call_counts.removals++;
    return kernel_linux.set_remove(set, descriptor);
}

void watcher_count_calls(void)
{
    call_counts = (struct call_counts){0};
    kernel.set_wait = counted_wait;
    kernel.set_create = counted_create;
    kernel.set_add = counted_add;
    kernel.set_change = counted_change;
    kernel.set_remove = counted_remove;
}
