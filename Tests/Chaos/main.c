/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chaos SECONDS SEED: starts the processes, breaks them at random for that long, gives them peace, and judges what they did.
 *
 * The order and the kind of the faults follow from the seed, as does what each process sends; when what happens does not. Exit status: 0 no
 * violation, 1 some, 2 bad arguments.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chaos.h"

enum { longest_seconds = 86400, most_violations_printed = 20 };

/* How long after the last fault all must be served again. */
static const double recovery_s = 10;
static const double longest_fault_s = 0.05;
/* How long all live on then: long enough for a hostile peer to hold up a loop that it could hold up. */
static const double peace_s = 1.5;

struct chaos *chaos;

enum kind { kind_server, kind_client, kind_crowd, kind_hostile, kinds };

static const struct {
    const char *name;
    int first, count; /* slots */
    void (*live)(int slot, uint32_t life);
} kind_of[kinds] = {
    [kind_server] = {"server", 0, chaos_servers, serve},
    [kind_client] = {"client", chaos_servers, chaos_clients, ask},
    [kind_crowd] = {"one of the crowd", chaos_servers + chaos_clients, chaos_crowd, crowd},
    [kind_hostile] = {"hostile peer", chaos_askers, chaos_hostile, harm},
};

static struct worker {
    enum kind kind;
    pid_t pid;
    uint32_t life;
    double stopped_since, stopped_until; /* 0: it runs */
    double limited_until; /* 0: it has descriptors */
    struct rlimit limit;
} workers[chaos_workers];

static struct {
    uint64_t killed[kinds], killed_in_line, stops, limits, directories;
} faults;

static char base[] = "/tmp/corerunloop-chaos-XXXXXX";
static unsigned random_state;

double chaos_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void chaos_violation(const char *format, ...)
{
    uint32_t before = atomic_fetch_add(&chaos->violations, 1);
    char text[300];
    va_list arguments;

    if (before >= most_violations_printed) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)dprintf(STDOUT_FILENO, "chaos: %s\n", text);
}

void chaos_note(enum event_kind kind, int name, uint32_t client, uint32_t number, uint32_t server)
{
    uint32_t place = atomic_fetch_add(&chaos->event_count, 1);

    if (place < chaos_events_max) {
        chaos->events[place] = (struct event){client, number, server, (uint16_t)name, (uint16_t)kind};
    }
}

void chaos_begin_life(int slot, uint32_t life)
{
    random_state = (unsigned)(chaos->seed * 2654435761u + (unsigned)slot * 40503u + life);
}

unsigned chaos_random(unsigned limit)
{
    return (unsigned)rand_r(&random_state) % limit;
}

/* ---- workers ---- */

static void start(int slot)
{
    struct worker *worker = &workers[slot];

    worker->life = atomic_fetch_add(&chaos->lives, 1) + 1;
    worker->stopped_until = worker->limited_until = 0;
    atomic_fetch_add(&chaos->shortages[slot], atomic_load(&chaos->shortages[slot]) % 2); /* who had the slot before may have died so */
    worker->pid = namespaces_fork();
    if (worker->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        kind_of[worker->kind].live(slot, worker->life);
    }
    if (worker->pid < 0) {
        perror("chaos: fork");
        exit(2);
    }
}

static void start_all(void)
{
    for (int kind = 0; kind < kinds; kind++) {
        for (int i = 0; i < kind_of[kind].count; i++) {
            workers[kind_of[kind].first + i].kind = (enum kind)kind;
            start(kind_of[kind].first + i);
        }
    }
}

static void wait_for_end(int slot, bool was_killed)
{
    int status = 0;

    while (waitpid(workers[slot].pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (was_killed ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL : status != 0) {
        chaos_violation("%s %u ended by itself, with status 0x%x", kind_of[workers[slot].kind].name, workers[slot].life,
                        (unsigned)status);
    }
}

static void kill_one(enum kind kind)
{
    int slot = kind_of[kind].first + (int)chaos_random((unsigned)kind_of[kind].count);

    faults.killed_in_line += atomic_load(&chaos->is_in_line[slot]) ? 1 : 0;
    atomic_store(&chaos->was_killed[workers[slot].life], true);
    (void)kill(workers[slot].pid, SIGKILL);
    wait_for_end(slot, true);
    faults.killed[kind]++;
    start(slot);
}

static void stop_one(int slot)
{
    if (workers[slot].stopped_until == 0) {
        workers[slot].stopped_since = chaos_now();
        (void)kill(workers[slot].pid, SIGSTOP);
        workers[slot].stopped_until = workers[slot].stopped_since + chaos_random(1000) * longest_fault_s / 1e3;
        faults.stops++;
    }
}

static void limit_one(int slot)
{
    struct worker *worker = &workers[slot];
    struct rlimit low;

    if (worker->limited_until > 0 || prlimit(worker->pid, RLIMIT_NOFILE, NULL, &worker->limit) != 0) {
        return;
    }
    low = worker->limit;
    low.rlim_cur = 3 + chaos_random(20);
    atomic_fetch_add(&chaos->shortages[slot], 1);
    (void)prlimit(worker->pid, RLIMIT_NOFILE, &low, NULL);
    worker->limited_until = chaos_now() + chaos_random(1000) * longest_fault_s / 1e3;
    faults.limits++;
}

/* Ends the faults that have had their time. */
static void relent(double now)
{
    for (int i = 0; i < chaos_workers; i++) {
        struct worker *worker = &workers[i];

        if (worker->stopped_until > 0 && worker->stopped_until <= now) {
            atomic_store(&chaos->stopped_s[i], atomic_load(&chaos->stopped_s[i]) + chaos_now() - worker->stopped_since);
            (void)kill(worker->pid, SIGCONT);
            worker->stopped_until = 0;
        }
        if (worker->limited_until > 0 && worker->limited_until <= now) {
            (void)prlimit(worker->pid, RLIMIT_NOFILE, &worker->limit, NULL);
            atomic_fetch_add(&chaos->shortages[i], 1);
            worker->limited_until = 0;
        }
    }
}

/* ---- the directory ---- */

static void remove_files(int directory)
{
    DIR *stream = fdopendir(directory);

    for (struct dirent *entry; stream && (entry = readdir(stream)) != NULL;) {
        (void)unlinkat(dirfd(stream), entry->d_name, 0);
    }
    if (stream) {
        (void)closedir(stream);
    }
}

/* The directory itself stays, elsewhere, so that no other has its inode. */
static void remove_directory(void)
{
    char aside[sizeof base + 32];
    int directory;

    if (faults.directories + 2 >= chaos_directories_max) {
        return;
    }
    (void)snprintf(aside, sizeof aside, "%s/gone.%" PRIu64, base, faults.directories);
    if (rename(chaos->directory, aside) == 0) {
        faults.directories++;
        directory = open(aside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory >= 0) {
            remove_files(directory);
        }
    }
}

static void clean_up(void)
{
    char command[sizeof base + 32];

    (void)snprintf(command, sizeof command, "rm -rf %s", base);
    if (system(command) != 0) {
        (void)fprintf(stderr, "chaos: %s is left\n", base);
    }
}

/* ---- the run ---- */

static void prepare(uint64_t seed)
{
    pthread_mutexattr_t attributes;

    chaos = mmap(NULL, sizeof *chaos, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (chaos == MAP_FAILED || !mkdtemp(base) || setenv("XDG_RUNTIME_DIR", base, 1) != 0) {
        perror("chaos");
        exit(2);
    }
    (void)snprintf(chaos->directory, sizeof chaos->directory, "%s/corerunloop.v1", base);
    chaos->seed = seed;
    random_state = (unsigned)(seed ^ seed >> 32);
    (void)pthread_mutexattr_init(&attributes);
    (void)pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    for (int i = 0; i < chaos_directories_max; i++) {
        for (int j = 0; j < chaos_names; j++) {
            (void)pthread_mutex_init(&chaos->directories[i].owners[j], &attributes);
        }
    }
    (void)pthread_mutexattr_destroy(&attributes);
}

static void break_something(void)
{
    int slot = (int)chaos_random(chaos_workers);

    switch (chaos_random(20)) {
    case 0:
        if (chaos_random(4) == 0) {
            remove_directory();
        }
        break;
    case 1:
    case 2:
    case 3:
        limit_one(slot);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        stop_one(slot);
        break;
    case 8:
    case 9:
        kill_one(kind_client);
        break;
    case 10:
    case 11:
    case 12:
        kill_one(kind_crowd);
        break;
    case 13:
        kill_one(kind_hostile);
        break;
    default: /* owners and those who contend for their names */
        kill_one(kind_server);
    }
}

static bool has_room(void)
{
    return atomic_load(&chaos->event_count) < chaos_events_max / 8 * 7 && atomic_load(&chaos->lives) < chaos_lives_max - chaos_workers - 1;
}

static double rage(double seconds)
{
    double begun = chaos_now();
    double until = begun + seconds;

    for (double now = begun; now < until && has_room(); now = chaos_now()) {
        struct timespec pause = {0, (long)chaos_random(8000000)};

        (void)nanosleep(&pause, NULL); /* the next fault comes at any moment */
        relent(chaos_now());
        break_something();
    }
    return chaos_now() - begun;
}

/* Returns who has not yet been served, the clients at every name and the crowd at theirs, and the name in `ret_name`; -1: nobody. */
static int find_unserved(int *ret_name)
{
    for (int i = chaos_servers; i < chaos_askers; i++) {
        int names = workers[i].kind == kind_crowd ? 1 : chaos_names;

        for (int j = 0; j < names; j++) {
            if (atomic_load(&chaos->progress[i][j]) < 3) {
                *ret_name = j;
                return i;
            }
        }
    }
    return -1;
}

/* How long it takes until every client has been answered at every name. */
static double recover(void)
{
    double begun = chaos_now();
    struct timespec pause = {0, 1000000};
    int name = 0;
    int slot;

    relent(begun + 1e9);
    atomic_store(&chaos->is_calm, true);
    while (find_unserved(&name) >= 0 && chaos_now() < begun + recovery_s) {
        (void)nanosleep(&pause, NULL);
    }
    slot = find_unserved(&name);
    if (slot >= 0) {
        chaos_violation("%.0f s after the last fault %s, %u, is not served by the owner of name %d, which is server %u", recovery_s,
                        kind_of[workers[slot].kind].name, workers[slot].life, name, atomic_load(&chaos->owner[name]));
    }
    return chaos_now() - begun;
}

static void live_in_peace(void)
{
    struct timespec pause = {(time_t)peace_s, (long)((peace_s - (double)(time_t)peace_s) * 1e9)};

    (void)nanosleep(&pause, NULL); /* nothing is waited for: the servers judge their loops themselves */
}

/* All end by themselves and take their files with them, but for what the dead left, which goes with the next registration. */
static void end(void)
{
    DIR *stream;

    atomic_store(&chaos->is_over, true);
    for (int i = 0; i < chaos_workers; i++) {
        wait_for_end(i, false);
    }
    stream = opendir(chaos->directory);
    for (struct dirent *entry; stream && (entry = readdir(stream)) != NULL;) {
        if (entry->d_name[0] != '.') {
            chaos_violation("the file %s is left", entry->d_name);
        }
    }
    if (stream) {
        (void)closedir(stream);
    }
}

static void report(uint64_t seed, double seconds, double recovery, const struct verdict *verdict)
{
    static const char *const results[chaos_codes] = {"success", "send timeouts", "receive timeouts", "invalid", "transport errors",
                                                     "became invalid"};

    (void)printf("chaos: seed %" PRIu64 ", %.0f s, %d servers for %d names, %d clients, a crowd of %d, %d hostile peers: ", seed, seconds,
                 chaos_servers, chaos_names, chaos_clients, chaos_crowd, chaos_hostile);
    (void)printf("%" PRIu64 " messages handled, %" PRIu64 " answered, %" PRIu64 " one-way sent\n", verdict->handled, verdict->answered,
                 atomic_load(&chaos->one_way));
    (void)printf("chaos: killed: %" PRIu64 " servers, %" PRIu64 " clients, %" PRIu64 " of the crowd, %" PRIu64
                 " of them in line, %" PRIu64 " hostile; %" PRIu64 " stopped, %" PRIu64 " short of descriptors, %" PRIu64
                 " directories removed; %" PRIu64 " owners, %" PRIu64 " takeovers from the dead\n",
                 faults.killed[kind_server], faults.killed[kind_client], faults.killed[kind_crowd], faults.killed_in_line,
                 faults.killed[kind_hostile], faults.stops, faults.limits, faults.directories, atomic_load(&chaos->owners),
                 atomic_load(&chaos->takeovers));
    (void)printf("chaos: %" PRIu64 " lives in PID namespaces, %" PRIu64 " in user namespaces; passed: %" PRIu64
                 " descriptors that linger, %" PRIu64 " whose close blocks; a loop was held up for %.0f ms at most\n",
                 namespaces_pid_count(), atomic_load(&chaos->in_user_namespaces), atomic_load(&chaos->lingering),
                 atomic_load(&chaos->blocking), atomic_load(&chaos->longest_run_s) * 1e3);
    (void)printf("chaos: calls:");
    for (int i = 0; i < chaos_codes; i++) {
        (void)printf(" %" PRIu64 " %s%s", atomic_load(&chaos->results[i]), results[i], i + 1 < chaos_codes ? "," : "");
    }
    (void)printf("; the longest took %.0f ms more than it was to; all served again after %.0f ms\n", atomic_load(&chaos->longest_s) * 1e3,
                 recovery * 1e3);
    (void)printf("chaos: %u violations\n", atomic_load(&chaos->violations));
}

static _Noreturn void refuse(const char *what, const char *value)
{
    (void)fprintf(stderr, "chaos: %s '%s' is not a number from 1 to %" PRIu64 "\n", what, value,
                  strcmp(what, "SECONDS") == 0 ? (uint64_t)longest_seconds : UINT64_MAX);
    exit(2);
}

static uint64_t number(const char *what, const char *value, uint64_t most)
{
    char *rest;
    unsigned long long result;

    errno = 0;
    result = strtoull(value, &rest, 10);
    if (errno || rest == value || *rest || value[0] < '0' || value[0] > '9' || result == 0 || result > most) {
        refuse(what, value);
    }
    return result;
}

int main(int count, char **arguments)
{
    uint64_t seconds, seed;
    double took, recovery;
    struct verdict verdict;

    if (count != 3) {
        (void)fprintf(stderr, "usage: chaos SECONDS SEED\n");
        return 2;
    }
    seconds = number("SECONDS", arguments[1], longest_seconds);
    seed = number("SEED", arguments[2], UINT64_MAX);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    prepare(seed);
    start_all();
    took = rage((double)seconds);
    recovery = recover();
    live_in_peace();
    end();
    verdict = judge_history();
    report(seed, took, recovery, &verdict);
    clean_up();
    return atomic_load(&chaos->violations) > 0 ? 1 : 0;
}
