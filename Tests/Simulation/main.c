/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: simulate [--seed N | --first N --seeds N] [--jobs N] IMAGE...
 *
 * Runs the simulation of one seed and prints its trace, or those of many, each in a process of its own. Some are run twice, and must leave
 * the same trace: for that, addresses and the allocator must be the same each time, so the program starts itself again without what makes
 * them differ.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "history.h"
#include "image.h"
#include "plan.h"
#include "scheduler.h"
#include "tables.h"

enum { jobs_max = 16, failures_shown = 5, twice_one_in = 16, seconds_max = 10, status_bad_input = 2, waits_judged = 5000 };

/* One seed's process; its counts come back through shared memory. */
struct job {
    pid_t pid;
    uint64_t seed;
    int round; /* of a seed that is run twice: 1 or 2; else 0 */
    uint64_t first_hash;
    int output;
    struct scheduler_counts *counts;
};

static const struct image *images[processes_max];
static struct job jobs[jobs_max];
static bool prints; /* the trace of the only seed */
static struct scheduler_counts totals;
static uint64_t seeds_done, failures, alike;

static _Noreturn void refuse(const char *sentence, const char *what)
{
    (void)fprintf(stderr, "simulate: %s: %s\n", sentence, what);
    exit(status_bad_input);
}

/* ---- one seed, in its process ---- */

static void check_rest(int process)
{
    const char *first = "";
    int open = files_open(process, &first);
    long objects = images[process]->live_objects();

    if (open > 0) {
        scheduler_fail("process %d has left %d descriptors open, the first is %s", process, open, first);
    }
    if (objects != 0) {
        scheduler_fail("process %d has left %ld objects", process, objects);
    }
}

static void simulate(uint64_t seed, struct scheduler_counts *ret_counts)
{
    scheduler_begin(seed, prints, files_drain_dead, files_next_alarm_ns);
    plan_make();
    if (prints) {
        plan_print();
    }
    tables_begin(&plan.faults);
    files_begin((size_t)plan.datagrams_max, plan.descriptor_limit);
    for (int i = 0; i < plan.processes; i++) {
        images[i]->start(i);
    }
    scheduler_run();
    history_check_end();
    for (int i = 0; i < plan.processes; i++) {
        if (!scheduler_processes[i].has_died) {
            check_rest(i);
        }
    }
    *ret_counts = scheduler_counts;
}

/* ---- many seeds ---- */

static void stay_on_one_processor(int job)
{
    cpu_set_t all;
    cpu_set_t own;
    int wanted = job;

    if (sched_getaffinity(0, sizeof all, &all) < 0) {
        return;
    }
    wanted %= CPU_COUNT(&all);
    CPU_ZERO(&own);
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &all) && wanted-- == 0) {
            CPU_SET(i, &own);
        }
    }
    (void)sched_setaffinity(0, sizeof own, &own);
}

static void start(struct job *job, uint64_t seed, int round)
{
    job->seed = seed;
    job->round = round;
    *job->counts = (struct scheduler_counts){0};
    (void)!ftruncate(job->output, 0);
    (void)fflush(NULL);
    job->pid = fork();
    if (job->pid == 0) {
        if (!prints) {
            (void)dup2(job->output, STDERR_FILENO);
            (void)lseek(STDERR_FILENO, 0, SEEK_SET);
        }
        (void)alarm(seconds_max);
        stay_on_one_processor((int)(job - jobs));
        simulate(seed, job->counts);
        (void)fflush(stdout);
        _exit(0);
    }
    if (job->pid < 0) {
        refuse("no process can be made", strerror(errno));
    }
}

static void show_failure(const struct job *job, int status)
{
    char text[2048];
    off_t length = lseek(job->output, 0, SEEK_END);
    off_t begin = length > (off_t)sizeof text - 1 ? length - (off_t)sizeof text + 1 : 0;
    ssize_t size = pread(job->output, text, sizeof text - 1, begin);

    (void)fprintf(stderr, "sim: seed %llu failed (make sim SEED=%llu)\n", (unsigned long long)job->seed, (unsigned long long)job->seed);
    if (++failures > failures_shown) {
        return;
    }
    if (WIFSIGNALED(status)) {
        (void)fprintf(stderr, "  it was ended by signal %d%s\n", WTERMSIG(status), WTERMSIG(status) == SIGALRM ? ": no progress" : "");
    }
    text[size > 0 ? size : 0] = '\0';
    (void)fputs(text, stderr);
}

static void count(const struct scheduler_counts *counts)
{
    totals.points += counts->points;
    totals.switches += counts->switches;
    totals.calls += counts->calls;
    totals.faults += counts->faults;
    totals.deaths += counts->deaths;
    totals.waits += counts->waits;
    totals.late_waits += counts->late_waits;
    totals.elapsed_ns += counts->elapsed_ns;
}

/* What a seed's process has said. True: it is to be run a second time. */
static bool finish(struct job *job, int status)
{
    if (status != 0) {
        seeds_done++;
        show_failure(job, status);
        return false;
    }
    if (job->round == 1) {
        job->first_hash = job->counts->hash;
        return true;
    }
    seeds_done++;
    count(job->counts);
    if (job->round == 2 && job->counts->hash == job->first_hash) {
        alike++;
    } else if (job->round == 2) {
        failures++;
        (void)fprintf(stderr, "sim: seed %llu left another trace the second time\n", (unsigned long long)job->seed);
    }
    return false;
}

static void run_seeds(uint64_t first, uint64_t number, int job_count)
{
    uint64_t next = 0;

    for (int i = 0; i < job_count; i++) {
        jobs[i].output = memfd_create("simulation", MFD_CLOEXEC);
        jobs[i].counts = mmap(NULL, sizeof *jobs[i].counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (jobs[i].counts == MAP_FAILED) {
            refuse("no memory can be shared", strerror(errno));
        }
        if (next < number) {
            start(&jobs[i], first + next, !prints && next % twice_one_in == 0 ? 1 : 0);
            next++;
        }
    }
    while (seeds_done < number) {
        int status = 0;
        pid_t pid = wait(&status);
        struct job *job = jobs;

        if (pid < 0) {
            continue;
        }
        while (job->pid != pid) {
            job++;
        }
        job->pid = 0;
        if (finish(job, status)) {
            start(job, job->seed, 2);
        } else if (next < number) {
            start(job, first + next, next % twice_one_in == 0 ? 1 : 0);
            next++;
        }
    }
}

/* ---- the program ---- */

static uint64_t number_of(const char *option, const char *text)
{
    char *rest = NULL;
    unsigned long long number = 0;

    errno = 0;
    if (text && *text >= '0' && *text <= '9') {
        number = strtoull(text, &rest, 10);
    }
    if (!rest || *rest || errno || number == 0) {
        refuse("it takes a whole number above 0", option);
    }
    return number;
}

/*
 * Addresses decide which lock an object has, and where it stands in a table: they must be the same for the same seed. Each of the four
 * images has the library's thread-local words, for which the dynamic linker keeps room for one library only.
 */
static void start_steadily(char **arguments)
{
    static const char tunables[] = "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1:glibc.rtld.optional_static_tls=4096";
    const char *set = getenv("GLIBC_TUNABLES");

    if (!set || strcmp(set, tunables) != 0) {
        (void)setenv("GLIBC_TUNABLES", tunables, 1);
        (void)personality(ADDR_NO_RANDOMIZE);
        (void)execv("/proc/self/exe", arguments);
        refuse("it cannot start itself again", strerror(errno));
    }
}

static void load(int number, const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    images[number] = handle ? dlsym(handle, "simulation_image") : NULL;
    if (!images[number]) {
        refuse("an image cannot be loaded", dlerror());
    }
}

static double seconds_since(const struct timespec *begin)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

/*
 * Senders have room in the order in which they came, but for those that find it at their first try and those that were interrupted. So a
 * few wait more than twice as long as was due. With a library that tries again and again it is one in seven.
 */
static void judge_turns(void)
{
    if (totals.waits >= waits_judged && totals.late_waits > totals.waits / 8) {
        failures++;
        (void)fprintf(stderr, "sim: of %llu waits for room %llu let more than twice as many go first as were there first\n",
                      (unsigned long long)totals.waits, (unsigned long long)totals.late_waits);
    }
}

static int report(uint64_t first, const struct timespec *begin)
{
    judge_turns();
    if (prints && failures == 0) {
        (void)printf("seed %llu: passed; trace %016llx\n", (unsigned long long)first, (unsigned long long)jobs[0].counts->hash);
    }
    (void)printf("sim: %llu seeds from %llu, %llu failed; %llu run twice, alike; %.1f million schedule points, %.1f million switches, "
                 "%.1f million calls, %llu faults, %llu deaths, %llu waits for room, %llu of them out of turn, %.0f simulated s, %.0f s\n",
                 (unsigned long long)seeds_done, (unsigned long long)first, (unsigned long long)failures, (unsigned long long)alike,
                 (double)totals.points / 1e6, (double)totals.switches / 1e6, (double)totals.calls / 1e6, (unsigned long long)totals.faults,
                 (unsigned long long)totals.deaths, (unsigned long long)totals.waits, (unsigned long long)totals.late_waits,
                 (double)totals.elapsed_ns / 1e9, seconds_since(begin));
    return failures == 0 ? 0 : 1;
}

static char output[4096];

int main(int count_of_arguments, char **arguments)
{
    uint64_t one = 0;
    uint64_t first = 1;
    uint64_t number = 0;
    int job_count = 1;
    int image_count = 0;
    struct timespec begin;

    start_steadily(arguments);
    (void)setvbuf(stdout, output, _IOLBF, sizeof output); /* not from the allocator, whether or not there is a trace */
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 1; i < count_of_arguments; i++) {
        const char *option = arguments[i];

        if (strcmp(option, "--seed") == 0) {
            one = number_of(option, arguments[++i]);
        } else if (strcmp(option, "--first") == 0) {
            first = number_of(option, arguments[++i]);
        } else if (strcmp(option, "--seeds") == 0) {
            number = number_of(option, arguments[++i]);
        } else if (strcmp(option, "--jobs") == 0) {
            job_count = (int)number_of(option, arguments[++i]);
        } else if (image_count < processes_max) {
            load(image_count++, option);
        }
    }
    if (image_count != processes_max || job_count > jobs_max || (one == 0 && number == 0)) {
        refuse("usage", "simulate [--seed N | --first N --seeds N] [--jobs N] IMAGE...");
    }
    (void)mallopt(M_MMAP_MAX, 0);
    (void)mallopt(M_PERTURB, 0xa5); /* what is used after it was freed is not what it was */
    if (one > 0) {
        prints = true;
        first = one;
        number = 1;
        job_count = 1;
    }
    run_seeds(first, number, job_count);
    return report(first, &begin);
}
