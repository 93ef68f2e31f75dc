/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What streams cost on sockets, beside those of other libraries (peers.h) and bare calls: an echo of 64 bytes, blocks of 64 KiB, the memory
 * of idle pairs, and how often these wake.
 *
 * The client is a thread with blocking calls. Both sides are on one processor, where somebody always runs, and the time is the process's
 * own. The rounds of all peers are interleaved; each figure is the median of its rounds.
 *
 * usage: streams [ROUNDS]     7 by default
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "CoreFoundation/CoreFoundation.h"
#include "streams/peers.h"

enum { idle_pairs = 1000, most_rounds = 100 };

static void require(bool holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static int64_t own_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void open_pair(int ret_pair[2])
{
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret_pair) == 0, "socketpair");
}

/* Moves bytes with bare calls, all of them. */
static void move(ssize_t (*call)(int, void *, size_t), int descriptor, uint8_t *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t result = call(descriptor, bytes + done, size - done);

        require(result > 0, "moving bytes");
        done += (size_t)result;
    }
}

static ssize_t write_bytes(int descriptor, void *bytes, size_t size)
{
    return write(descriptor, bytes, size);
}

/* ---- an echo of 64 bytes ---- */

static void *talk(void *info)
{
    int descriptor = *(int *)info;
    uint8_t message[message_size] = {0};

    for (int i = 0; i < messages; i++) {
        move(write_bytes, descriptor, message, sizeof message);
        move(read, descriptor, message, sizeof message);
    }
    close(descriptor); /* which ends the server */
    return NULL;
}

static void serve_bare(int descriptor)
{
    uint8_t message[message_size];
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(EPOLL_CLOEXEC);
    ssize_t size = 1;

    require(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
    while (size > 0 && epoll_wait(set, &event, 1, -1) == 1) {
        size = read(descriptor, message, sizeof message);
        if (size > 0) {
            move(write_bytes, descriptor, message, (size_t)size);
        }
    }
    close(set);
    close(descriptor);
}

static void echo_on_socket(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    uint8_t message[message_size];
    int native = CFSocketGetNative(socket);
    ssize_t size = read(native, message, sizeof message);

    (void)type, (void)address, (void)data, (void)info;
    if (size > 0) {
        move(write_bytes, native, message, (size_t)size);
    } else {
        CFSocketInvalidate(socket);
    }
}

static void serve_by_socket(int descriptor)
{
    CFSocketRef socket = CFSocketCreateWithNative(NULL, descriptor, kCFSocketReadCallBack, echo_on_socket, NULL);
    CFRunLoopSourceRef source = CFSocketCreateRunLoopSource(NULL, socket, 0);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    CFRelease(source);
    CFRunLoopRun();
    CFRelease(socket);
}

static void echo_on_stream(CFReadStreamRef reader, CFStreamEventType event, void *info)
{
    uint8_t message[message_size];
    CFWriteStreamRef writer = info;

    if (event == kCFStreamEventHasBytesAvailable) {
        CFIndex size = CFReadStreamRead(reader, message, sizeof message);

        for (CFIndex done = 0, result; done < size; done += result) {
            result = CFWriteStreamWrite(writer, message + done, size - done);
            require(result > 0, "CFWriteStreamWrite");
        }
    } else {
        CFReadStreamClose(reader); /* nothing is in the loop any more */
    }
}

static void open_streams(int descriptor, CFReadStreamClientCallBack function, CFReadStreamRef *ret_reader, CFWriteStreamRef *ret_writer)
{
    CFStreamClientContext context = {0};

    CFStreamCreatePairWithSocket(NULL, descriptor, ret_reader, ret_writer);
    CFReadStreamSetProperty(*ret_reader, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue);
    context.info = *ret_writer;
    CFReadStreamSetClient(*ret_reader, kCFStreamEventHasBytesAvailable | kCFStreamEventEndEncountered | kCFStreamEventErrorOccurred,
                          function, &context);
    CFReadStreamScheduleWithRunLoop(*ret_reader, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    require(CFReadStreamOpen(*ret_reader) && CFWriteStreamOpen(*ret_writer), "opening streams");
}

static void close_streams(CFReadStreamRef reader, CFWriteStreamRef writer)
{
    CFReadStreamClose(reader);
    CFWriteStreamClose(writer);
    CFRelease(reader);
    CFRelease(writer);
}

static void serve_by_streams(int descriptor)
{
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    open_streams(descriptor, echo_on_stream, &reader, &writer);
    CFRunLoopRun();
    close_streams(reader, writer);
}

/* Nanoseconds of one message and its answer. */
static double echo_ns(void (*serve)(int descriptor))
{
    int pair[2];
    pthread_t client;
    int64_t begin = own_ns();

    open_pair(pair);
    require(pthread_create(&client, NULL, talk, &pair[1]) == 0, "pthread_create");
    serve(pair[0]);
    pthread_join(client, NULL);
    return (double)(own_ns() - begin) / messages;
}

/* ---- blocks of 64 KiB ---- */

static void *take_blocks(void *info)
{
    int descriptor = *(int *)info;
    uint8_t *bytes = malloc(block_size);

    require(bytes, "malloc");
    while (read(descriptor, bytes, block_size) > 0) {
    }
    free(bytes);
    close(descriptor);
    return NULL;
}

static void send_bare(int descriptor)
{
    uint8_t *bytes = calloc(1, block_size);

    for (int i = 0; i < blocks; i++) {
        move(write_bytes, descriptor, bytes, block_size);
    }
    free(bytes);
    close(descriptor);
}

struct sender {
    uint8_t *bytes;
    long left;
};

static void send_on_stream(CFWriteStreamRef writer, CFStreamEventType event, void *info)
{
    struct sender *sender = info;
    long at = sender->left % block_size;
    CFIndex result;

    require(event == kCFStreamEventCanAcceptBytes, "the stream");
    result = CFWriteStreamWrite(writer, sender->bytes, at == 0 ? block_size : at);
    require(result > 0, "CFWriteStreamWrite");
    sender->left -= result;
    if (sender->left == 0) {
        CFWriteStreamClose(writer);
    }
}

static void send_by_stream(int descriptor)
{
    struct sender sender = {calloc(1, block_size), (long)block_size * blocks};
    CFStreamClientContext context = {.info = &sender};
    CFWriteStreamRef writer;

    CFStreamCreatePairWithSocket(NULL, descriptor, NULL, &writer);
    CFWriteStreamSetProperty(writer, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue);
    CFWriteStreamSetClient(writer, kCFStreamEventCanAcceptBytes | kCFStreamEventErrorOccurred, send_on_stream, &context);
    CFWriteStreamScheduleWithRunLoop(writer, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    require(CFWriteStreamOpen(writer), "CFWriteStreamOpen");
    CFRunLoopRun();
    CFRelease(writer);
    free(sender.bytes);
}

/* Without a loop: each write waits for room. */
static void send_and_wait(int descriptor)
{
    struct sender sender = {calloc(1, block_size), (long)block_size * blocks};
    CFWriteStreamRef writer;

    CFStreamCreatePairWithSocket(NULL, descriptor, NULL, &writer);
    CFWriteStreamSetProperty(writer, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue);
    require(CFWriteStreamOpen(writer), "CFWriteStreamOpen");
    while (sender.left > 0) {
        send_on_stream(writer, kCFStreamEventCanAcceptBytes, &sender);
    }
    CFRelease(writer);
    free(sender.bytes);
}

/* Waits for room by epoll before each write, as a loop does. */
static void send_by_epoll(int descriptor)
{
    struct sender sender = {calloc(1, block_size), (long)block_size * blocks};
    struct epoll_event event = {.events = EPOLLOUT};
    int set = epoll_create1(EPOLL_CLOEXEC);

    require(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
    while (sender.left > 0) {
        long at = sender.left % block_size;
        ssize_t result;

        require(epoll_wait(set, &event, 1, -1) == 1, "epoll_wait");
        result = send(descriptor, sender.bytes, at == 0 ? block_size : (size_t)at, MSG_DONTWAIT | MSG_NOSIGNAL);
        require(result > 0, "send");
        sender.left -= result;
    }
    close(set);
    close(descriptor);
    free(sender.bytes);
}

/* Nanoseconds of one block, written and read. */
static double block_ns(void (*send_all)(int descriptor))
{
    int pair[2];
    pthread_t taker;
    int64_t begin = own_ns();

    open_pair(pair);
    require(pthread_create(&taker, NULL, take_blocks, &pair[1]) == 0, "pthread_create");
    send_all(pair[0]);
    pthread_join(taker, NULL);
    return (double)(own_ns() - begin) / blocks;
}

/* ---- idle pairs ---- */

static long sleeps;

static void count_sleep(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)activity, (void)info;
    sleeps++;
}

static void wait_by_streams(const int *descriptors, int count)
{
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    for (int i = 0; i < count; i++) {
        open_streams(descriptors[i], echo_on_stream, &reader, &writer); /* they stay until the process ends */
    }
}

static void count_wakings(void)
{
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeWaiting, true, 0, count_sleep, NULL);

    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, false);
    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, kCFRunLoopDefaultMode);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 2, false);
    (void)printf("idle, streams: %ld wake-ups in 2 s\n", sleeps - 1);
    CFRelease(observer);
}

/* In a process of its own, which keeps what the library makes once. */
static void measure_idle_pairs(const char *name, void (*wait_for_bytes)(const int *descriptors, int count))
{
    static int ends[idle_pairs][2];
    static int descriptors[idle_pairs];
    pid_t child = fork();
    size_t before;

    require(child >= 0, "fork");
    if (child > 0) {
        require(waitpid(child, NULL, 0) == child, "waitpid");
        return;
    }
    for (int i = 0; i < idle_pairs; i++) {
        open_pair(ends[i]);
        descriptors[i] = ends[i][0];
    }
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    before = mallinfo2().uordblks;
    wait_for_bytes(descriptors, idle_pairs);
    (void)printf("%-26s %8.0f bytes each\n", name, (double)(mallinfo2().uordblks - before) / idle_pairs);
    if (wait_for_bytes == wait_by_streams) {
        count_wakings();
    }
    (void)fflush(stdout);
    _exit(0);
}

/* ---- all of it ---- */

struct row {
    const char *name;
    double (*measure)(void (*function)(int descriptor));
    void (*function)(int descriptor);
    double values[most_rounds];
};

static int compare(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;

    return (difference > 0) - (difference < 0);
}

int main(int count, char **words)
{
    static struct row rows[] = {
        {.name = "echo, streams", .measure = echo_ns, .function = serve_by_streams},
        {.name = "echo, CFSocket", .measure = echo_ns, .function = serve_by_socket},
        {.name = "echo, bare epoll", .measure = echo_ns, .function = serve_bare},
#if defined(HAS_libuv)
        {.name = "echo, libuv", .measure = echo_ns, .function = serve_by_libuv},
#endif
#if defined(HAS_asio)
        {.name = "echo, Asio", .measure = echo_ns, .function = serve_by_asio},
#endif
#if defined(HAS_gio)
        {.name = "echo, GIO", .measure = echo_ns, .function = serve_by_gio},
#endif
        {.name = "64 KiB, stream on a loop", .measure = block_ns, .function = send_by_stream},
#if defined(HAS_libuv)
        {.name = "64 KiB, libuv", .measure = block_ns, .function = send_by_libuv},
#endif
#if defined(HAS_asio)
        {.name = "64 KiB, Asio", .measure = block_ns, .function = send_by_asio},
#endif
#if defined(HAS_gio)
        {.name = "64 KiB, GIO", .measure = block_ns, .function = send_by_gio},
#endif
        {.name = "64 KiB, bare epoll", .measure = block_ns, .function = send_by_epoll},
        {.name = "64 KiB, stream that waits", .measure = block_ns, .function = send_and_wait},
        {.name = "64 KiB, bare write", .measure = block_ns, .function = send_bare},
    };
    enum { row_count = sizeof rows / sizeof *rows };
    int rounds = count > 1 ? atoi(words[1]) : 7;
    cpu_set_t first;

    if (rounds < 1 || rounds > most_rounds) {
        (void)fprintf(stderr, "usage: streams [ROUNDS]     1 to %d\n", most_rounds);
        return 2;
    }
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    (void)sched_setaffinity(0, sizeof first, &first); /* where it is refused, the figures are those of two processors */
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < row_count; i++) {
            struct row *row = &rows[round % 2 == 0 ? i : row_count - 1 - i];

            row->values[round] = row->measure(row->function);
        }
    }
    for (int i = 0; i < row_count; i++) {
        qsort(rows[i].values, (size_t)rounds, sizeof *rows[i].values, compare);
        (void)printf("%-26s %8.0f ns\n", rows[i].name, rows[i].values[rounds / 2]);
    }
    (void)fflush(stdout);
    measure_idle_pairs("idle, streams", wait_by_streams);
#if defined(HAS_libuv)
    measure_idle_pairs("idle, libuv", wait_by_libuv);
#endif
#if defined(HAS_asio)
    measure_idle_pairs("idle, Asio", wait_by_asio);
#endif
#if defined(HAS_gio)
    measure_idle_pairs("idle, GIO", wait_by_gio);
#endif
    return 0;
}
