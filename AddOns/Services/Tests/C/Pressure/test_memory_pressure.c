/* SPDX-License-Identifier: Apache-2.0 */
/* What memory pressure sources tell: of what a manager gives, of a control group that is made up, and of the kernel's own files. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLMemoryPressure.h"
#include "File/notify_kernel.h"
#include "Pressure/pressure_kernel.h"
#include "harness.h"
#include "scratch_folder.h"

static const CFOptionFlags everything = 0x7;

/* ---- the probe ---- */

static char told[32]; /* a letter for each call: N, W or C */

static void note_level(CFRunLoopSourceRef source, CFOptionFlags level, void *info)
{
    static const char letters[] = "?NW?C";
    size_t count = strlen(told);

    (void)source;
    (void)info;
    REQUIRE(level < sizeof letters - 1 && count < sizeof told - 1);
    told[count] = letters[level];
}

static void expect_told(const char *levels)
{
    while (CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true) == kCFRunLoopRunHandledSource) {
    }
    EXPECT_STR(told, levels);
    memset(told, 0, sizeof told);
}

static CFRunLoopSourceRef create(CFOptionFlags levels, const CRLSourceContext *context)
{
    errno = 0;
    return CRLMemoryPressureSourceCreate(NULL, levels, 0, note_level, context);
}

static CFRunLoopSourceRef listen_for(CFOptionFlags levels)
{
    CFRunLoopSourceRef source = create(levels, NULL);

    REQUIRE(source);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    return source;
}

static void give_up(CFRunLoopSourceRef source)
{
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
}

/* ---- a machine that is made up: its time stands, and its control group is files in the folder of the test ---- */

static int span_alarm = -1;
static int64_t span_end_ns;
static const char *groups = "";

static int64_t one_second(void)
{
    return 1000000000;
}

static int alarm_noted(int alarm, int64_t when_ns)
{
    span_alarm = alarm;
    span_end_ns = when_ns;
    return notify_kernel_linux.alarm_set(alarm, 0);
}

static void end_span(void)
{
    EXPECT_EQ(span_end_ns, 6000000000);
    EXPECT_EQ(notify_kernel_linux.alarm_set(span_alarm, 1), 0);
    EXPECT_EQ(poll(&(struct pollfd){span_alarm, POLLIN, 0}, 1, (int)(test_patience_s() * 1000)), 1); /* it comes by an interrupt */
}

static ssize_t text_made_up(const char *path, char *text, size_t size)
{
    if (strcmp(path, "/proc/self/cgroup") == 0) {
        (void)snprintf(text, size, "%s", groups);
        return (ssize_t)strlen(text);
    }
    return strcmp(path, "/sys/fs/cgroup/app/memory.events") == 0 ? pressure_kernel_linux.text_read("events", text, size) : -ENOENT;
}

static int watch_made_up(int notify, const char *path, uint32_t mask)
{
    EXPECT_STR(path, "/sys/fs/cgroup/app/memory.events");
    return notify_kernel_linux.watch_add(notify, "events", mask);
}

static void install(void)
{
    notify_kernel.now_ns = one_second;
    notify_kernel.alarm_set = alarm_noted;
    notify_kernel.watch_add = watch_made_up;
    pressure_kernel.text_read = text_made_up;
    (void)unsetenv("MEMORY_PRESSURE_WATCH");
    (void)unsetenv("MEMORY_PRESSURE_WRITE");
}

static void set_watch(const char *folder, const char *name)
{
    char path[scratch_size + 16];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    REQUIRE(setenv("MEMORY_PRESSURE_WATCH", path, 1) == 0);
}

/* Gives the sources a FIFO, of which the writing end is returned. */
static int give_fifo(char folder[scratch_size])
{
    int fifo;

    install();
    scratch_enter(folder);
    REQUIRE(mkfifo("fifo", 0600) == 0);
    set_watch(folder, "fifo");
    fifo = open("fifo", O_RDWR | O_CLOEXEC);
    REQUIRE(fifo >= 0);
    return fifo;
}

static void put(int descriptor, const char *bytes)
{
    REQUIRE(write(descriptor, bytes, strlen(bytes)) == (ssize_t)strlen(bytes));
}

static void put_events(const char *text)
{
    int file = open("events", O_CREAT | O_WRONLY | O_CLOEXEC, 0600); /* not cut, so that there is one change */

    REQUIRE(file >= 0);
    put(file, text);
    (void)close(file);
}

/* ---- levels ---- */

TEST(a_warning_is_told_at_once_and_then_once_in_a_span, "2225")
{
    char folder[scratch_size];
    int fifo = give_fifo(folder);
    CFRunLoopSourceRef source = listen_for(everything);

    expect_told("");
    put(fifo, "x");
    expect_told("W");
    put(fifo, "x");
    put(fifo, "more");
    expect_told("");
    end_span();
    expect_told("W");
    end_span();
    expect_told("N");
    EXPECT_EQ(span_end_ns, 0); /* nothing wakes the loop any more */
    put(fifo, "x");
    expect_told("W");
    give_up(source);
    (void)close(fifo);
    scratch_leave(folder);
}

TEST(a_sign_that_comes_with_the_end_of_its_span_counts, "2225")
{
    char folder[scratch_size];
    int fifo = give_fifo(folder);
    CFRunLoopSourceRef source = listen_for(everything);

    put(fifo, "x");
    expect_told("W");
    end_span();
    put(fifo, "x");
    expect_told("W");
    give_up(source);
    (void)close(fifo);
    scratch_leave(folder);
}

TEST(only_levels_that_were_asked_for_are_told, "2225")
{
    char folder[scratch_size];
    int fifo = give_fifo(folder);
    CFRunLoopSourceRef source = listen_for(kCRLMemoryPressureNormal);

    put(fifo, "x");
    expect_told("");
    end_span();
    expect_told("N");
    give_up(source);
    (void)close(fifo);
    scratch_leave(folder);
}

/* ---- what is listened to ---- */

TEST(a_managers_socket_gets_its_bytes_and_warns_until_it_ends, "2222")
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char folder[scratch_size];
    char bytes[8] = "";
    CFRunLoopSourceRef source;
    int peer;

    install();
    scratch_enter(folder);
    set_watch(folder, "socket");
    REQUIRE(bind(listener, (const struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 1) == 0);
    REQUIRE(setenv("MEMORY_PRESSURE_WRITE", "aGVsbG8=", 1) == 0);
    source = listen_for(everything);
    peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    EXPECT_EQ(read(peer, bytes, sizeof bytes), 5);
    EXPECT_STR(bytes, "hello");
    put(peer, "x");
    expect_told("W");
    (void)close(peer);
    expect_told("");
    end_span();
    expect_told("N");
    EXPECT(CFRunLoopSourceIsValid(source));
    give_up(source);
    (void)close(listener);
    scratch_leave(folder);
}

static int never_opened(const char *path, bool *ret_is_file)
{
    (void)path;
    *ret_is_file = true;
    return -EACCES;
}

TEST(a_limit_of_the_own_group_is_critical, "2224")
{
    char folder[scratch_size];
    CFRunLoopSourceRef source;

    install();
    pressure_kernel.watch_open = never_opened; /* the counters are enough */
    groups = "0::/app\n";
    scratch_enter(folder);
    put_events("low 0\nhigh 3\nmax 0\noom 0\noom_kill 0\n");
    source = listen_for(everything);
    expect_told("");
    put_events("low 9\nhigh 3\n");
    expect_told("");
    put_events("low 9\nhigh 4\n");
    expect_told("C");
    end_span();
    expect_told("N");
    scratch_remove("events");
    expect_told(""); /* the group is gone */
    give_up(source);
    scratch_leave(folder);
}

TEST(a_higher_level_is_told_at_once_and_a_lower_one_at_the_end_of_the_span, "2225")
{
    char folder[scratch_size];
    int fifo = give_fifo(folder);
    CFRunLoopSourceRef source;

    groups = "0::/app\n";
    put_events("oom 0\n");
    source = listen_for(everything);
    put(fifo, "x");
    expect_told("W");
    put_events("oom 1\n");
    expect_told("C");
    put(fifo, "x");
    expect_told("");
    end_span();
    expect_told("W");
    end_span();
    expect_told("N");
    put(fifo, "x");
    put_events("oom 2\n");
    expect_told("C");
    give_up(source);
    (void)close(fifo);
    scratch_leave(folder);
}

/* Opens a counter in the place of a pressure file, and says which path and bytes came. */
static char opened[PATH_MAX];
static char asked[32];
static int made_counter = -1;

static int open_made_up(const char *path, bool *ret_is_file)
{
    (void)snprintf(opened, sizeof opened, "%s", path);
    *ret_is_file = true;
    return strcmp(path, "/proc/pressure/memory") == 0 ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -EACCES;
}

static ssize_t write_made_up(int watch, const void *bytes, size_t size)
{
    (void)watch;
    memcpy(asked, bytes, size < sizeof asked ? size : sizeof asked);
    return (ssize_t)size;
}

static int poll_made_up(struct pressure_poll *poll, int file)
{
    poll->context = 0;
    made_counter = poll->counter = fcntl(file, F_DUPFD_CLOEXEC, 0);
    return 0;
}

static int polls_left;

static int poll_again_made_up(const struct pressure_poll *poll, int file)
{
    (void)poll;
    (void)file;
    return polls_left-- > 0 ? 0 : -ENODEV;
}

static int polls_ended;

static void poll_end_made_up(const struct pressure_poll *poll)
{
    (void)poll;
    polls_ended++;
}

static void install_made_up_polls(void)
{
    install();
    groups = "0::/other\n";
    notify_kernel.watch_add = notify_kernel_linux.watch_add;
    pressure_kernel.watch_open = open_made_up;
    pressure_kernel.watch_write = write_made_up;
    pressure_kernel.poll_begin = poll_made_up;
    pressure_kernel.poll_again = poll_again_made_up;
    pressure_kernel.poll_end = poll_end_made_up;
}

TEST(a_group_that_may_not_be_asked_leaves_the_systems_file_which_may_go, "2223")
{
    CFRunLoopSourceRef source;

    install_made_up_polls();
    source = listen_for(everything);
    EXPECT_STR(opened, "/proc/pressure/memory");
    EXPECT_STR(asked, "some 200000 2000000");
    polls_left = 1;
    EXPECT_EQ(eventfd_write(made_counter, 1), 0);
    expect_told("W");
    EXPECT_EQ(eventfd_write(made_counter, 1), 0);
    expect_told(""); /* the next poll is refused */
    EXPECT_EQ(polls_ended, 1);
    end_span();
    expect_told("N");
    give_up(source);
}

/* ---- what is given ---- */

TEST(a_pressure_source_that_is_refused_says_why, "2222 2223")
{
    CRLSourceContext later = {.version = 1};
    char folder[scratch_size];
    int fifo = give_fifo(folder);

    EXPECT(!create(0, NULL) && errno == EINVAL);
    EXPECT(!create(everything + 1, NULL) && errno == EINVAL);
    EXPECT(!create(everything, &later) && errno == EINVAL);
    errno = 0;
    EXPECT(!CRLMemoryPressureSourceCreate(NULL, everything, 0, NULL, NULL) && errno == EINVAL);
    set_watch(folder, "nothing");
    EXPECT(!create(everything, NULL) && errno == ENOENT);
    set_watch(folder, ".");
    EXPECT(!create(everything, NULL) && errno == ENOTTY);
    REQUIRE(setenv("MEMORY_PRESSURE_WATCH", "/dev/null", 1) == 0);
    EXPECT(!create(everything, NULL) && errno == EHOSTDOWN);
    set_watch(folder, "fifo");
    REQUIRE(setenv("MEMORY_PRESSURE_WRITE", "?", 1) == 0);
    EXPECT(!create(everything, NULL) && errno == EBADMSG);
    install();
    pressure_kernel.watch_open = never_opened;
    EXPECT(!create(everything, NULL) && errno == EACCES);
    (void)close(fifo);
    scratch_leave(folder);
}

static int retained;

static const void *count_retain(const void *info)
{
    retained++;
    return info;
}

static void count_release(const void *info)
{
    (void)info;
    retained--;
}

static CFStringRef copy_word(const void *info)
{
    return CFStringCreateWithCString(NULL, info, kCFStringEncodingUTF8);
}

static void expect_description(CFRunLoopSourceRef source, const char *part)
{
    CFStringRef text = CFCopyDescription(source);
    char bytes[1024] = "";

    EXPECT(text && CFStringGetCString(text, bytes, sizeof bytes, kCFStringEncodingUTF8) && strstr(bytes, part));
    CFRelease(text);
}

TEST(a_pressure_source_keeps_its_context, "")
{
    CRLSourceContext context = {.info = "what it says", .retain = count_retain, .release = count_release, .copyDescription = copy_word};
    char folder[scratch_size];
    int fifo = give_fifo(folder);
    CFRunLoopSourceRef source = create(everything, &context);
    CFRunLoopSourceRef plain = create(everything, NULL);

    REQUIRE(source && plain);
    EXPECT_EQ(retained, 1);
    expect_description(source, "what it says");
    expect_description(plain, "<memory pressure source");
    set_watch(folder, "nothing");
    EXPECT(!create(everything, &context));
    EXPECT_EQ(retained, 1);
    give_up(source);
    EXPECT_EQ(retained, 0);
    give_up(plain);
    (void)close(fifo);
    scratch_leave(folder);
}

TEST(the_child_of_a_fork_leaves_its_parents_pressure_alone, "")
{
    char folder[scratch_size];
    int fifo = give_fifo(folder);
    CFRunLoopSourceRef source = listen_for(everything);
    pid_t child;
    int status;

    put(fifo, "x");
    child = fork();
    if (child == 0) {
        bool is_over = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false) == kCFRunLoopRunFinished;

        _exit(is_over && told[0] == '\0' && !CFRunLoopSourceIsValid(source) ? 0 : 1);
    }
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
    expect_told("W");
    give_up(source);
    (void)close(fifo);
    scratch_leave(folder);
}

TEST(the_child_of_a_fork_ends_no_poll, "")
{
    CFRunLoopSourceRef source;
    pid_t child;
    int status;

    install_made_up_polls();
    source = listen_for(everything);
    child = fork();
    if (child == 0) {
        give_up(source);
        _exit(polls_ended);
    }
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
    give_up(source);
    EXPECT_EQ(polls_ended, 1);
}

/* ---- the kernel's own files ---- */

TEST(the_kernels_file_of_memory_is_listened_to, "2223")
{
    CFRunLoopSourceRef source;

    (void)unsetenv("MEMORY_PRESSURE_WATCH");
    source = create(everything, NULL);
    if (!source) {
        SKIP("the kernel tells this process of no pressure");
    }
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    give_up(source);
}

/* A process that wants a processor all the time. */
static pid_t start_busy_child(void)
{
    pid_t child = fork();

    if (child == 0) {
        cpu_set_t all;
        cpu_set_t one;
        size_t place = 0;

        CPU_ZERO(&one);
        (void)sched_getaffinity(0, sizeof all, &all);
        while (!CPU_ISSET(place, &all)) {
            place++;
        }
        CPU_SET(place, &one);
        (void)sched_setaffinity(0, sizeof one, &one);
        (void)alarm(60);
        for (;;) {
        }
    }
    return child;
}

/*
 * Pressure of processors is told just as that of memory, and is easily made: two processes want the same one. A poll takes away the
 * kernel's event, and here another loop polls first, as hosts do.
 */
TEST_LIMIT(a_hosted_loop_loses_no_pressure_of_the_kernels_own, "2225", 60)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceRef source;
    pid_t children[2];

    REQUIRE(setenv("MEMORY_PRESSURE_WATCH", "/proc/pressure/cpu", 1) == 0);
    REQUIRE(setenv("MEMORY_PRESSURE_WRITE", "c29tZSAxMDAwIDIwMDAwMDAA", 1) == 0); /* some 1000 2000000 */
    source = create(kCRLMemoryPressureWarning, NULL);
    if (!source) {
        SKIP("the kernel tells this process of no pressure");
    }
    CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode);
    for (int i = 0; i < 2; i++) {
        children[i] = start_busy_child();
    }
    while (strlen(told) < 2 && CRLRunLoopPrepare(loop, kCFRunLoopDefaultMode)) {
        struct pollfd host = {.fd = CRLRunLoopGetDescriptor(loop), .events = POLLIN};

        (void)poll(&host, 1, -1);
        (void)poll(&host, 1, 0);
        if (CRLRunLoopDispatch(loop) != 0) {
            break;
        }
    }
    CRLRunLoopLeave(loop);
    for (int i = 0; i < 2; i++) {
        (void)kill(children[i], SIGKILL);
        (void)waitpid(children[i], NULL, 0);
    }
    EXPECT_STR(told, "WW");
    give_up(source);
}
