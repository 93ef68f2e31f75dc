/* SPDX-License-Identifier: Apache-2.0 */
/* Write queues before sockets: order, the limit, the mark, the counts, and who is gone first. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Loop/loop_probe.h"
#include "Write/write_kernel.h"
#include "write_probe.h"

enum { large = 1 << 20 };

TEST(a_write_queue_keeps_order_before_a_reader_that_stops, "")
{
    struct write_probe probe = {.peer = -1};
    CRLWriteQueueCounts counts;

    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    for (size_t size = 1; size < 1000; size++) {
        EXPECT_EQ(write_probe_ask(&probe, size), kCRLWriteTaken);
    }
    write_probe_run();
    counts = write_probe_counts(&probe);
    EXPECT(counts.waiting > 400000);
    EXPECT_EQ(counts.written + (uint64_t)counts.waiting, probe.asked);
    EXPECT_EQ(counts.taken, probe.asked);
    EXPECT_TRACE(&probe.told, "");
    write_probe_read_all(&probe);
    write_probe_run();
    counts = write_probe_counts(&probe);
    EXPECT_EQ(counts.waiting, 0);
    EXPECT_EQ(counts.written, probe.asked);
    EXPECT_EQ(counts.error, 0);
    EXPECT_TRACE(&probe.told, "room");
    write_probe_end(&probe);
}

TEST(a_write_queue_refuses_whole_what_is_beyond_its_limit, "")
{
    struct write_probe probe = {.peer = -1};
    CRLWriteQueueCounts counts;

    write_probe_begin(&probe, 5000, 4000, kCFSocketNoCallBack);
    EXPECT_EQ(write_probe_ask(&probe, 5001), kCRLWriteRefused); /* also where there would be room for a part */
    EXPECT_EQ(write_probe_counts(&probe).written, 0);
    EXPECT_EQ(write_probe_ask(&probe, 0), kCRLWriteTaken);
    write_probe_fill(&probe);
    while (write_probe_ask(&probe, 100) == kCRLWriteTaken) {
    }
    counts = write_probe_counts(&probe);
    EXPECT(counts.waiting > 4900 && counts.waiting <= 5000);
    EXPECT_EQ(counts.refused, 5101);
    EXPECT_EQ(write_probe_ask(&probe, (size_t)(5000 - counts.waiting)), kCRLWriteTaken);
    EXPECT_EQ(write_probe_counts(&probe).waiting, 5000);
    EXPECT_EQ(write_probe_ask(&probe, 1), kCRLWriteRefused);
    write_probe_run();
    EXPECT_TRACE(&probe.told, "");
    write_probe_read_all(&probe);
    write_probe_run();
    EXPECT_TRACE(&probe.told, "room");
    write_probe_end(&probe);
}

/* A refusal below the mark is told of as well, or its program would wait for ever. */
TEST(a_refusal_below_the_mark_is_followed_by_room, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin(&probe, 5000, 4999, kCFSocketNoCallBack);
    write_probe_fill(&probe);
    EXPECT_EQ(write_probe_ask(&probe, 5000), kCRLWriteRefused);
    write_probe_read_all(&probe);
    write_probe_run();
    EXPECT_TRACE(&probe.told, "room");
    EXPECT_EQ(write_probe_ask(&probe, 5000), kCRLWriteTaken);
    write_probe_end(&probe);
}

static void ask_for_more(struct write_probe *probe)
{
    if (probe->asked < large) {
        write_probe_fill(probe);
    }
}

TEST(a_write_queue_is_filled_again_by_its_callback, "")
{
    struct write_probe probe = {.peer = -1, .action = ask_for_more};

    write_probe_begin(&probe, 5000, 10, kCFSocketNoCallBack);
    write_probe_fill(&probe);
    write_probe_read_all(&probe);
    EXPECT(probe.asked >= large);
    write_probe_end(&probe);
}

/* The socket's Write comes once, as without a queue, and again when the program enables it. */
TEST(a_write_queue_leaves_the_write_callback_to_the_program, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin(&probe, large, 0, kCFSocketWriteCallBack);
    write_probe_run();
    EXPECT_TRACE(&probe.told, "own");
    write_probe_fill(&probe);
    write_probe_read_all(&probe);
    write_probe_run();
    EXPECT_TRACE(&probe.told, "own room");
    write_probe_fill(&probe);
    CFSocketEnableCallBacks(probe.socket, kCFSocketWriteCallBack);
    write_probe_run();
    EXPECT_TRACE(&probe.told, "own room");
    write_probe_read_all(&probe);
    write_probe_run();
    EXPECT(strcmp(probe.told.text, "own room own room") == 0 || strcmp(probe.told.text, "own room room own") == 0);
    write_probe_end(&probe);
}

TEST(invalidating_the_socket_drops_what_waits, "")
{
    struct write_probe probe = {.peer = -1};
    CRLWriteQueueCounts counts;

    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    write_probe_fill(&probe);
    CFSocketInvalidate(probe.socket);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e9, false), kCFRunLoopRunFinished); /* nothing keeps the run */
    EXPECT(write_probe_read(&probe, SIZE_MAX)); /* the connection is closed */
    EXPECT(probe.seen < probe.asked && !probe.is_wrong);
    counts = write_probe_counts(&probe);
    EXPECT_EQ(counts.waiting, 0);
    EXPECT_EQ(counts.error, EBADF);
    EXPECT_EQ(write_probe_ask(&probe, 1), kCRLWriteFailed);
    EXPECT_EQ(errno, EBADF);
    EXPECT_TRACE(&probe.told, "");
    write_probe_end(&probe);
}

static void invalidate_socket(void *socket)
{
    CFSocketInvalidate(socket);
}

TEST(a_socket_that_another_thread_invalidates_ends_the_wait, "")
{
    struct write_probe probe = {.peer = -1};
    struct probe_thread thread;

    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    write_probe_fill(&probe);
    probe_thread_when_waiting(&thread, CFRunLoopGetCurrent(), invalidate_socket, probe.socket);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e9, false), kCFRunLoopRunFinished);
    probe_thread_join(&thread);
    EXPECT(write_probe_read(&probe, SIZE_MAX));
    write_probe_end(&probe);
}

static void invalidate_after_waiting(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *socket)
{
    (void)observer;
    (void)activity;
    CFSocketInvalidate(socket);
}

/* The loop has found room by then, and calls the queue. */
TEST(a_socket_that_is_invalidated_within_the_pass_writes_nothing_more, "")
{
    struct write_probe probe = {.peer = -1};
    CFRunLoopObserverContext context = {0};
    CFRunLoopObserverRef observer;
    uint64_t written;

    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    write_probe_fill(&probe);
    written = write_probe_counts(&probe).written;
    EXPECT(!write_probe_read(&probe, SIZE_MAX));
    context.info = probe.socket;
    observer = CFRunLoopObserverCreate(NULL, kCFRunLoopAfterWaiting, true, 0, invalidate_after_waiting, &context);
    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, kCFRunLoopDefaultMode);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e9, false), kCFRunLoopRunFinished);
    EXPECT(write_probe_read(&probe, SIZE_MAX));
    EXPECT_EQ(probe.seen, written);
    EXPECT_EQ(write_probe_counts(&probe).error, EBADF);
    EXPECT_TRACE(&probe.told, "");
    CFRunLoopObserverInvalidate(observer);
    CFRelease(observer);
    write_probe_end(&probe);
}

static CFSocketRef copied_socket;
static int (*linux_copy)(int descriptor);
static int last_copy;

static int invalidate_and_copy(int descriptor)
{
    last_copy = linux_copy(descriptor);
    CFSocketInvalidate(copied_socket);
    return last_copy;
}

/* By another thread, between the look at its number and the copy, which may be another file's. */
TEST(a_socket_that_is_invalidated_while_it_is_copied_is_not_written, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    copied_socket = probe.socket;
    linux_copy = write_kernel.descriptor_copy;
    write_kernel.descriptor_copy = invalidate_and_copy;
    EXPECT_EQ(write_probe_ask(&probe, 10), kCRLWriteFailed);
    EXPECT_EQ(errno, EBADF);
    EXPECT(last_copy >= 0 && fcntl(last_copy, F_GETFD) < 0); /* it is closed */
    EXPECT(write_probe_read(&probe, SIZE_MAX));
    EXPECT_EQ(probe.seen, 0);
    write_probe_end(&probe);
}

TEST(a_peer_that_is_gone_is_told_without_sigpipe, "")
{
    struct write_probe probe = {.peer = -1};

    EXPECT(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    write_probe_fill(&probe);
    close(probe.peer);
    probe.peer = dup(0);
    write_probe_run();
    EXPECT(strcmp(probe.told.text, "failed:32") == 0 || strcmp(probe.told.text, "failed:104") == 0);
    EXPECT_EQ(write_probe_counts(&probe).waiting, 0);
    EXPECT_EQ(write_probe_ask(&probe, 1), kCRLWriteFailed);
    EXPECT_EQ(errno, write_probe_counts(&probe).error);
    write_probe_end(&probe);
}

TEST(a_write_itself_tells_a_peer_that_is_gone, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    close(probe.peer);
    probe.peer = dup(0);
    EXPECT_EQ(write_probe_ask(&probe, 10), kCRLWriteFailed);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(write_probe_counts(&probe).error, EPIPE);
    write_probe_run();
    EXPECT_TRACE(&probe.told, "");
    write_probe_end(&probe);
}

/* As a program sets it that wants no further descriptor. */
TEST(a_write_without_a_descriptor_left_takes_nothing_and_the_queue_goes_on, "")
{
    struct write_probe probe = {.peer = -1};
    struct rlimit limit;
    struct rlimit lower;

    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    lower = limit;
    for (lower.rlim_cur = 0; lower.rlim_cur <= 3; lower.rlim_cur++) {
        REQUIRE(setrlimit(RLIMIT_NOFILE, &lower) == 0);
        EXPECT_EQ(write_probe_ask(&probe, 10), kCRLWriteFailed);
        EXPECT_EQ(errno, EMFILE);
        EXPECT_EQ(write_probe_counts(&probe).error, 0);
    }
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    EXPECT_EQ(write_probe_ask(&probe, 10), kCRLWriteTaken);
    write_probe_read_all(&probe);
    write_probe_end(&probe);
}

static void give_up(struct write_probe *probe)
{
    CRLWriteQueueInvalidate(probe->queue);
}

TEST(a_callback_may_end_its_queue, "")
{
    struct write_probe probe = {.peer = -1, .action = give_up};

    write_probe_begin(&probe, large, 10, kCFSocketNoCallBack);
    write_probe_fill(&probe);
    CRLWriteQueueFinish(probe.queue);
    write_probe_read_all(&probe);
    write_probe_run();
    EXPECT_TRACE(&probe.told, "room"); /* and not finished: it was invalidated before */
    EXPECT_EQ(write_probe_counts(&probe).error, EBADF);
    write_probe_end(&probe);
}

/* ---- finishing ---- */

TEST(a_queue_that_finishes_outlives_its_socket_and_its_release, "")
{
    struct write_probe probe = {.peer = -1};
    CRLWriteQueueRef queue;

    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    write_probe_fill(&probe);
    CRLWriteQueueFinish(probe.queue);
    EXPECT_EQ(write_probe_ask(&probe, 1), kCRLWriteFailed);
    EXPECT_EQ(errno, ESHUTDOWN);
    queue = probe.queue;
    CFSocketInvalidate(probe.socket);
    CFRelease(probe.socket);
    CFRelease(queue);
    write_probe_read_all(&probe);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e9, false), kCFRunLoopRunFinished);
    EXPECT(write_probe_read(&probe, 1)); /* closed */
    EXPECT_TRACE(&probe.told, "room finished");
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    EXPECT_EQ(probe.releases, 1);
    close(probe.peer);
}

TEST(an_empty_queue_finishes_at_once, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    CRLWriteQueueFinish(probe.queue);
    CRLWriteQueueFinish(probe.queue);
    write_probe_run();
    EXPECT_TRACE(&probe.told, "");
    EXPECT_EQ(write_probe_counts(&probe).error, 0);
    CRLWriteQueueInvalidate(probe.queue);
    write_probe_end(&probe);
}

/* ---- loops ---- */

TEST(a_write_queue_without_a_loop_waits_for_one, "")
{
    struct write_probe probe = {.peer = -1};
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    EXPECT(CRLWriteQueueScheduleWithRunLoop(probe.queue, loop, CFSTR("another")));
    write_probe_fill(&probe);
    CRLWriteQueueUnscheduleFromRunLoop(probe.queue, loop, kCFRunLoopDefaultMode);
    CRLWriteQueueUnscheduleFromRunLoop(probe.queue, loop, kCFRunLoopDefaultMode);
    (void)write_probe_read(&probe, SIZE_MAX);
    write_probe_run();
    EXPECT(write_probe_counts(&probe).waiting > 0); /* only the other mode serves it */
    EXPECT_EQ(CFRunLoopRunInMode(CFSTR("another"), 1e9, false), kCFRunLoopRunFinished);
    EXPECT_EQ(write_probe_counts(&probe).waiting, 0);
    CRLWriteQueueUnscheduleFromRunLoop(probe.queue, loop, CFSTR("another"));
    write_probe_fill(&probe);
    (void)write_probe_read(&probe, SIZE_MAX);
    write_probe_run();
    EXPECT(write_probe_counts(&probe).waiting > 0);
    EXPECT(CRLWriteQueueScheduleWithRunLoop(probe.queue, loop, CFSTR("another")));
    EXPECT(CRLWriteQueueScheduleWithRunLoop(probe.queue, loop, kCFRunLoopDefaultMode));
    write_probe_read_all(&probe);
    write_probe_end(&probe);
}

static void schedule_elsewhere(void *queue)
{
    EXPECT(!CRLWriteQueueScheduleWithRunLoop(queue, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    CRLWriteQueueUnscheduleFromRunLoop(queue, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
}

TEST(a_write_queue_is_on_one_loop, "")
{
    struct write_probe probe = {.peer = -1};

    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    probe_on_thread(schedule_elsewhere, probe.queue);
    write_probe_fill(&probe);
    write_probe_read_all(&probe);
    write_probe_end(&probe);
}

static void drop_unscheduled(void *unused)
{
    struct write_probe probe = {.peer = -1};

    (void)unused;
    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    CRLWriteQueueUnscheduleFromRunLoop(probe.queue, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    write_probe_fill(&probe);
    CFRelease(probe.queue); /* with bytes that nobody will write */
    EXPECT_EQ(probe.releases, 1);
    CFSocketInvalidate(probe.socket);
    CFRelease(probe.socket);
    EXPECT(write_probe_read(&probe, SIZE_MAX));
    close(probe.peer);
}

TEST(a_released_queue_without_a_loop_drops_what_waits, "")
{
    probe_on_thread(drop_unscheduled, NULL);
}

enum { writers = 4, lines = 2000 };

static void write_lines(void *info)
{
    struct write_probe *probe = info;

    for (int i = 0; i < lines; i++) {
        while (CRLWriteQueueWrite(probe->queue, (const UInt8 *)"0123456789abcdef", 16) != kCRLWriteTaken) {
        }
    }
}

/* The peer sees no piece of one write within another. */
TEST(threads_write_to_one_queue, "")
{
    struct write_probe probe = {.peer = -1};
    struct probe_thread threads[writers];
    char got[writers * lines * 16];
    size_t count = 0;
    bool is_wrong = false;

    write_probe_begin(&probe, 10000, 0, kCFSocketNoCallBack);
    for (int i = 0; i < writers; i++) {
        probe_thread_start(&threads[i], write_lines, &probe);
    }
    while (count < sizeof got) {
        ssize_t more = read(probe.peer, got + count, sizeof got - count);

        count += more > 0 ? (size_t)more : 0;
        write_probe_run();
    }
    for (int i = 0; i < writers; i++) {
        probe_thread_join(&threads[i]);
    }
    for (size_t i = 0; i < sizeof got; i++) {
        is_wrong |= got[i] != "0123456789abcdef"[i % 16];
    }
    EXPECT(!is_wrong);
    write_probe_end(&probe);
}

TEST(the_child_of_a_fork_writes_nothing, "")
{
    struct write_probe probe = {.peer = -1};
    pid_t child;
    int status = -1;

    write_probe_begin(&probe, large, 0, kCFSocketNoCallBack);
    write_probe_fill(&probe);
    (void)write_probe_read(&probe, SIZE_MAX);
    child = fork();
    if (child == 0) {
        CRLWriteResult result = CRLWriteQueueWrite(probe.queue, (const UInt8 *)"x", 1);
        bool is_refused = result == kCRLWriteFailed && errno == ECHILD;

        CFSocketInvalidate(probe.socket);
        _exit(is_refused && CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e9, false) == kCFRunLoopRunFinished ? 0 : 1);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
    write_probe_read_all(&probe);
    write_probe_end(&probe);
}

/* ---- connecting ---- */

TEST(a_socket_that_connects_gets_what_waited, "")
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct write_probe probe = {.peer = -1};
    CFDataRef to;
    char text[16];

    REQUIRE(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 1) == 0 &&
            getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    to = CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);
    probe.socket = CFSocketCreate(NULL, PF_INET, SOCK_STREAM, 0, kCFSocketNoCallBack, NULL, NULL);
    EXPECT_EQ(CFSocketConnectToAddress(probe.socket, to, -1), kCFSocketSuccess);
    probe.queue = CRLWriteQueueCreateWithSocket(NULL, probe.socket, 100, 0, NULL, NULL);
    EXPECT(CRLWriteQueueScheduleWithRunLoop(probe.queue, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    EXPECT_EQ(CRLWriteQueueWrite(probe.queue, (const UInt8 *)"early", 5), kCRLWriteTaken);
    while (write_probe_counts(&probe).waiting > 0) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1, true);
    }
    probe.peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    EXPECT_EQ(read(probe.peer, text, sizeof text), 5);
    close(probe.peer);
    close(listener);
    CFRelease(to);
    CFSocketInvalidate(probe.socket);
    CFRelease(probe.socket);
    CFRelease(probe.queue);
}

/* ---- what is refused ---- */

TEST(a_write_queue_says_what_it_cannot_be, "")
{
    CRLSourceContext wrong = {.version = 1};
    struct write_probe probe = {.peer = -1};
    CFSocketRef datagrams = CFSocketCreate(NULL, PF_INET, SOCK_DGRAM, 0, kCFSocketNoCallBack, NULL, NULL);
    CFStringRef text;

    write_probe_begin(&probe, 1, 0, kCFSocketNoCallBack);
    EXPECT(!CRLWriteQueueCreateWithSocket(NULL, probe.socket, 0, 0, NULL, NULL) && errno == EINVAL);
    EXPECT(!CRLWriteQueueCreateWithSocket(NULL, probe.socket, 1, -1, NULL, NULL) && errno == EINVAL);
    EXPECT(!CRLWriteQueueCreateWithSocket(NULL, probe.socket, 1, 1, NULL, &wrong) && errno == EINVAL);
    EXPECT(!CRLWriteQueueCreateWithSocket(NULL, datagrams, 1, 1, NULL, NULL) && errno == EPROTOTYPE);
    CFSocketInvalidate(datagrams);
    EXPECT(!CRLWriteQueueCreateWithSocket(NULL, datagrams, 1, 1, NULL, NULL) && errno == EBADF);
    EXPECT(CRLWriteQueueWrite(probe.queue, NULL, -1) == kCRLWriteFailed && errno == EINVAL);
    text = CFCopyDescription(probe.queue);
    EXPECT(CFStringGetLength(text) > 50);
    CFRelease(text);
    CFRelease(datagrams);
    EXPECT_STOPS("CRLWriteQueueWrite: the queue is NULL", (void)CRLWriteQueueWrite(NULL, NULL, 0));
    EXPECT_STOPS("CRLWriteQueueCreateWithStream: the stream is another object",
                 (void)CRLWriteQueueCreateWithStream(NULL, (CFWriteStreamRef)(uintptr_t)probe.socket, 1, 1, NULL, NULL));
    write_probe_end(&probe);
}
