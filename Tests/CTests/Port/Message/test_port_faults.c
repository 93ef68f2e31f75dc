/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that fork, change their user and run out of things: M5, M6, M17, M22 to M24, P1 to P5 where they concern ports, and the
 * kernel's queue limits.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Loop/loop_probe.h"
#include "Port/Core/message_port.h"
#include "Port/port_probe.h"

/* ---- fork ---- */

static CFMessagePortRef forked_local, forked_remote;

static int look_in_child(void)
{
    EXPECT(!CFMessagePortIsValid(forked_local));
    EXPECT(!CFMessagePortIsValid(forked_remote));
    EXPECT_EQ(port_ask(forked_remote, 1, NULL, NULL), kCFMessagePortIsInvalid);
    EXPECT_EQ(CFMessagePortCreateRunLoopSource(NULL, forked_local, 0), NULL);
    CFMessagePortInvalidate(forked_local);
    CFMessagePortInvalidate(forked_remote);
    (void)CFRunLoopRunInMode(MODE, 0, true);
    /* The parent's name is the parent's, and a name of its own the child's. */
    EXPECT_EQ(CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, NULL), NULL);
    CFMessagePortRef own = port_open(CFSTR("the child's"), port_echo, NULL, MODE);
    CFMessagePortRef remote = port_connect(CFSTR("the child's"));
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    port_drop(own);
    return 0;
}

PORT_TEST_BOTH_WAYS(ports_are_the_parents_after_a_fork, "176 P1 P2")
{
    forked_local = port_open(NAME, port_echo, NULL, MODE);
    forked_remote = port_connect(NAME);
    EXPECT_EQ(port_ask(forked_remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(port_probe_in_child(look_in_child), 0);
    EXPECT_EQ(port_ask(forked_remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(forked_remote);
    port_drop(forked_local);
}

static pid_t child_of_an_ending;

static void fork_a_child_that_stays(CFMessagePortRef port, void *info)
{
    int ready[2];
    char byte = 0;

    (void)port;
    (void)info;
    REQUIRE(pipe(ready) == 0);
    child_of_an_ending = fork();
    if (child_of_an_ending == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!write(ready[1], &byte, 1); /* what fork calls in the child has been called */
        for (;;) {
            (void)pause();
        }
    }
    REQUIRE(read(ready[0], &byte, 1) == 1);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

PORT_TEST(a_child_forked_while_a_port_ends_keeps_nothing_of_it, "176 203 207 M5")
{
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, MODE);
    CFMessagePortRef remote = port_connect(NAME);

    CFMessagePortSetInvalidationCallBack(port, fork_a_child_that_stays);
    port_drop(port);
    EXPECT(!CFMessagePortIsValid(remote));
    CFRelease(remote);
    REQUIRE(child_of_an_ending > 0);
    (void)kill(child_of_an_ending, SIGKILL);
    waitpid(child_of_an_ending, NULL, 0);
}

static int leave_child_behind(void)
{
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, MODE);
    CFMessagePortRef remote = port_connect(NAME);

    (void)port;
    (void)port_ask(remote, 1, NULL, NULL);
    int ready[2];
    char byte = 0;
    (void)!pipe(ready);
    if (fork() == 0) {
        (void)!write(ready[1], &byte, 1);
        for (;;) {
            (void)pause();
        }
    }
    (void)!read(ready[0], &byte, 1);
    return kill(getpid(), SIGKILL);
}

PORT_TEST(a_child_that_lives_on_keeps_no_name, "195 M5")
{
    CFMessagePortRef port;

    EXPECT_EQ(port_probe_in_child(leave_child_behind), 128 + SIGKILL);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
    port = CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, NULL);
    REQUIRE(port != NULL);
    port_drop(port);
}

PORT_TEST_BOTH_WAYS(a_receiver_may_fork_for_each_request, "M6")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_fork_and_echo, NULL);
    remote = port_connect(NAME);
    for (int i = 0; i < 20; i++) {
        EXPECT_EQ(port_ask(remote, i, NULL, NULL), kCFMessagePortSuccess);
    }
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST(no_descriptor_survives_an_exec, "177 P3")
{
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, MODE);
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef large = port_pattern(200000, 1);
    DIR *stream;

    EXPECT_EQ(port_ask(remote, 1, large, NULL), kCFMessagePortSuccess);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
    }
    stream = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        char target[256] = "";
        char path[300];
        int number = atoi(entry->d_name);

        (void)snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        (void)!readlink(path, target, sizeof target - 1);
        if (number > 2 && (strstr(target, "socket:") || strstr(target, "corerunloop") || strstr(target, "eventpoll"))) {
            EXPECT(fcntl(number, F_GETFD) & FD_CLOEXEC);
        }
    }
    (void)closedir(stream);
    CFRelease(large);
    CFRelease(remote);
    port_drop(port);
}

static void *live_briefly(void *info)
{
    CFMessagePortRef remote = port_connect(NAME);

    (void)info;
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    return NULL;
}

PORT_TEST_BOTH_WAYS(stress_threads_come_and_go_without_a_trace, "P4 P5")
{
    struct port_thread server;
    int before = 0;

    port_thread_start(&server, NAME, port_echo, NULL);
    for (int i = 0; i < (test_is_soak() ? 10000 : 200); i++) {
        pthread_t thread;

        REQUIRE(pthread_create(&thread, NULL, live_briefly, NULL) == 0);
        pthread_join(thread, NULL);
        if (i == 20) {
            before = port_probe_count_descriptors();
        }
    }
    EXPECT(port_probe_count_descriptors() <= before + 2);
    port_thread_stop(&server);
}

static int change_user(void)
{
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, MODE);
    CFMessagePortRef remote = port_connect(NAME);

    EXPECT_EQ(seteuid(65534), 0);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, CFSTR("another")), NULL);
    EXPECT_EQ(seteuid(0), 0);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    port_drop(port);
    return 0;
}

PORT_TEST(a_process_may_change_its_user, "M17")
{
    if (geteuid() != 0) {
        SKIP("needs root, to become another user");
    }
    EXPECT_EQ(port_probe_in_child(change_user), 0);
}

/* ---- no descriptors, no memory, no /proc ---- */

static int ask_with_few_descriptors(void)
{
    CFMessagePortRef remote = port_connect(NAME);
    struct rlimit limit;
    CFDataRef data = port_pattern(200000, 1);
    SInt32 result;

    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 3;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    /* The channel is there; what needs a descriptor fails and the port stays valid. */
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(port_tell(remote, 1, data), kCFMessagePortTransportError);
    result = port_ask(remote, 1, data, NULL);
    EXPECT_EQ(result, kCFMessagePortTransportError);
    EXPECT_EQ(CFMessagePortCreateLocal(NULL, CFSTR("x"), port_echo, NULL, NULL), NULL);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, CFSTR("y")), NULL);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    return 0;
}

PORT_TEST(a_sender_without_descriptors_is_told_so, "M23")
{
    pid_t owner = port_process_start(NAME, port_echo, NULL, NULL);

    EXPECT_EQ(port_probe_in_child(ask_with_few_descriptors), 0);
    port_process_kill(owner);
}

static CFDataRef lower_limit_or_echo(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    struct rlimit limit;

    (void)port;
    (void)info;
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    if (message_id == 1) {
        limit.rlim_cur = 3;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    } else if (message_id == 2) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    return CFRetain(data);
}

static int ask_anew(void)
{
    CFMessagePortRef remote = port_connect(NAME);
    double begun = port_probe_now();

    EXPECT_EQ(port_ask(remote, 0, NULL, NULL), kCFMessagePortTransportError);
    EXPECT(port_probe_now() - begun < 0.5 * test_patience_s());
    EXPECT(CFMessagePortIsValid(remote));
    EXPECT_EQ(port_tell(remote, 0, NULL), kCFMessagePortSuccess);
    return 0;
}

PORT_TEST(a_receiver_without_descriptors_serves_the_channels_it_has, "M23 H7")
{
    pid_t owner = port_process_start(NAME, lower_limit_or_echo, NULL, NULL);
    CFMessagePortRef remote = port_connect(NAME);

    EXPECT_EQ(port_ask(remote, 0, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess); /* the limit falls */
    for (int i = 0; i < 100; i++) {
        EXPECT_EQ(port_ask(remote, 0, NULL, NULL), kCFMessagePortSuccess);
    }
    EXPECT_EQ(port_probe_in_child(ask_anew), 0);
    EXPECT_EQ(port_ask(remote, 2, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    port_process_kill(owner);
}

static atomic_bool loses_descriptors;

/* As the kernel does where the receiver has no number left for a descriptor. */
static ssize_t receive_without_descriptors(int socket, struct msghdr *message)
{
    ssize_t size = kernel_ports_linux.receive_message(socket, message);

    for (struct cmsghdr *part = size < 0 ? NULL : CMSG_FIRSTHDR(message); part && loses_descriptors; part = CMSG_NXTHDR(message, part)) {
        size_t count = part->cmsg_type == SCM_RIGHTS ? (part->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

        for (size_t i = 0; i < count; i++) {
            int descriptor;

            memcpy(&descriptor, CMSG_DATA(part) + i * sizeof descriptor, sizeof descriptor);
            close(descriptor);
            message->msg_flags |= MSG_CTRUNC;
        }
        if (count > 0) {
            part->cmsg_type = 0;
        }
    }
    return size;
}

/* Sends standard error into a pipe. Returns its read end; `*ret_saved` is for log_end. */
static int log_begin(int *ret_saved)
{
    int ends[2];

    REQUIRE(pipe(ends) == 0);
    *ret_saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    return ends[0];
}

/* Gives standard error back, and puts what was written meanwhile into `text`. */
static void log_end(int from, int saved, char *text, size_t size)
{
    size_t length = 0;
    ssize_t more;

    dup2(saved, STDERR_FILENO);
    close(saved);
    while (length < size - 1 && (more = read(from, text + length, size - 1 - length)) > 0) {
        length += (size_t)more;
    }
    text[length] = '\0';
    close(from);
}

PORT_TEST(who_waits_is_told_when_what_came_with_the_request_was_lost, "M23 H7")
{
    struct port_thread server;
    char log[4096];
    int saved;
    int from;
    CFMessagePortRef remote;
    CFDataRef data = port_pattern(100000, 1);
    CFDataRef reply = NULL;

    kernel_ports.receive_message = receive_without_descriptors;
    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess); /* on a channel that is kept */
    loses_descriptors = true;
    from = log_begin(&saved);
    EXPECT_EQ(port_ask(remote, 2, data, NULL), kCFMessagePortTransportError);
    log_end(from, saved, log, sizeof log);
    EXPECT(strstr(log, " to the port a port was dropped: this process has no descriptor left for what came with it") != NULL);
    EXPECT(strstr(log, "the receiver has dropped a request: it lacks memory or a descriptor") != NULL);
    loses_descriptors = false;
    EXPECT_EQ(port_ask(remote, 3, data, &reply), kCFMessagePortSuccess);
    EXPECT(port_is_pattern(reply, 100000, 1));
    CFRelease(reply);
    CFRelease(data);
    port_drop(remote);
    port_thread_stop(&server);
}

PORT_TEST(a_receiver_without_descriptors_says_so_to_who_waits, "M23 H7")
{
    pid_t owner = port_process_start(NAME, lower_limit_or_echo, NULL, NULL);
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef large = port_pattern(70000, 1);
    double begun;

    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess); /* the limit falls, the channel is kept */
    begun = port_probe_now();
    for (int i = 0; i < 40; i++) { /* more often than a misbehaving sender may err */
        EXPECT_EQ(port_ask(remote, 0, large, NULL), kCFMessagePortTransportError);
        EXPECT_EQ(port_ask(remote, 0, NULL, NULL), kCFMessagePortSuccess);
    }
    EXPECT(port_probe_now() - begun < 0.5 * test_patience_s());
    EXPECT(CFMessagePortIsValid(remote));
    EXPECT_EQ(port_ask(remote, 2, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(port_ask(remote, 0, large, NULL), kCFMessagePortSuccess);
    CFRelease(large);
    CFRelease(remote);
    port_process_kill(owner);
}

PORT_TEST(what_a_receiver_without_descriptors_drops_leaves_room_for_more, "M23 227")
{
    pid_t owner = port_process_start(NAME, lower_limit_or_echo, NULL, NULL);
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef large = port_pattern(70000, 1);

    for (int i = 0; i < 6; i++) { /* with the fourth comes the channel for acknowledgements */
        EXPECT_EQ(port_tell(remote, 0, NULL), kCFMessagePortSuccess);
    }
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess); /* the limit falls */
    for (int i = 0; i < 40; i++) {
        EXPECT_EQ(port_tell(remote, 0, large), kCFMessagePortSuccess);
    }
    EXPECT_EQ(port_ask(remote, 0, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(large);
    CFRelease(remote);
    port_process_kill(owner);
}

static int stranger;

/* As socketpair does when it fails after it has chosen the numbers, which somebody else may have by the time of its return. */
static int fail_and_leave_numbers(int ret_ends[2])
{
    ret_ends[0] = ret_ends[1] = stranger;
    return -ENFILE;
}

PORT_TEST(numbers_of_a_pair_that_was_not_made_are_not_closed, "M23")
{
    struct port_thread server;
    CFMessagePortRef remote;

    stranger = open("/dev/null", O_RDONLY);
    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    kernel_ports.channel_create = fail_and_leave_numbers;
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortTransportError);
    for (int i = 0; i < 4; i++) { /* the third asks for the control channel */
        EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
    }
    EXPECT(fcntl(stranger, F_GETFD) >= 0);
    kernel_ports.channel_create = kernel_ports_linux.channel_create;
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    port_thread_stop(&server);
    close(stranger);
}

static int ask_and_leave(void)
{
    CFMessagePortRef remote = port_connect(NAME);

    return CFMessagePortSendRequest(remote, 7, NULL, test_patience_s(), 0, MODE, NULL) == kCFMessagePortReceiveTimeout ? 0 : 1;
}

/*
 * The receiver notices that a channel has gone when it takes a new one: here that of a request which stands before the one whose sender has
 * given up.
 */
static void give_up_behind_a_new_channel(CFMessagePortRef remote, CFDataRef data)
{
    EXPECT_EQ(port_probe_in_child(ask_and_leave), 0);
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, data, test_patience_s(), 0, MODE, NULL), kCFMessagePortReceiveTimeout);
    while (CFRunLoopRunInMode(CFSTR("served"), 0, true) == kCFRunLoopRunHandledSource) {
    }
}

PORT_TEST(requests_that_are_given_up_are_no_offences, "230 H11")
{
    struct trace trace = {0};
    CFMessagePortRef local = port_open(NAME, port_note, &trace, CFSTR("served"));
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef large = port_pattern(66000, 1);

    /* In an arena that has gone with its channel. */
    EXPECT_EQ(CFMessagePortSendRequest(remote, 2, large, test_patience_s(), test_patience_s(), CFSTR("served"), NULL),
              kCFMessagePortSuccess);
    give_up_behind_a_new_channel(remote, large);
    trace_clear(&trace);
    /* In an arena that comes with it, and can still be read. */
    EXPECT_EQ(CFMessagePortSendRequest(remote, 3, NULL, test_patience_s(), test_patience_s(), CFSTR("served"), NULL),
              kCFMessagePortSuccess);
    trace_clear(&trace);
    give_up_behind_a_new_channel(remote, large);
    EXPECT(strncmp(trace.text, "7: 1:", 5) == 0);
    for (int i = 0; i < offenders_max; i++) {
        EXPECT_EQ(local->side.local.offenders[i].count, 0);
    }
    CFRelease(large);
    CFRelease(remote);
    port_drop(local);
}

static int ask_with_small_files(void)
{
    CFMessagePortRef remote = port_connect(NAME);
    struct rlimit limit = {1000, RLIM_INFINITY};
    CFDataRef large = port_pattern(200000, 1);
    CFDataRef middle = port_pattern(60000, 1);
    CFDataRef reply = NULL;

    (void)setrlimit(RLIMIT_FSIZE, &limit);
    EXPECT_EQ(port_tell(remote, 1, large), kCFMessagePortTransportError);
    EXPECT_EQ(port_ask(remote, 1, large, NULL), kCFMessagePortTransportError);
    for (int i = 0; i < 4; i++) { /* without an arena it still goes in the packet */
        EXPECT_EQ(port_ask(remote, 1, middle, &reply), kCFMessagePortSuccess);
        EXPECT(port_is_pattern(reply, 60000, 1));
        CFRelease(reply);
    }
    EXPECT(CFMessagePortIsValid(remote));
    (void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO); /* which is a file, and has a limit too */
    limit.rlim_cur = 10; /* less than a card has */
    (void)setrlimit(RLIMIT_FSIZE, &limit);
    EXPECT_EQ(CFMessagePortCreateLocal(NULL, CFSTR("x"), port_echo, NULL, NULL), NULL);
    return 0;
}

PORT_TEST(the_limit_on_files_is_an_error_and_no_signal, "M24 H21")
{
    pid_t owner = port_process_start(NAME, port_echo, NULL, NULL);

    EXPECT_EQ(port_probe_in_child(ask_with_small_files), 0);
    port_process_kill(owner);
}

static int no_memory_create(uint64_t size, bool reserve)
{
    (void)size;
    (void)reserve;
    return -ENOSPC;
}

static CFDataRef reply_of_that_length(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)data;
    (void)info;
    return port_pattern(message_id, 1);
}

PORT_TEST(a_reply_for_which_there_is_no_memory_fails_at_once, "M24")
{
    CFMessagePortRef port = port_open(NAME, reply_of_that_length, NULL, MODE);
    CFMessagePortRef remote = port_connect(NAME);

    EXPECT_EQ(port_ask(remote, 60000, NULL, NULL), kCFMessagePortSuccess);
    kernel_ports.memory_create = no_memory_create;
    EXPECT_EQ(port_ask(remote, 60000, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(port_ask(remote, 70000, NULL, NULL), kCFMessagePortTransportError);
    kernel_ports = kernel_ports_linux;
    EXPECT_EQ(port_ask(remote, 70000, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    port_drop(port);
}

static int refused_memory_create(uint64_t size, bool reserve)
{
    (void)size;
    (void)reserve;
    return -EPERM;
}

PORT_TEST(a_system_that_refuses_memory_files_is_called_so, "M24")
{
    struct port_thread server;
    CFMessagePortRef remote;
    CFDataRef data = port_pattern(1 << 20, 1);
    char log[4096];
    int saved;
    int from;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    kernel_ports.memory_create = refused_memory_create;
    from = log_begin(&saved);
    EXPECT_EQ(port_ask(remote, 1, data, NULL), kCFMessagePortTransportError);
    log_end(from, saved, log, sizeof log);
    kernel_ports.memory_create = kernel_ports_linux.memory_create;
    EXPECT(strstr(log, "1048576 bytes cannot be passed on in memory: memfd_create is refused"));
    EXPECT_EQ(port_ask(remote, 1, data, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    CFRelease(data);
    port_thread_stop(&server);
}

static int refused_descriptor(void)
{
    return -EPERM;
}

/* As under a filter that refuses eventfd and epoll: the loops look at their descriptors again and again. */
PORT_TEST(messages_are_quick_without_eventfd_and_epoll, "M28")
{
    enum { count = 40 };
    struct port_thread server;
    CFMessagePortRef remote;
    double best = 10;

    kernel.event_create = refused_descriptor;
    kernel.set_create = refused_descriptor;
    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    for (int attempt = 0; attempt < 40 && best > 0.2; attempt++) { /* on a busy machine both threads seldom run at once */
        double begun = port_probe_now();

        for (int i = 0; i < count; i++) {
            EXPECT_EQ(port_ask(remote, i, NULL, NULL), kCFMessagePortSuccess);
        }
        best = port_probe_now() - begun < best ? port_probe_now() - begun : best;
    }
    EXPECT(best <= 0.2 || test_is_instrumented()); /* a look every 20 ms would take 0.8 s or more */
    CFRelease(remote);
    port_thread_stop(&server);
}

/* As where the host's limits leave a channel less than a packet may have. */
static int create_narrow_channel(int ret_ends[2])
{
    int result = kernel_ports_linux.channel_create(ret_ends);
    int room = 4096;

    REQUIRE(result == 0 && setsockopt(ret_ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0);
    return result;
}

PORT_TEST(a_reply_that_does_not_fit_into_a_packet_of_the_channel_arrives, "239")
{
    static const SInt32 lengths[] = {1, 5000, 60000, 65536, 70000};
    CFMessagePortRef port = port_open(NAME, reply_of_that_length, NULL, MODE);
    CFMessagePortRef remote;

    kernel_ports.channel_create = create_narrow_channel;
    remote = port_connect(NAME);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        CFDataRef reply = NULL;

        EXPECT_EQ(port_ask(remote, lengths[i], NULL, &reply), kCFMessagePortSuccess);
        EXPECT(port_is_pattern(reply, lengths[i], 1));
        if (reply) {
            CFRelease(reply);
        }
    }
    EXPECT(CFMessagePortIsValid(remote));
    CFRelease(remote);
    port_drop(port);
}

static atomic_bool refuses_descriptors;

/* As for a user whose other processes have too many descriptors under way. */
static ssize_t send_unless_refused(int socket, const struct msghdr *message)
{
    return message->msg_controllen > 0 && atomic_load(&refuses_descriptors) ? -ETOOMANYREFS
                                                                            : kernel_ports_linux.send_message(socket, message);
}

PORT_TEST(a_receiver_that_cannot_send_its_reply_is_not_taken_for_dead, "232 M24")
{
    struct port_thread server;
    CFMessagePortRef remote;

    kernel_ports.send_message = send_unless_refused;
    port_thread_start(&server, NAME, reply_of_that_length, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess); /* the channel is kept from now on: the next request brings none */
    atomic_store(&refuses_descriptors, true);
    EXPECT_EQ(port_ask(remote, 70000, NULL, NULL), kCFMessagePortTransportError);
    EXPECT(CFMessagePortIsValid(remote));
    atomic_store(&refuses_descriptors, false);
    EXPECT_EQ(port_ask(remote, 70000, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    port_thread_stop(&server);
}

static int refuse_directory(int directory, const char *path)
{
    (void)directory;
    (void)path;
    return -ENOSPC;
}

PORT_TEST(a_full_disk_gives_no_port, "H21")
{
    kernel_ports.directory_make = refuse_directory;
    EXPECT_EQ(CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, NULL), NULL);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
    kernel_ports = kernel_ports_linux;
}

PORT_TEST(ports_work_without_proc, "M22")
{
    CFMessagePortRef port, remote;

    port_lose_proc();
    port = port_open(NAME, port_echo, NULL, MODE);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    port_drop(port);
    kernel_ports = kernel_ports_linux;
}

/* ---- the kernel's limit on queues ---- */

static int expect_five(void)
{
    static const int limits[] = {4, 10, 512};

    if (unshare(CLONE_NEWNET) != 0) {
        return 77;
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        FILE *file = fopen("/proc/sys/net/unix/max_dgram_qlen", "w");
        CFMessagePortRef port, remote;

        if (!file || fprintf(file, "%d\n", limits[i]) < 0 || fclose(file) != 0) {
            return 77;
        }
        port = port_open(NAME, port_silence, NULL, MODE);
        remote = port_connect(NAME);
        for (int j = 0; j < 5 - (limits[i] < 5 ? 1 : 0); j++) {
            EXPECT_EQ(CFMessagePortSendRequest(remote, j, NULL, 0, 0, NULL, NULL), kCFMessagePortSuccess);
        }
        if (limits[i] >= 5) {
            EXPECT_EQ(CFMessagePortSendRequest(remote, 5, NULL, 0, 0, NULL, NULL), kCFMessagePortSendTimeout);
        }
        CFRelease(remote);
        port_drop(port);
    }
    return 0;
}

PORT_TEST(five_messages_wait_whatever_the_kernels_limit, "226")
{
    int result = port_probe_in_child(expect_five);

    if (result == 77) {
        SKIP("needs root, for a network namespace and its sysctl");
    }
    EXPECT_EQ(result, 0);
}

/* ---- without standard streams ---- */

enum { stream_count = 3 };

static bool streams_are_free(void)
{
    for (int i = 0; i < stream_count; i++) {
        if (kernel.descriptor_is_open(i)) {
            return false;
        }
    }
    return true;
}

static CFDataRef echo_without_streams(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    return streams_are_free() ? port_echo(local, message_id, data, info) : port_silence(local, message_id, data, info);
}

/* So many requests that the answers come in a page, and so large a one that it comes in memory: both sides are sent descriptors. */
PORT_TEST(ports_stay_off_the_standard_streams, "F17")
{
    enum { requests = 20, large = 300000 };
    CFDataRef small_data = port_pattern(100, 1);
    CFDataRef large_data = port_pattern(large, 2);
    CFMessagePortRef remote;
    int streams[stream_count];
    pid_t server;

    for (int i = 0; i < stream_count; i++) {
        streams[i] = fcntl(i, F_DUPFD_CLOEXEC, stream_count);
        close(i);
    }
    server = port_process_start(NAME, echo_without_streams, NULL, NULL);
    remote = port_connect(NAME);
    for (int i = 0; i < requests; i++) {
        CFDataRef reply = NULL;

        EXPECT_EQ(port_ask(remote, i, i == requests / 2 ? large_data : small_data, &reply), kCFMessagePortSuccess);
        EXPECT(reply && CFDataGetLength(reply) == (i == requests / 2 ? large : 100));
        if (reply) {
            CFRelease(reply);
        }
    }
    EXPECT(streams_are_free());
    for (int i = 0; i < stream_count; i++) {
        dup2(streams[i], i);
        close(streams[i]);
    }
    CFRelease(remote);
    CFRelease(small_data);
    CFRelease(large_data);
    port_process_kill(server);
}
