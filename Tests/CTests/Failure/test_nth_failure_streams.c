/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th failure on streams: memory, files, bound pairs, and sockets that are given or connect. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "CFNetwork/CFHost.h"
#include "CFNetwork/CFSocketStream.h"
#include "CRLRunLoop.h"
#include "CRLStreamNetwork.h"
#include "Failure/nth_failure.h"
#include "Loop/Core/main_queue.h"
#include "Stream/Core/stream.h"
#include "Stream/Kind/stream_file.h"
#include "Stream/fake_names.h"
#include "Stream/stream_recorder.h"

#define MODE CFSTR("a mode")

static _Atomic int events;
static _Atomic int ends; /* the end, or an error */

static void read_event(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    UInt8 bytes[16];

    (void)info;
    events++;
    if (type == kCFStreamEventHasBytesAvailable) {
        (void)CFReadStreamRead(stream, bytes, sizeof bytes);
    }
    ends += type == kCFStreamEventEndEncountered || type == kCFStreamEventErrorOccurred;
}

static void write_event(CFWriteStreamRef stream, CFStreamEventType type, void *info)
{
    (void)info;
    events++;
    if (type == kCFStreamEventCanAcceptBytes) {
        (void)CFWriteStreamWrite(stream, (const UInt8 *)"abc", 3);
        CFWriteStreamClose(stream);
        ends++;
    }
    ends += type == kCFStreamEventEndEncountered || type == kCFStreamEventErrorOccurred;
}

static CFStreamClientContext context;

/* The stream is the bag's from here on. False: refused. */
static bool watch_reader(CFReadStreamRef stream)
{
    NEED(bag_keep(stream));
    NEED(CFReadStreamSetClient(stream, 31, read_event, &context));
    CFReadStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), MODE);
    return CFReadStreamOpen(stream);
}

static bool watch_writer(CFWriteStreamRef stream)
{
    NEED(bag_keep(stream));
    NEED(CFWriteStreamSetClient(stream, 31, write_event, &context));
    CFWriteStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), MODE);
    return CFWriteStreamOpen(stream);
}

/*
 * Runs what is ready. All that these streams wait for is in the kernel by then. Without memory for its source a stream is told nothing, so
 * that the loop must not wait for it.
 */
static bool run_to_the_ends(int wanted)
{
    enum { enough = 20 };

    for (int i = 0; i < enough && ends < wanted; i++) {
        (void)CFRunLoopRunInMode(MODE, 0, true);
    }
    return ends >= wanted;
}

NTH_FAILURE(streams_of_memory, "301 318")
{
    static const UInt8 bytes[] = "abcdef";
    CFWriteStreamRef writer;

    events = ends = 0;
    NEED(watch_reader(CFReadStreamCreateWithBytesNoCopy(NULL, bytes, 6, kCFAllocatorNull)));
    NEED(writer = CFWriteStreamCreateWithAllocatedBuffers(NULL, NULL));
    NEED(watch_writer(writer));
    NEED(run_to_the_ends(2));
    NEED(bag_keep(CFWriteStreamCopyProperty(writer, kCFStreamPropertyDataWritten)));
    return CFWriteStreamGetError(writer).domain == 0;
}

NTH_FAILURE(a_bound_pair_of_streams, "328")
{
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    bool is_watched;

    events = ends = 0;
    CFStreamCreateBoundPair(NULL, &reader, &writer, 10);
    MUST(!reader == !writer);
    NEED(reader);
    is_watched = watch_reader(reader);
    is_watched = watch_writer(writer) && is_watched;
    NEED(is_watched);
    return run_to_the_ends(2);
}

static void host_answered(CFHostRef host, CFHostInfoType info, const CFStreamError *error, void *context_info)
{
    (void)context_info;
    events++;
    MUST(error->domain != 0 || info != kCFHostReachability || CFHostGetReachability(host, NULL));
}

NTH_FAILURE(hosts_that_ask, "1022")
{
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CFHostClientContext no_info = {0, NULL, NULL, NULL, NULL};
    CFStreamError error = {0, 0};
    CFHostRef host = CFHostCreateWithName(NULL, CFSTR("localhost"));
    CFHostRef addressed;
    CFDataRef data;

    events = 0;
    NEED(bag_keep(host));
    NEED(data = bag_keep(CFDataCreate(NULL, (const UInt8 *)&address, sizeof address)));
    NEED(addressed = CFHostCreateWithAddress(NULL, data));
    NEED(bag_keep(addressed));
    NEED(bag_keep(CFHostCreateCopy(NULL, addressed)));
    NEED(CFHostSetClient(host, host_answered, &no_info));
    CFHostScheduleWithRunLoop(host, CFRunLoopGetCurrent(), MODE);
    NEED(CFHostStartInfoResolution(host, kCFHostReachability, &error));
    for (int i = 0; i < 3 && events == 0; i++) {
        (void)CFRunLoopRunInMode(MODE, 0, true);
    }
    NEED(events > 0 && CFHostGetReachability(host, NULL));
    NEED(CFHostStartInfoResolution(addressed, kCFHostReachability, &error));
    return true;
}

/* A thread that writes as soon as another one sleeps. */
struct late_writer {
    pthread_t thread;
    pid_t sleeper;
    CFWriteStreamRef stream;
    bool has_written;
};

static void *write_late(void *info)
{
    struct late_writer *writer = info;

    while (test_thread_state(writer->sleeper) != 'S') {
        sched_yield();
    }
    writer->has_written = CFWriteStreamWrite(writer->stream, (const UInt8 *)"abc", 3) == 3;
    return NULL;
}

NTH_FAILURE(a_read_that_waits_for_the_other_end_of_its_pair, "328")
{
    struct late_writer writer = {.sleeper = gettid()};
    CFReadStreamRef reader;
    UInt8 bytes[3];

    CFStreamCreateBoundPair(NULL, &reader, &writer.stream, 10);
    NEED(reader);
    (void)bag_keep(reader);
    (void)bag_keep(writer.stream);
    NEED(CFReadStreamOpen(reader));
    NEED(CFWriteStreamOpen(writer.stream));
    MUST(pthread_create(&writer.thread, NULL, write_late, &writer) == 0);
    MUST(CFReadStreamRead(reader, bytes, sizeof bytes) == 3);
    MUST(pthread_join(writer.thread, NULL) == 0);
    return writer.has_written;
}

NTH_FAILURE(streams_of_a_file, "307 308")
{
    char path[] = "/tmp/crl-nth-XXXXXX";
    int made = mkstemp(path);
    int64_t offset = 0;
    CFNumberRef start = bag_keep(CFNumberCreate(NULL, kCFNumberSInt64Type, &offset));
    CFWriteStreamRef writer;
    CFReadStreamRef reader;
    bool is_complete = false;

    MUST(made >= 0 && close(made) == 0);
    events = ends = 0;
    writer = start ? (CFWriteStreamRef)stream_file_create(NULL, path, false) : NULL;
    if (writer && watch_writer(writer) && run_to_the_ends(1)) {
        reader = (CFReadStreamRef)stream_file_create(NULL, path, true);
        is_complete = reader && CFReadStreamSetProperty(reader, kCFStreamPropertyFileCurrentOffset, start) && watch_reader(reader) &&
                      run_to_the_ends(2) && CFReadStreamGetError(reader).domain == 0 &&
                      CFReadStreamSetProperty(reader, kCFStreamPropertyFileCurrentOffset, start) &&
                      bag_keep(CFReadStreamCopyProperty(reader, kCFStreamPropertyFileCurrentOffset));
    }
    unlink(path);
    return is_complete;
}

NTH_FAILURE(a_stream_of_a_fifo, "307 324")
{
    char folder[] = "/tmp/crl-nth-XXXXXX";
    char path[sizeof folder + sizeof "/fifo"];
    CFReadStreamRef reader;
    bool is_complete;

    MUST(mkdtemp(folder) && snprintf(path, sizeof path, "%s/fifo", folder) > 0 && mkfifo(path, 0600) == 0);
    MUST(write(bag_keep_descriptor(open(path, O_RDWR | O_CLOEXEC)), "a", 1) == 1);
    reader = bag_keep(stream_file_create(NULL, path, true));
    is_complete = reader && CFReadStreamOpen(reader) && CFReadStreamHasBytesAvailable(reader);
    MUST(unlink(path) == 0 && rmdir(folder) == 0);
    return is_complete;
}

static ssize_t (*read_of_the_table)(int descriptor, void *bytes, size_t size);

/* The first time the pipe seems to be empty. */
static ssize_t read_later(int descriptor, void *bytes, size_t size)
{
    kernel.file_read = read_of_the_table;
    (void)descriptor, (void)bytes, (void)size;
    return -EAGAIN;
}

NTH_FAILURE(a_stream_of_a_pipe_that_never_waits, "307 323")
{
    CFReadStreamRef reader;
    UInt8 byte;
    int ends_of_pipe[2];
    bool is_read = false;

    MUST(pipe2(ends_of_pipe, O_CLOEXEC | O_NONBLOCK) == 0);
    (void)bag_keep_descriptor(ends_of_pipe[0]);
    MUST(write(bag_keep_descriptor(ends_of_pipe[1]), "a", 1) == 1);
    reader = CRLReadStreamCreateWithDescriptor(NULL, ends_of_pipe[0], false);
    if (bag_keep(reader) && CFReadStreamOpen(reader)) {
        read_of_the_table = kernel.file_read;
        kernel.file_read = read_later;
        is_read = CFReadStreamRead(reader, &byte, 1) == 1;
        kernel.file_read = read_of_the_table;
    }
    return is_read;
}

NTH_FAILURE(streams_of_a_socket, "323 324 326")
{
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    bool is_watched;
    int pair[2];
    char bytes[3];

    events = ends = 0;
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    (void)bag_keep_descriptor(pair[0]);
    CFStreamCreatePairWithSocket(NULL, pair[0], &reader, &writer);
    MUST(!reader == !writer);
    if (reader) {
        is_watched = watch_reader(reader);
        is_watched = watch_writer(writer) && is_watched;
    }
    is_watched = reader && is_watched && run_to_the_ends(1);
    if (is_watched && CFWriteStreamGetError(writer).domain == 0) {
        MUST(read(pair[1], bytes, 3) == 3);
        MUST(write(pair[1], bytes, 3) == 3);
    }
    close(pair[1]);
    return is_watched && run_to_the_ends(2) && CFReadStreamGetError(reader).domain == 0 && CFWriteStreamGetError(writer).domain == 0;
}

static int open_listener(UInt32 *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    MUST(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 4) == 0);
    MUST(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    *ret_port = ntohs(address.sin_port);
    return bag_keep_descriptor(listener);
}

NTH_FAILURE(streams_to_a_host, "329 330 331 333")
{
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    UInt32 port;
    bool is_watched;

    events = ends = 0;
    (void)open_listener(&port);
    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("localhost"), port, &reader, &writer);
    MUST(!reader == !writer);
    NEED(reader);
    (void)bag_keep(reader);
    is_watched = watch_writer(writer);
    NEED(is_watched);
    NEED(CFReadStreamOpen(reader));
    MUST(CFReadStreamGetStatus(reader) != kCFStreamStatusNotOpen);
    NEED(CFWriteStreamWrite(writer, (const UInt8 *)"a", 1) == 1); /* waits for the connection */
    NEED(run_to_the_ends(1));
    NEED(bag_keep(CFReadStreamCopyProperty(reader, kCFStreamPropertySocketRemotePortNumber)));
    NEED(bag_keep(CFReadStreamCopyProperty(reader, kCFStreamPropertySocketNativeHandle)));
    return CFWriteStreamGetError(writer).domain == 0;
}

NTH_FAILURE(streams_to_a_signature, "329 333")
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CFSocketSignature signature = {PF_INET, SOCK_STREAM, 0, NULL};
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    UInt32 port;

    events = ends = 0;
    (void)open_listener(&port);
    address.sin_port = htons((uint16_t)port);
    NEED(signature.address = bag_keep(CFDataCreate(NULL, (const UInt8 *)&address, sizeof address)));
    CFStreamCreatePairWithPeerSocketSignature(NULL, &signature, &reader, &writer);
    MUST(!reader == !writer);
    NEED(reader);
    (void)bag_keep(reader);
    (void)bag_keep(writer);
    NEED(CFWriteStreamOpen(writer));
    NEED(CFWriteStreamWrite(writer, (const UInt8 *)"a", 1) == 1); /* waits for the connection without a loop */
    NEED(CFWriteStreamCanAcceptBytes(writer));
    NEED(stream_write_now((struct stream *)(uintptr_t)writer, (const UInt8 *)"b", 1) == 1);
    NEED(bag_keep(CFWriteStreamCopyProperty(writer, kCFStreamPropertySocketRemoteHostName)));
    CFWriteStreamSetProperty(writer, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNone);
    return CFWriteStreamGetError(writer).domain == 0;
}

/* Two addresses, the first of which is refused. */
NTH_FAILURE(streams_to_a_name_with_a_limit, "331 334 343")
{
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    CFNumberRef limit;
    UInt32 port;

    fake_names_install();
    (void)open_listener(&port);
    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("host.example"), port, &reader, &writer);
    NEED(reader);
    (void)bag_keep(reader);
    (void)bag_keep(writer);
    NEED(limit = bag_keep(CFNumberCreate(NULL, kCFNumberDoubleType, &(double){100})));
    NEED(CFWriteStreamSetProperty(writer, kCRLStreamPropertyOpeningTimeout, limit));
    NEED(bag_keep(CFReadStreamCopyProperty(reader, kCRLStreamPropertyOpeningTimeout)));
    NEED(CFWriteStreamOpen(writer));
    NEED(CFWriteStreamGetStatus(writer) == kCFStreamStatusOpening);
    fake_names_answer((const int[]){refusing_port, (int)port}, 2);
    NEED(CFWriteStreamWrite(writer, (const UInt8 *)"a", 1) == 1);
    return CFWriteStreamGetError(writer).domain == 0;
}

static int64_t (*clock_of_the_table)(void);
static int64_t passed_ns;

/* Each look at it finds that it is time for the next attempt. */
static int64_t hasty_clock(void)
{
    passed_ns += 250000000;
    return clock_of_the_table() + passed_ns;
}

/* So many silent addresses that one attempt takes another's place, and then one that accepts. */
NTH_FAILURE(streams_to_a_name_of_many_addresses, "331 334")
{
    enum { silent_count = 9, looks = 100 };
    int ports[silent_count + 1];
    struct swallower silent;
    CFWriteStreamRef writer;
    UInt32 port;
    bool is_open = false;

    fake_names_install();
    (void)open_listener(&port);
    swallower_open(&silent);
    for (int i = 0; i < silent_count; i++) {
        ports[i] = silent.port;
    }
    ports[silent_count] = (int)port;
    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("host.example"), port, NULL, &writer);
    if (bag_keep(writer) && CFWriteStreamOpen(writer) && CFWriteStreamGetStatus(writer) == kCFStreamStatusOpening) {
        fake_names_answer(ports, silent_count + 1);
        clock_of_the_table = kernel.monotonic_ns;
        kernel.monotonic_ns = hasty_clock;
        for (int i = 0; i < looks && CFWriteStreamGetStatus(writer) == kCFStreamStatusOpening; i++) {
        }
        is_open = CFWriteStreamGetStatus(writer) == kCFStreamStatusOpen;
        kernel.monotonic_ns = clock_of_the_table;
    }
    swallower_close(&silent);
    return is_open;
}

/* ---- an add-on library whose handshake is done at the second try, and that sends nothing ---- */

static int handshakes;

static void *create_session(int socket, CFStringRef host, CFDictionaryRef settings, CFStreamError *error)
{
    (void)socket, (void)host, (void)settings, (void)error;
    handshakes = 0;
    return &handshakes;
}

static int shake_hands(void *session, UInt32 *waits, CFStreamError *error)
{
    (void)session, (void)error;
    *waits = kCRLStreamWaitsToWrite;
    return handshakes++ == 0 ? -EAGAIN : 0;
}

static CFIndex send_bytes(void *session, const UInt8 *bytes, CFIndex size, UInt32 *waits, CFStreamError *error)
{
    (void)session, (void)bytes, (void)waits, (void)error;
    return size;
}

static void free_session(void *session)
{
    (void)session;
}

NTH_FAILURE(a_stream_that_waits_for_a_handshake, "334 343")
{
    static const CRLStreamNetwork network = {
        .createSession = create_session, .handshake = shake_hands, .send = send_bytes, .freeSession = free_session};
    CFWriteStreamRef writer;
    CFNumberRef limit;
    UInt32 port;

    CRLStreamSetNetwork(&network);
    (void)open_listener(&port);
    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("127.0.0.1"), port, NULL, &writer);
    NEED(writer);
    (void)bag_keep(writer);
    NEED(CFWriteStreamSetProperty(writer, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelTLSv1));
    NEED(limit = bag_keep(CFNumberCreate(NULL, kCFNumberDoubleType, &(double){100})));
    NEED(CFWriteStreamSetProperty(writer, kCRLStreamPropertyOpeningTimeout, limit));
    NEED(CFWriteStreamOpen(writer));
    return CFWriteStreamWrite(writer, (const UInt8 *)"a", 1) == 1;
}

/* ---- a dispatch queue ---- */

extern char _dispatch_main_q[] __attribute__((weak));
extern void _dispatch_main_queue_callback_4CF(void *unused) __attribute__((weak));
extern void dispatch_release(void *object) __attribute__((weak));
/* By their link names: the header declares them where the dispatch headers are. */
void put_on_queue(CFReadStreamRef stream, void *queue) __asm__("crl_CFReadStreamSetDispatchQueue");
void *copy_queue(CFReadStreamRef stream) __asm__("crl_CFReadStreamCopyDispatchQueue");

static int lowest_free_descriptor(void)
{
    int descriptor = dup(STDERR_FILENO);

    MUST(descriptor >= 0 && close(descriptor) == 0);
    return descriptor;
}

/* libdispatch lets go of the descriptors some time after the stream has left the queue. */
static void await_descriptor(int lowest_free)
{
    double deadline = CFAbsoluteTimeGetCurrent() + test_patience_s();

    while (lowest_free_descriptor() > lowest_free && CFAbsoluteTimeGetCurrent() < deadline) {
        _dispatch_main_queue_callback_4CF(NULL);
        (void)sched_yield();
    }
    MUST(lowest_free_descriptor() == lowest_free);
}

/* Makes libdispatch's manager and its descriptors. */
static bool begin_and_end_a_queue(void)
{
    CFReadStreamRef reader = CFReadStreamCreateWithBytesNoCopy(NULL, (const UInt8 *)"a", 1, kCFAllocatorNull);
    int lowest_free = lowest_free_descriptor();

    MUST(reader);
    put_on_queue(reader, _dispatch_main_q);
    CFRelease(reader);
    await_descriptor(lowest_free);
    return true;
}

/* Runs the main queue. A stream that could not be watched is told again when it is put on the queue anew. */
static void run_queue_until(const _Atomic int *counter, int wanted, CFReadStreamRef reader)
{
    enum { turns = 100 };
    double deadline = CFAbsoluteTimeGetCurrent() + test_patience_s();

    while (*counter < wanted && CFAbsoluteTimeGetCurrent() < deadline) {
        for (int i = 0; i < turns && *counter < wanted; i++) {
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.001, false);
        }
        if (*counter < wanted) {
            put_on_queue(reader, _dispatch_main_q);
        }
    }
    MUST(*counter >= wanted);
}

static bool tell_on_the_queue(CFReadStreamRef reader, int peer)
{
    void *queue;

    put_on_queue(reader, _dispatch_main_q);
    queue = copy_queue(reader);
    NEED(queue);
    dispatch_release(queue);
    NEED(CFReadStreamOpen(reader));
    run_queue_until(&events, 1, reader);
    MUST(write(peer, "abc", 3) == 3);
    run_queue_until(&events, 2, reader);
    MUST(shutdown(peer, SHUT_WR) == 0);
    run_queue_until(&ends, 1, reader);
    return CFReadStreamGetError(reader).domain == 0;
}

static bool be_told_by_a_queue(void)
{
    CFReadStreamRef reader;
    bool is_complete;
    int lowest_free;
    int pair[2];

    events = ends = 0;
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    (void)bag_keep_descriptor(pair[0]);
    (void)bag_keep_descriptor(pair[1]);
    lowest_free = lowest_free_descriptor();
    CFStreamCreatePairWithSocket(NULL, pair[0], &reader, NULL);
    NEED(reader);
    NEED(bag_keep(reader) && CFReadStreamSetClient(reader, 31, read_event, &context));
    is_complete = tell_on_the_queue(reader, pair[1]);
    CFReadStreamClose(reader);
    put_on_queue(reader, NULL); /* of a stream that was not opened */
    await_descriptor(lowest_free);
    return is_complete;
}

TEST_LIMIT(nth_failure_a_stream_on_a_dispatch_queue, "338 342", 120)
{
    if (!_dispatch_main_queue_callback_4CF) {
        SKIP("there is no libdispatch in the process");
    }
    main_queue_is_abandoned = false;
    test_allow_left(1, 0); /* the queue's descriptor */
    REQUIRE(main_queue_descriptor() >= 0);
    nth_failure_run_primed("a_stream_on_a_dispatch_queue", be_told_by_a_queue, begin_and_end_a_queue);
}
