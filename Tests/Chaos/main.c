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

struct chaos *chaos;

static struct worker {
    pid_t pid;
    uint32_t life;
    double stopped_since, stopped_until; /* 0: it runs */
    double limited_until; /* 0: it has descriptors */
    struct rlimit limit;
} workers[chaos_workers];

static struct {
    uint64_t servers_killed, clients_killed, stops, limits, directories;
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

static unsigned random_below(unsigned limit)
{
    return (unsigned)rand_r(&random_state) % limit;
}

/* ---- workers ---- */

static bool is_server(int slot)
{
    return slot < chaos_servers;
}

static void start(int slot)
{
    struct worker *worker = &workers[slot];

    worker->life = atomic_fetch_add(&chaos->lives, 1) + 1;
    worker->stopped_until = worker->limited_until = 0;
    worker->pid = fork();
    if (worker->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (is_server(slot)) {
            serve(slot, worker->life);
        }
        ask(slot, worker->life);
    }
    if (worker->pid < 0) {
        perror("chaos: fork");
        exit(2);
    }
}

static void wait_for_end(int slot, bool was_killed)
{
    int status = 0;

    while (waitpid(workers[slot].pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (was_killed ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL : status != 0) {
        chaos_violation("%s %u ended by itself, with status 0x%x", is_server(slot) ? "server" : "client", workers[slot].life,
                        (unsigned)status);
    }
}

static void kill_one(int slot)
{
    atomic_store(&chaos->was_killed[workers[slot].life], true);
    (void)kill(workers[slot].pid, SIGKILL);
    wait_for_end(slot, true);
    *(is_server(slot) ? &faults.servers_killed : &faults.clients_killed) += 1;
    start(slot);
}

static void stop_one(int slot)
{
    if (workers[slot].stopped_until == 0) {
        workers[slot].stopped_since = chaos_now();
        (void)kill(workers[slot].pid, SIGSTOP);
        workers[slot].stopped_until = workers[slot].stopped_since + random_below(1000) * longest_fault_s / 1e3;
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
    low.rlim_cur = 3 + random_below(20);
    (void)prlimit(worker->pid, RLIMIT_NOFILE, &low, NULL);
    worker->limited_until = chaos_now() + random_below(1000) * longest_fault_s / 1e3;
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
    int slot = (int)random_below(chaos_workers);

    switch (random_below(16)) {
    case 0:
        if (random_below(4) == 0) {
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
        kill_one(chaos_servers + slot % chaos_clients);
        break;
    default: /* owners and those who contend for their names */
        kill_one(slot % chaos_servers);
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
        struct timespec pause = {0, (long)random_below(8000000)};

        (void)nanosleep(&pause, NULL); /* the next fault comes at any moment */
        relent(chaos_now());
        break_something();
    }
    return chaos_now() - begun;
}

static bool all_are_served(void)
{
    for (int i = 0; i < chaos_clients; i++) {
        for (int j = 0; j < chaos_names; j++) {
            if (atomic_load(&chaos->progress[i][j]) < 3) {
                return false;
            }
        }
    }
    return true;
}

/* How long it takes until every client has been answered at every name. */
static double recover(void)
{
    double begun = chaos_now();
    struct timespec pause = {0, 1000000};

    relent(begun + 1e9);
    atomic_store(&chaos->is_calm, true);
    while (!all_are_served() && chaos_now() < begun + recovery_s) {
        (void)nanosleep(&pause, NULL);
    }
    if (!all_are_served()) {
        chaos_violation("%.0f s after the last fault some client has no answer at some name", recovery_s);
    }
    return chaos_now() - begun;
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

    (void)printf("chaos: seed %" PRIu64 ", %.0f s, %d servers for %d names, %d clients: ", seed, seconds, chaos_servers, chaos_names,
                 chaos_clients);
    (void)printf("%" PRIu64 " messages handled, %" PRIu64 " answered, %" PRIu64 " one-way sent\n", verdict->handled, verdict->answered,
                 atomic_load(&chaos->one_way));
    (void)printf("chaos: %" PRIu64 " servers and %" PRIu64 " clients killed, %" PRIu64 " stopped, %" PRIu64
                 " short of descriptors, %" PRIu64 " directories removed; %" PRIu64 " owners, %" PRIu64 " takeovers from the dead\n",
                 faults.servers_killed, faults.clients_killed, faults.stops, faults.limits, faults.directories, atomic_load(&chaos->owners),
                 atomic_load(&chaos->takeovers));
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
    for (int i = 0; i < chaos_workers; i++) {
        start(i);
    }
    took = rage((double)seconds);
    recovery = recover();
    end();
    verdict = judge_history();
    report(seed, took, recovery, &verdict);
    clean_up();
    return atomic_load(&chaos->violations) > 0 ? 1 : 0;
}
