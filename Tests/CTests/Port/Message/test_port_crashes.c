/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are killed at any moment, and many messages: M1 to M3, M10, H9, H19. What must hold: a name never has two owners and is
 * free after its owner's death, nobody waits for the dead, and nothing of them stays.
 *
 * How long somebody waited is measured from the moment when another thread saw the death, less the time for which the waiting thread had no
 * processor, which is the machine's affair.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Failure/nth_failure.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/port_probe.h"

static const double most_stuck_s = 0.05;
static const double most_takeover_s = 1;

/* ---- receivers ---- */

static CFDataRef echo_large(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)info;
    return message_id % 7 == 0 ? port_pattern(300000, 1) : CFRetain(data);
}

struct killing {
    pid_t pid;
    useconds_t after;
    double died; /* when this thread saw it */
};

/* Kills, and leaves the process to be reaped by the test. */
static void *kill_and_look(void *info)
{
    struct killing *killing = info;
    siginfo_t ended;

    usleep(killing->after); /* any moment will do */
    (void)kill(killing->pid, SIGKILL);
    while (waitid(P_PID, (id_t)killing->pid, &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    killing->died = port_probe_now();
    return NULL;
}

/* Sends until the receiver is gone; returns when it knew, less what it starved in the last call. */
static double ask_until_gone(CFMessagePortRef remote, CFDataRef data)
{
    SInt32 result = kCFMessagePortSuccess;
    double starved = 0;

    for (int i = 0; result == kCFMessagePortSuccess; i++) {
        starved = port_probe_starved_s();
        result = i % 3 == 0 ? port_tell(remote, i, data) : port_ask(remote, i, i % 3 == 1 ? data : NULL, NULL);
    }
    EXPECT(result == kCFMessagePortBecameInvalidError || result == kCFMessagePortIsInvalid);
    return port_probe_now() - (port_probe_starved_s() - starved);
}

PORT_TEST_LIMIT(stress_a_receiver_killed_at_any_moment_keeps_nobody_waiting, "232 M1 M2 M3", 120)
{
    CFDataRef data = port_pattern(70000, 2);
    unsigned state = (unsigned)getpid();
    int rounds = test_is_soak() ? 1000 : 100;
    double most = 0;
    int late = 0;

    for (int round = 0; round < rounds; round++) {
        struct killing killing = {.pid = port_process_start(NAME, echo_large, NULL, NULL)};
        CFMessagePortRef remote = port_connect(NAME);
        pthread_t killer;
        double stuck;

        killing.after = (useconds_t)(rand_r(&state) % 4000);
        REQUIRE(pthread_create(&killer, NULL, kill_and_look, &killing) == 0);
        stuck = ask_until_gone(remote, data);
        pthread_join(killer, NULL);
        waitpid(killing.pid, NULL, 0);
        stuck -= killing.died;
        most = stuck > most ? stuck : most;
        late += stuck >= most_stuck_s ? 1 : 0;
        EXPECT(stuck < 0.5 * test_patience_s());
        EXPECT(!CFMessagePortIsValid(remote));
        CFRelease(remote);
    }
    EXPECT(late <= rounds / 20 || test_is_instrumented()); /* a machine that does other things too may be late */
    printf("%d receivers killed; nobody waited longer than %.1f ms past the death\n", rounds, most * 1e3);
    CFRelease(data);
}

static ssize_t die_between(int socket_number, const struct msghdr *message)
{
    (void)socket_number;
    (void)message;
    (void)raise(SIGKILL);
    return -EIO;
}

/* The packet with the descriptor is the second half of a large reply. */
static void die_in_the_middle(CFMessagePortRef port)
{
    (void)port;
    kernel_ports.send_message = die_between;
}

static CFDataRef reply_large(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)data;
    (void)info;
    return port_pattern(message_id, 1);
}

PORT_TEST(a_receiver_that_dies_in_the_middle_of_a_reply_ends_the_wait, "232 M1")
{
    pid_t owner = port_process_start(NAME, reply_large, NULL, die_in_the_middle);
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef reply = NULL;
    double begun = port_probe_now();

    EXPECT_EQ(port_ask(remote, 100, NULL, NULL), kCFMessagePortSuccess); /* the channel is kept from here on */
    EXPECT_EQ(port_ask(remote, 100000, NULL, &reply), kCFMessagePortBecameInvalidError);
    EXPECT_EQ(reply, NULL);
    EXPECT(port_probe_now() - begun < 0.5 * test_patience_s());
    EXPECT(!CFMessagePortIsValid(remote));
    waitpid(owner, NULL, 0);
    CFRelease(remote);
}

/* ---- senders ---- */

static void ask_until_killed(void)
{
    CFMessagePortRef remote = port_connect(NAME);
    CFDataRef data = port_pattern(70000, 2);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0;; i++) {
        (void)(i % 3 == 0 ? port_tell(remote, i, data) : port_ask(remote, i, i % 3 == 1 ? data : NULL, NULL));
    }
}

PORT_TEST_LIMIT(stress_senders_killed_at_any_moment_leave_nothing_behind, "H9 M2", 120)
{
    struct port_thread server;
    CFMessagePortRef remote;
    unsigned state = (unsigned)getpid();
    int before = 0;

    port_thread_start(&server, NAME, echo_large, NULL);
    for (int round = 0; round < (test_is_soak() ? 1000 : 60); round++) {
        pid_t pid = fork();

        if (pid == 0) {
            ask_until_killed();
        }
        usleep((useconds_t)(rand_r(&state) % 4000)); /* any moment will do */
        port_process_kill(pid);
        if (round == 10) {
            before = port_probe_count_descriptors();
        }
    }
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT(port_probe_descriptors_fall_to(before + 8));
    CFRelease(remote);
    port_thread_stop(&server);
}

/* ---- names ---- */

enum { heirs = 3 };

/* In memory that all share. */
struct succession {
    pthread_mutex_t witness; /* of the one owner; the kernel frees it before it closes a dead process's files */
    atomic_int two_owners;
    atomic_int owner; /* who has it, or had it last */
    atomic_int reigns;
    _Atomic double since;
};

static struct succession *succession;

static struct succession *share(void)
{
    struct succession *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;

    REQUIRE(shared != MAP_FAILED);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->witness, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return shared;
}

static void reign(CFMessagePortRef port, unsigned *state)
{
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    int result = pthread_mutex_trylock(&succession->witness);

    if (result == EOWNERDEAD) {
        result = pthread_mutex_consistent(&succession->witness);
    }
    if (result != 0) {
        atomic_fetch_add(&succession->two_owners, 1);
    }
    atomic_store(&succession->since, port_probe_now());
    atomic_store(&succession->owner, getpid());
    atomic_fetch_add(&succession->reigns, 1);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    CFRelease(source);
    /* Some give the name up by themselves. */
    (void)CFRunLoopRunInMode(MODE, rand_r(state) % 4 == 0 ? 0.001 * (rand_r(state) % 5) : test_patience_s(), false);
    if (result == 0) {
        (void)pthread_mutex_unlock(&succession->witness);
    }
}

static void contend_until_killed(void)
{
    unsigned state = (unsigned)getpid();

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, NULL);

        if (port) {
            reign(port, &state);
            port_drop(port);
        }
        usleep((useconds_t)(rand_r(&state) % 500)); /* the contest goes on at any moment */
    }
}

static pid_t start_heir(void)
{
    pid_t pid = fork();

    REQUIRE(pid >= 0);
    if (pid == 0) {
        contend_until_killed();
    }
    return pid;
}

/* Waits until there is an owner who answers. */
static void expect_answer(void)
{
    double begun = port_probe_now();
    SInt32 result = kCFMessagePortTransportError;

    while (result != kCFMessagePortSuccess && port_probe_now() - begun < test_patience_s()) {
        CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, NAME);

        if (remote) {
            result = port_ask(remote, 1, NULL, NULL);
            CFRelease(remote);
        }
    }
    EXPECT_EQ(result, kCFMessagePortSuccess);
}

static int index_of(const pid_t pids[heirs], pid_t pid)
{
    int index = 0;

    while (index < heirs - 1 && pids[index] != pid) {
        index++;
    }
    return index;
}

/* Kills one, who may own the name; if he did, how long the name had no owner, else 0. */
static double kill_and_succeed(pid_t pids[heirs], unsigned *state)
{
    int reigns;
    int victim;
    bool was_owner;
    double killed;

    usleep((useconds_t)(rand_r(state) % 3000)); /* any moment will do */
    reigns = atomic_load(&succession->reigns);
    /* The owner mostly, else one who may be about to be. */
    victim = rand_r(state) % 8 == 0 ? rand_r(state) % heirs : index_of(pids, atomic_load(&succession->owner));
    was_owner = pids[victim] == atomic_load(&succession->owner);
    killed = port_probe_now();
    port_process_kill(pids[victim]);
    pids[victim] = start_heir();
    expect_answer();
    return was_owner && atomic_load(&succession->reigns) > reigns ? atomic_load(&succession->since) - killed : 0;
}

PORT_TEST_LIMIT(stress_a_name_has_one_owner_through_all_deaths, "193 195 M2 M4", 120)
{
    int rounds = test_is_soak() ? 1000 : 100;
    unsigned state = (unsigned)getpid();
    pid_t pids[heirs];
    int takeovers = 0;
    double longest = 0;

    succession = share();
    for (int i = 0; i < heirs; i++) {
        pids[i] = start_heir();
    }
    expect_answer();
    for (int kills = 0; kills < rounds; kills++) {
        double vacant = kill_and_succeed(pids, &state);

        takeovers += vacant > 0 ? 1 : 0;
        longest = vacant > longest ? vacant : longest;
        EXPECT(vacant < most_takeover_s || test_is_instrumented());
    }
    for (int i = 0; i < heirs; i++) {
        port_process_kill(pids[i]);
    }
    EXPECT_EQ(atomic_load(&succession->two_owners), 0);
    EXPECT(takeovers > rounds / 2);
    printf("%d kills, %d takeovers, %d owners, never two; the name was vacant for at most %.1f ms\n", rounds, takeovers,
           atomic_load(&succession->reigns), longest * 1e3);
    (void)munmap(succession, sizeof *succession);
}

#define OTHER_NAME CFSTR("another name")

static void register_rename_withdraw(unsigned death)
{
    CFMessagePortRef port;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    nth_failure_die_at(death);
    port = CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, NULL);
    if (port && CFMessagePortSetName(port, OTHER_NAME)) {
        CFMessagePortInvalidate(port);
        _exit(0);
    }
    _exit(1);
}

static void expect_free(CFStringRef name)
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, name, port_echo, NULL, NULL);

    REQUIRE(port != NULL);
    EXPECT_EQ(port_probe_count_files(), 2);
    port_drop(port);
    EXPECT_EQ(port_probe_count_files(), 0);
}

PORT_TEST(a_process_killed_at_each_step_of_registering_blocks_no_name, "195 H19")
{
    int status = -1;
    unsigned death = 0;

    while (status != 0 && death < 1000) {
        pid_t pid = fork();

        death++;
        if (pid == 0) {
            register_rename_withdraw(death);
        }
        REQUIRE(waitpid(pid, &status, 0) == pid);
        EXPECT(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
        EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
        EXPECT_EQ(CFMessagePortCreateRemote(NULL, OTHER_NAME), NULL);
        expect_free(death % 2 ? NAME : OTHER_NAME);
    }
    EXPECT(death > 40 && status == 0);
    printf("killed before each of %u system calls\n", death - 1);
}

/* ---- many messages ---- */

static CFDataRef echo_at_times_late(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    double until = port_probe_now() + (double)(message_id % 5 == 0 ? message_id % 300 : 0) / 1e6;

    (void)port;
    (void)info;
    while (port_probe_now() < until) {
    }
    return CFRetain(data);
}

PORT_TEST_BOTH_WAYS_LIMIT(stress_late_replies_reach_nobody, "230 233 M10", 120)
{
    struct port_thread server;
    CFMessagePortRef remote;
    unsigned state = (unsigned)getpid();
    int counts[2] = {0, 0};

    port_thread_start(&server, NAME, echo_at_times_late, NULL);
    remote = port_connect(NAME);
    for (SInt32 i = 0; i < (test_is_soak() ? 100000 : 2000); i++) {
        CFDataRef data = CFDataCreate(NULL, (const UInt8 *)&i, sizeof i);
        CFDataRef reply = NULL;
        bool is_late = rand_r(&state) % 2 == 0;
        double limit = is_late ? (rand_r(&state) % 100) / 1e6 : test_patience_s();
        SInt32 result = CFMessagePortSendRequest(remote, i, data, test_patience_s(), limit, MODE, &reply);

        REQUIRE(result == kCFMessagePortSuccess || (is_late && result == kCFMessagePortReceiveTimeout));
        EXPECT((result == kCFMessagePortSuccess) == (reply != NULL));
        EXPECT(!reply || CFEqual(reply, data));
        counts[result == kCFMessagePortSuccess ? 1 : 0]++;
        if (reply) {
            CFRelease(reply);
        }
        CFRelease(data);
    }
    EXPECT(counts[0] > 0 && counts[1] > 0);
    printf("%d replies came too late, %d in time, each to its request\n", counts[0], counts[1]);
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST_BOTH_WAYS(stress_messages_leave_memory_and_descriptors_flat, "P4")
{
    enum { warm = 5000 };
    const size_t most_growth = 1 << 20;
    struct port_thread server;
    CFMessagePortRef remote;
    CFDataRef data = port_pattern(3000, 1);
    int rounds = test_is_soak() ? 10000000 : 20000;
    int descriptors = 0;
    size_t memory = 0;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = port_connect(NAME);
    for (int i = 0; i < rounds; i++) {
        REQUIRE((i % 2 ? port_tell(remote, i, data) : port_ask(remote, i, data, NULL)) == kCFMessagePortSuccess);
        if (i == warm) {
            descriptors = port_probe_count_descriptors();
            memory = port_probe_resident_bytes();
        }
    }
    EXPECT_EQ(port_ask(remote, 0, data, NULL), kCFMessagePortSuccess); /* all before it have been handled */
    EXPECT(port_probe_descriptors_fall_to(descriptors));
    EXPECT(port_probe_resident_bytes() < memory + most_growth || test_is_instrumented());
    printf("%d messages: memory %zu KiB, then %zu KiB; descriptors %d, then %d\n", rounds, memory >> 10, port_probe_resident_bytes() >> 10,
           descriptors, port_probe_count_descriptors());
    CFRelease(data);
    CFRelease(remote);
    port_thread_stop(&server);
}
