/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of files in the background that threads use at random, over a kernel of short transfers: no byte is lost or comes twice. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "File/background_file.h"
#include "File/file_kernel.h"
#include "file_probe.h"
#include "scratch_folder.h"

enum { threads = 3, rounds = 12, most = 3 * file_room };

static struct file_kernel linux_files;
static _Atomic unsigned turns;

/* Of the kernel's threads together: what it is does not matter. */
static unsigned turn(void)
{
    unsigned value = turns++ * 2654435761U;

    if (value % 7 == 0) {
        (void)sched_yield();
    }
    return value >> 8;
}

static ssize_t short_read(int file, void *bytes, size_t size)
{
    size_t most_now = 1 + turn() % file_block;

    return linux_files.read(file, bytes, size < most_now ? size : most_now);
}

static ssize_t short_write(int file, const void *bytes, size_t size)
{
    size_t most_now = 1 + turn() % file_block;

    return linux_files.write(file, bytes, size < most_now ? size : most_now);
}

struct user {
    unsigned seed;
    char path[16];
    size_t size; /* of the file */
    size_t moved;
    size_t wrong;
    UInt8 bytes[100000];
    bool leaves; /* in the midst, at a moment of its own */
    bool has_finished;
    bool is_over;
};

static unsigned pick(struct user *user, unsigned below)
{
    return (unsigned)rand_r(&user->seed) % below;
}

static void read_piece(struct user *user, CFReadStreamRef reader)
{
    CFIndex count = CFReadStreamRead(reader, user->bytes, 1 + pick(user, sizeof user->bytes));

    for (CFIndex i = 0; i < count; i++) {
        user->wrong += user->bytes[i] != pattern_byte(user->moved + (size_t)i);
    }
    user->moved += count > 0 ? (size_t)count : 0;
    user->is_over |= count <= 0;
}

static void write_piece(struct user *user, CFWriteStreamRef writer)
{
    size_t left = user->size - user->moved;
    size_t piece = 1 + pick(user, sizeof user->bytes);
    CFIndex count;

    piece = piece < left ? piece : left;
    pattern_fill(user->bytes, user->moved, piece);
    count = piece > 0 ? CFWriteStreamWrite(writer, user->bytes, (CFIndex)piece) : 0;
    user->wrong += count < 0;
    user->moved += count > 0 ? (size_t)count : 0;
    if (user->moved == user->size && !user->has_finished) {
        user->has_finished = CRLWriteStreamFinish(writer, pick(user, 2));
    }
}

static void reader_called(CFReadStreamRef reader, CFStreamEventType type, void *info)
{
    struct user *user = info;

    if (type == kCFStreamEventHasBytesAvailable) {
        read_piece(user, reader);
    } else {
        user->is_over = true;
    }
}

static void writer_called(CFWriteStreamRef writer, CFStreamEventType type, void *info)
{
    struct user *user = info;

    if (type == kCFStreamEventCanAcceptBytes) {
        write_piece(user, writer);
    } else {
        user->wrong += type != kCFStreamEventEndEncountered;
        user->is_over = true;
    }
}

/* Events and calls that wait, in any order; the loop left and joined again. */
static void read_file(struct user *user)
{
    CFStreamClientContext context = {.info = user};
    CFReadStreamRef reader = background_reader(user->path);
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    EXPECT(CFReadStreamSetClient(reader, kCFStreamEventHasBytesAvailable | kCFStreamEventErrorOccurred | kCFStreamEventEndEncountered,
                                 reader_called, &context));
    EXPECT(CFReadStreamOpen(reader));
    while (!user->is_over && !(user->leaves && pick(user, 10) == 0)) {
        CFReadStreamScheduleWithRunLoop(reader, loop, kCFRunLoopDefaultMode);
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, test_patience_s(), true);
        if (pick(user, 3) == 0) {
            CFReadStreamUnscheduleFromRunLoop(reader, loop, kCFRunLoopDefaultMode);
        }
        if (pick(user, 3) == 0 && !user->is_over) {
            read_piece(user, reader);
        }
    }
    EXPECT(user->leaves || user->moved == user->size);
    if (pick(user, 2)) {
        CFReadStreamClose(reader);
    }
    CFRelease(reader);
}

static void write_file(struct user *user)
{
    CFStreamClientContext context = {.info = user};
    CFWriteStreamRef writer = background_writer(user->path);
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    EXPECT(CFWriteStreamSetClient(writer, kCFStreamEventCanAcceptBytes | kCFStreamEventErrorOccurred | kCFStreamEventEndEncountered,
                                  writer_called, &context));
    EXPECT(CFWriteStreamOpen(writer));
    while (!user->is_over && !(user->leaves && pick(user, 10) == 0)) {
        CFWriteStreamScheduleWithRunLoop(writer, loop, kCFRunLoopDefaultMode);
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, test_patience_s(), true);
        if (pick(user, 3) == 0) {
            CFWriteStreamUnscheduleFromRunLoop(writer, loop, kCFRunLoopDefaultMode);
        }
        if (pick(user, 3) == 0 && !user->is_over) {
            write_piece(user, writer);
        }
    }
    EXPECT(user->leaves || user->moved == user->size);
    if (pick(user, 2)) {
        CFWriteStreamClose(writer);
    }
    CFRelease(writer);
}

static void *use_streams(void *info)
{
    struct user *user = info;

    (void)snprintf(user->path, sizeof user->path, "file%u", user->seed);
    for (int round = 0; round < rounds; round++) {
        user->leaves = pick(user, 3) == 0;
        user->size = pick(user, most);
        user->moved = 0;
        user->is_over = user->has_finished = false;
        write_file(user);
        user->size = user->moved;
        while (!pattern_is_file(user->path, user->size)) { /* until it is written */
            (void)sched_yield();
        }
        user->moved = 0;
        user->is_over = false;
        user->leaves = pick(user, 3) == 0;
        read_file(user);
        EXPECT_EQ(user->wrong, 0);
        (void)unlink(user->path);
    }
    return NULL;
}

TEST_LIMIT(threads_read_and_write_files_in_the_background_at_random, "2228 2229 2230 2232", 300)
{
    static struct user users[threads];
    pthread_t started[threads];
    char folder[scratch_size];

    scratch_enter(folder);
    linux_files = file_kernel;
    file_kernel.read = short_read;
    file_kernel.write = short_write;
    for (unsigned i = 0; i < threads; i++) {
        users[i].seed = i + 1;
        REQUIRE(pthread_create(&started[i], NULL, use_streams, &users[i]) == 0);
    }
    for (unsigned i = 0; i < threads; i++) {
        EXPECT(pthread_join(started[i], NULL) == 0);
    }
    scratch_leave(folder);
}
