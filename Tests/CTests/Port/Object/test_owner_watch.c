/* SPDX-License-Identifier: Apache-2.0 */
/* Invalidation callbacks of remote ports whose owners end: rules 900 to 908. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/loop_probe.h"
#include "Port/Core/message_port.h"
#include "Port/Message/remote_send.h"
#include "Port/Object/owner_watch.h"
#include "Port/port_probe.h"

static pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int told;
static _Atomic(pthread_t) told_on;
static double told_at; /* written before `told` */

/* What a program does that forgets a listener: it takes the lock that it also holds while it sends. */
static void note_gone(CFMessagePortRef port, void *info)
{
    EXPECT(!info && !port_is_valid(port));
    pthread_mutex_lock(&program_lock);
    told_on = pthread_self();
    told_at = port_probe_now();
    told++;
    pthread_mutex_unlock(&program_lock);
}

static void nothing(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
}

/* Runs the calling thread's loop until the callback was called `count` times. Returns false if that takes longer than patience allows. */
static bool run_until_told(int count)
{
    double end = port_probe_now() + test_patience_s();
    CFRunLoopTimerRef keeper = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 3e9, 0, 0, 0, nothing, NULL);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), keeper, kCFRunLoopDefaultMode);
    while (told < count && port_probe_now() < end) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, false);
    }
    CFRunLoopTimerInvalidate(keeper);
    CFRelease(keeper);
    return told == count;
}

/* Runs the loop for a moment, in which whatever is due would be called. */
static void run_a_moment(void)
{
    CFRunLoopTimerRef keeper = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 3e9, 0, 0, 0, nothing, NULL);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), keeper, kCFRunLoopDefaultMode);
    for (int pass = 0; pass < 3; pass++) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.03, false);
    }
    CFRunLoopTimerInvalidate(keeper);
    CFRelease(keeper);
}

static CFMessagePortRef connect_with_callback(void)
{
    CFMessagePortRef remote = port_connect(NAME);

    told = 0;
    CFMessagePortSetInvalidationCallBack(remote, note_gone);
    return remote;
}

static CFDataRef exit_at_once(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)local, (void)message_id, (void)data, (void)info;
    _exit(0);
}

static CFDataRef invalidate_itself(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)message_id, (void)data, (void)info;
    CFMessagePortInvalidate(local);
    return NULL;
}

/* ---- who ends, and how ---- */

static void expect_that_each_end_is_told(void)
{
    /* By exit, by invalidation while the process lives on, and by kill -9. */
    const CFMessagePortCallBack enders[] = {exit_at_once, invalidate_itself, port_echo};

    for (size_t i = 0; i < sizeof enders / sizeof enders[0]; i++) {
        pid_t owner = port_process_start(NAME, enders[i], NULL, NULL);
        CFMessagePortRef remote = connect_with_callback();

        if (enders[i] == port_echo) {
            run_a_moment();
            port_process_kill(owner);
        } else {
            EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess);
        }
        EXPECT(run_until_told(1));
        EXPECT(!CFMessagePortIsValid(remote));
        run_a_moment();
        EXPECT_EQ(told, 1);
        CFRelease(remote);
        port_process_kill(owner);
    }
}

PORT_TEST(the_end_of_an_owner_is_told_though_nothing_is_sent, "207 900 901 M25")
{
    expect_that_each_end_is_told();
}

PORT_TEST(the_end_of_an_owner_is_told_without_proc, "901 M22 M25")
{
    port_lose_proc();
    expect_that_each_end_is_told();
    kernel_ports = kernel_ports_linux;
}

static int refuse_status(int directory, const char *leaf, struct stat *ret_status)
{
    (void)directory, (void)leaf, (void)ret_status;
    return -EACCES;
}

static int status_of_another_file(int directory, const char *leaf, struct stat *ret_status)
{
    int result = kernel_ports_linux.path_status(directory, leaf, ret_status);

    ret_status->st_ino++;
    return result;
}

static int status_on_another_disk(int directory, const char *leaf, struct stat *ret_status)
{
    int result = kernel_ports_linux.path_status(directory, leaf, ret_status);

    ret_status->st_dev++;
    return result;
}

PORT_TEST(an_owner_that_cannot_be_looked_at_counts_as_alive, "M22 M25")
{
    int (*const looks[])(int, const char *, struct stat *) = {refuse_status, status_of_another_file, status_on_another_disk};
    pid_t owner = port_process_start(NAME, port_echo, NULL, NULL);
    CFMessagePortRef remote = port_connect(NAME);

    port_process_kill(owner);
    port_lose_proc();
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        kernel_ports.path_status = looks[i];
        EXPECT(CFMessagePortIsValid(remote));
    }
    kernel_ports = kernel_ports_linux;
    EXPECT(!CFMessagePortIsValid(remote));
    CFRelease(remote);
}

PORT_TEST(the_end_of_an_owner_that_never_ran_is_told, "901 M25")
{
    pid_t owner = port_process_start_idle(NAME);
    CFMessagePortRef remote = connect_with_callback();

    run_a_moment();
    EXPECT_EQ(told, 0);
    port_process_kill(owner);
    EXPECT(run_until_told(1));
    CFRelease(remote);
}

PORT_TEST(the_end_of_an_owner_is_told_within_50_ms, "901 M25")
{
    double best = 1;

    /* One of some must be in time: a busy machine may be late. */
    for (int attempt = 0; attempt < 5 && best > 0.05; attempt++) {
        pid_t owner = port_process_start(NAME, port_echo, NULL, NULL);
        CFMessagePortRef remote = connect_with_callback();
        double begun;

        run_a_moment();
        begun = port_probe_now();
        port_process_kill(owner);
        EXPECT(run_until_told(1));
        best = told_at - begun < best ? told_at - begun : best;
        CFRelease(remote);
    }
    EXPECT(best <= 0.05 || test_is_instrumented());
}

PORT_TEST_BOTH_WAYS(the_end_of_a_port_of_the_same_process_is_told, "900 901 M25")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = connect_with_callback();
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    run_a_moment();
    EXPECT_EQ(told, 0);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    port_thread_stop(&server);
    EXPECT(run_until_told(1));
    CFRelease(remote);
}

/* ---- who finds it ---- */

static void find_by_sending(CFMessagePortRef remote)
{
    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortIsInvalid);
}

static void find_by_asking(CFMessagePortRef remote)
{
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, 1, 1, kCFRunLoopDefaultMode, NULL), kCFMessagePortIsInvalid);
}

static void find_by_validity(CFMessagePortRef remote)
{
    EXPECT(!CFMessagePortIsValid(remote));
}

static void find_by_connecting(CFMessagePortRef remote)
{
    (void)remote;
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
}

PORT_TEST_BOTH_WAYS(who_finds_an_owner_gone_gets_its_error_and_no_callback, "207 902 M25")
{
    void (*const finders[])(CFMessagePortRef remote) = {find_by_sending, find_by_asking, find_by_validity, find_by_connecting};

    for (size_t i = 0; i < sizeof finders / sizeof finders[0]; i++) {
        struct port_thread server;
        CFMessagePortRef remote;

        port_thread_start(&server, NAME, port_echo, NULL);
        remote = connect_with_callback();
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
        port_thread_stop(&server);
        pthread_mutex_lock(&program_lock);
        finders[i](remote);
        EXPECT_EQ(told, 0);
        pthread_mutex_unlock(&program_lock);
        EXPECT(run_until_told(1));
        CFRelease(remote);
    }
}

PORT_TEST_BOTH_WAYS(a_request_whose_owner_ends_meanwhile_is_over_before_the_callback, "232 902 M25")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, invalidate_itself, NULL);
    remote = connect_with_callback();
    pthread_mutex_lock(&program_lock);
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, test_patience_s(), test_patience_s(), kCFRunLoopDefaultMode, NULL),
              kCFMessagePortBecameInvalidError);
    EXPECT_EQ(told, 0);
    pthread_mutex_unlock(&program_lock);
    EXPECT(run_until_told(1));
    CFRelease(remote);
    port_thread_stop(&server);
}

/* Runs the loop while the request around it has lost its receiver. */
static void run_nested(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    run_a_moment();
    EXPECT_EQ(told, 0);
}

PORT_TEST_BOTH_WAYS(a_run_inside_a_request_that_has_lost_its_owner_does_not_call, "902 M25")
{
    struct port_thread server;
    CFMessagePortRef remote;
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, 0, 0, 0, 0, run_nested, NULL);

    port_thread_start(&server, NAME, invalidate_itself, NULL);
    remote = connect_with_callback();
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, MODE);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortBecameInvalidError);
    EXPECT_EQ(told, 0);
    EXPECT(run_until_told(1));
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST_BOTH_WAYS(who_invalidates_a_remote_port_gets_the_callback_at_once, "203 903")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = connect_with_callback();
    CFMessagePortInvalidate(remote);
    EXPECT_EQ(told, 1);
    EXPECT(pthread_equal(told_on, pthread_self()));
    CFRelease(remote);
    remote = connect_with_callback();
    CFRelease(remote); /* the last reference */
    EXPECT_EQ(told, 1);
    port_thread_stop(&server);
    run_a_moment();
    EXPECT_EQ(told, 1);
}

/* ---- which loop calls ---- */

static CFMessagePortRef shared_remote;

static void ask_to_exit(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
    EXPECT_EQ(CFMessagePortSendRequest(shared_remote, 1, NULL, 1, 0, NULL, NULL), kCFMessagePortSuccess);
}

/* The owner ends while this loop runs: the main loop calls for a thread whose loop does not. */
static void set_and_run(void *own_thread)
{
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, 0, 0, 0, 0, ask_to_exit, NULL);

    shared_remote = connect_with_callback();
    *(pthread_t *)own_thread = pthread_self();
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    EXPECT(run_until_told(1));
    CFRelease(timer);
}

PORT_TEST(the_loop_of_the_thread_that_set_the_callback_calls_it, "901 M25")
{
    pid_t owner = port_process_start(NAME, exit_at_once, NULL, NULL);
    struct probe_thread thread;
    pthread_t own;

    probe_thread_start(&thread, set_and_run, &own);
    EXPECT(run_until_told(1)); /* the main loop runs, too */
    probe_thread_join(&thread);
    EXPECT(pthread_equal(told_on, own));
    CFRelease(shared_remote);
    port_process_kill(owner);
}

static void set_only(void *context)
{
    (void)context;
    shared_remote = connect_with_callback();
}

static void set_and_wait(void *context)
{
    pthread_barrier_t *barrier = context;

    shared_remote = connect_with_callback();
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
}

PORT_TEST(the_main_loop_calls_for_a_thread_whose_loop_does_not_run_or_has_ended, "901 M25")
{
    pid_t owner = port_process_start(NAME, port_echo, NULL, NULL);
    struct probe_thread thread;
    pthread_barrier_t barrier;

    probe_on_thread(set_only, NULL);
    port_process_kill(owner);
    EXPECT(run_until_told(1));
    EXPECT(pthread_equal(told_on, pthread_self()));
    CFRelease(shared_remote);

    owner = port_process_start(NAME, port_echo, NULL, NULL);
    (void)pthread_barrier_init(&barrier, NULL, 2);
    probe_thread_start(&thread, set_and_wait, &barrier);
    pthread_barrier_wait(&barrier);
    port_process_kill(owner);
    EXPECT(run_until_told(1));
    EXPECT(pthread_equal(told_on, pthread_self()));
    pthread_barrier_wait(&barrier);
    probe_thread_join(&thread);
    (void)pthread_barrier_destroy(&barrier);
    CFRelease(shared_remote);
}

static void busy_until_main_has_looked(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    pthread_barrier_wait(info);
    pthread_barrier_wait(info);
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static void run_into_a_long_callout(void *context)
{
    CFRunLoopTimerRef timer;
    CFRunLoopTimerContext info = {.info = context};

    shared_remote = connect_with_callback();
    timer = CFRunLoopTimerCreate(NULL, 0, 0, 0, 0, busy_until_main_has_looked, &info);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    CFRelease(timer);
    CFRunLoopRun();
}

PORT_TEST(the_main_loop_leaves_the_call_to_a_loop_that_runs_and_takes_it_over_at_its_end, "901 M25")
{
    pid_t owner = port_process_start(NAME, port_echo, NULL, NULL);
    struct probe_thread thread;
    pthread_barrier_t barrier;

    (void)pthread_barrier_init(&barrier, NULL, 2);
    probe_thread_start(&thread, run_into_a_long_callout, &barrier);
    pthread_barrier_wait(&barrier);
    port_process_kill(owner);
    run_a_moment();
    EXPECT_EQ(told, 0); /* the other loop is in a callout, and runs */
    pthread_barrier_wait(&barrier); /* it stops before it has looked */
    probe_thread_join(&thread);
    EXPECT(run_until_told(1));
    CFRelease(shared_remote);
    (void)pthread_barrier_destroy(&barrier);
}

/* ---- changes of the callback ---- */

static void note_other(CFMessagePortRef port, void *info)
{
    (void)port, (void)info;
    told += 100;
}

PORT_TEST_BOTH_WAYS(a_callback_that_is_replaced_or_removed_is_not_called, "205 904")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = connect_with_callback();
    CFMessagePortSetInvalidationCallBack(remote, note_other);
    CFMessagePortSetInvalidationCallBack(remote, note_gone);
    port_thread_stop(&server);
    EXPECT(run_until_told(1));
    CFRelease(remote);

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = connect_with_callback();
    CFMessagePortSetInvalidationCallBack(remote, NULL);
    EXPECT_EQ(remote->side.remote.watch, NULL);
    port_thread_stop(&server);
    run_a_moment();
    EXPECT(!CFMessagePortIsValid(remote));
    EXPECT_EQ(told, 0);
    CFRelease(remote);
}

PORT_TEST_BOTH_WAYS(a_callback_that_is_due_may_still_be_replaced_or_removed, "205 904")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = connect_with_callback();
    port_thread_stop(&server);
    EXPECT(!CFMessagePortIsValid(remote));
    CFMessagePortSetInvalidationCallBack(remote, note_other); /* the port is invalid: called at once */
    EXPECT_EQ(told, 100);
    run_a_moment();
    EXPECT_EQ(told, 100);
    CFRelease(remote);

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = connect_with_callback();
    port_thread_stop(&server);
    EXPECT(!CFMessagePortIsValid(remote));
    CFMessagePortSetInvalidationCallBack(remote, NULL);
    CFMessagePortInvalidate(remote);
    run_a_moment();
    EXPECT_EQ(told, 0);
    CFRelease(remote);
}

static void release_the_port(CFMessagePortRef port, void *info)
{
    note_gone(port, info);
    CFRelease(port);
    EXPECT(!CFMessagePortIsValid(port)); /* the loop still has it */
}

PORT_TEST_BOTH_WAYS(a_port_may_be_released_in_its_callback, "905")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    told = 0;
    CFMessagePortSetInvalidationCallBack(remote, release_the_port);
    port_thread_stop(&server);
    EXPECT(run_until_told(1));
}

PORT_TEST_BOTH_WAYS(a_port_that_is_released_before_its_callback_lives_until_then, "905")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = connect_with_callback();
    port_thread_stop(&server);
    EXPECT(!CFMessagePortIsValid(remote));
    CFRelease(remote);
    EXPECT_EQ(told, 0);
    EXPECT(run_until_told(1));
}

/* ---- what it costs, and keeps alive ---- */

PORT_TEST_BOTH_WAYS(a_port_without_a_callback_has_no_watch, "906")
{
    struct port_thread server;
    CFMessagePortRef remote;
    int before;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(remote->side.remote.watch, NULL);
    before = port_probe_count_descriptors();
    CFMessagePortSetInvalidationCallBack(remote, note_gone);
    EXPECT(port_probe_count_descriptors() > before);
    CFMessagePortSetInvalidationCallBack(remote, NULL);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess); /* a new channel would sweep the other end */
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST_BOTH_WAYS(a_watch_keeps_no_run_going, "25 906")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1, false), kCFRunLoopRunFinished);
    remote = connect_with_callback();
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1, false), kCFRunLoopRunFinished);
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST(a_child_of_a_fork_is_told_nothing_and_takes_nothing, "907 P1")
{
    pid_t owner = port_process_start(NAME, port_echo, NULL, NULL);
    CFMessagePortRef remote = connect_with_callback();
    int ends[2];
    char byte = 0;
    pid_t child;

    REQUIRE(pipe(ends) == 0);
    child = fork();
    if (child == 0) {
        run_a_moment();
        byte = told == 0 && !CFMessagePortIsValid(remote) ? 'r' : 'w';
        (void)!write(ends[1], &byte, 1);
        (void)pause();
        _exit(0);
    }
    REQUIRE(read(ends[0], &byte, 1) == 1);
    EXPECT_EQ(byte, 'r');
    port_process_kill(owner); /* the child lives, and keeps nothing open */
    EXPECT(run_until_told(1));
    port_process_kill(child);
    CFRelease(remote);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* ---- owners that keep no watch channel ---- */

static void drop_watches(CFMessagePortRef port)
{
    struct channel_table *channels = &port->side.local.channels;

    port_lock(port);
    for (int i = 0; i < channel_buckets; i++) {
        list_for_each_removable(link, &channels->buckets[i]) {
            struct server_channel *channel = container_of(link, struct server_channel, link);

            if (channel->kind == channel_watch) {
                channel_table_drop(channels, channel);
            }
        }
    }
    port_unlock(port);
}

static uint32_t count_watches(CFMessagePortRef port)
{
    uint32_t count;

    port_lock(port);
    count = port->side.local.channels.counts[channel_watch];
    port_unlock(port);
    return count;
}

/* First the owner is probed, because an offer is not due for a second. Then it is offered another channel at once. */
PORT_TEST(a_channel_that_a_living_owner_closes_is_not_its_end, "908 M26")
{
    const int64_t offer_every_ns[] = {INT64_C(1000000000000), 0};

    for (size_t i = 0; i < sizeof offer_every_ns / sizeof offer_every_ns[0]; i++) {
        struct port_thread server;
        CFMessagePortRef remote;

        owner_watch_offer_every_ns = offer_every_ns[i];
        port_thread_start(&server, NAME, port_echo, NULL);
        remote = connect_with_callback();
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
        EXPECT_EQ(count_watches(server.port), 1);
        drop_watches(server.port);
        run_a_moment();
        EXPECT_EQ(told, 0);
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
        EXPECT_EQ(count_watches(server.port), i == 0 ? 0 : 1);
        port_thread_stop(&server);
        EXPECT(run_until_told(1));
        CFRelease(remote);
    }
}

static void write_into_watches(CFMessagePortRef port)
{
    struct channel_table *channels = &port->side.local.channels;

    port_lock(port);
    for (int i = 0; i < channel_buckets; i++) {
        list_for_each(link, &channels->buckets[i]) {
            const struct server_channel *channel = container_of(link, struct server_channel, link);

            if (channel->kind == channel_watch) {
                (void)kernel_ports.send(channel->descriptor, "news", 4);
            }
        }
    }
    port_unlock(port);
}

static _Atomic int looks;

static uint32_t count_looks(int descriptor, uint32_t interest)
{
    looks++;
    return kernel_linux.descriptor_ready(descriptor, interest);
}

/* A channel on which something comes would make the loop look again and again. */
PORT_TEST(an_owner_that_writes_into_a_watch_channel_loses_it, "908 H27")
{
    struct port_thread server;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = connect_with_callback();
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    kernel.descriptor_ready = count_looks;
    write_into_watches(server.port);
    run_a_moment();
    kernel.descriptor_ready = kernel_linux.descriptor_ready;
    EXPECT_EQ(told, 0);
    EXPECT(looks > 0 && looks < 20);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    port_thread_stop(&server);
    EXPECT(run_until_told(1));
    CFRelease(remote);
}

/* As many programs would do that all watch one port; each sets its callback anew, too. */
PORT_TEST(watch_channels_are_bounded, "908 H28")
{
    enum { more = channel_watch_max + 20 };
    struct port_thread server;
    CFMessagePortRef remote;
    int ends[more];

    test_need_descriptors(4 * more);
    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    for (int i = 0; i < more; i++) {
        ends[i] = -1;
        do {
            port_lock(remote);
            (void)remote_port_offer_watch(remote, &ends[i]);
            port_unlock(remote);
        } while (ends[i] < 0); /* the queue is full */
    }
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(count_watches(server.port), channel_watch_max);
    EXPECT_EQ(kernel.descriptor_ready(ends[0], kernel_readable), 0);
    EXPECT(kernel.descriptor_ready(ends[more - 1], kernel_readable) != 0); /* a new one is refused, and no old one given up */
    for (int i = 0; i < more; i++) {
        (void)close(ends[i]);
    }
    CFRelease(remote);
    port_thread_stop(&server);
}

static int no_channel(int ends[2])
{
    (void)ends;
    return -EMFILE;
}

static int no_alarm(void)
{
    return -EMFILE;
}

PORT_TEST(an_owner_without_a_watch_channel_is_probed, "908 M26")
{
    pid_t owner = port_process_start(NAME, port_echo, NULL, NULL);
    CFMessagePortRef remote;

    kernel_ports.channel_create = no_channel;
    remote = connect_with_callback();
    kernel_ports.channel_create = kernel_ports_linux.channel_create;
    run_a_moment();
    EXPECT_EQ(told, 0);
    port_process_kill(owner);
    EXPECT(run_until_told(1));
    CFRelease(remote);
}

static CFDataRef answer_slowly(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    kernel_ports.pause(60000000); /* longer than the time between two probes */
    return port_echo(local, message_id, data, info);
}

/* The wait for the reply runs the loop in a mode of the watch. */
PORT_TEST(an_owner_is_probed_during_a_request_and_after_it, "908 M26")
{
    pid_t owner = port_process_start(NAME, answer_slowly, NULL, NULL);
    CFMessagePortRef remote;

    kernel_ports.channel_create = no_channel;
    remote = connect_with_callback();
    kernel_ports.channel_create = kernel_ports_linux.channel_create;
    EXPECT_EQ(CFMessagePortSendRequest(remote, 1, NULL, test_patience_s(), test_patience_s(), kCFRunLoopDefaultMode, NULL),
              kCFMessagePortSuccess);
    port_process_kill(owner);
    EXPECT(run_until_told(1));
    CFRelease(remote);
}

PORT_TEST(without_any_descriptor_the_callback_comes_from_the_call_that_finds_the_end, "908 M26")
{
    pid_t owner = port_process_start(NAME, port_echo, NULL, NULL);
    CFMessagePortRef remote;

    kernel_ports.channel_create = no_channel;
    kernel.alarm_create = no_alarm;
    remote = connect_with_callback();
    kernel_ports.channel_create = kernel_ports_linux.channel_create;
    kernel.alarm_create = kernel_linux.alarm_create;
    port_process_kill(owner);
    EXPECT(!CFMessagePortIsValid(remote));
    EXPECT_EQ(told, 1);
    CFRelease(remote);
}
