/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the start of a process: this program runs itself again, which makes a loop and a timer that is due, and ends. */
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "peers/peer.h"

extern char **environ;

static struct peer_loop loop;

static double private_kilobytes(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double size = 0;

    while (file && fgets(line, sizeof line, file)) {
        double value;

        if (sscanf(line, "Private_Dirty: %lf", &value) == 1) {
            size += value;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return size;
}

static void stop(void *info)
{
    peer_stop(info);
}

/* Of the bare program it is a wait of no length. */
static void run_first_timer(void)
{
    static struct peer_timer timer;

#if defined(PEER_IS_RAW)
    (void)timer, (void)stop, (void)usleep(0);
#else
    peer_loop_begin(&loop);
    peer_timer_make(&loop, &timer, 0, 0, stop, &loop);
    peer_timer_add(&timer);
    peer_run(&loop);
#endif
}

void start_and_end(bool prints_memory)
{
    run_first_timer();
    if (prints_memory) {
        (void)printf("%g\n", private_kilobytes());
    }
    (void)fflush(stdout);
    _exit(0);
}

/* The quickest of several: what disturbs a start only makes it slower. */
static double start(long number)
{
    char *arguments[] = {(char *)"bench", (char *)"--start", NULL};
    double best = 0;

    for (long i = 0; i < number; i++) {
        double before = clock_ns(clock_on_wall);
        double taken;
        pid_t child;

        require(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) == 0, "posix_spawn");
        (void)waitpid(child, NULL, 0);
        taken = clock_ns(clock_on_wall) - before;
        best = i == 0 || taken < best ? taken : best;
    }
    return best;
}

static double memory_after_start(long number)
{
    char path[256];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
    double size = 0;
    FILE *child;

    (void)number;
    require(length > 0, "readlink");
    memcpy(path + length, " --start --memory", sizeof " --start --memory");
    child = popen(path, "r");
    require(child && fscanf(child, "%lf", &size) == 1, "the process that is started");
    (void)pclose(child);
    return size;
}

const struct bench start_benches[] = {
    {"start", "from the start of a process to its end, with one timer that is due: the quickest of 20", "ns", {20}, .figure = start},
    {"start-memory", "private memory of that process", "KiB", {1}, .figure = memory_after_start},
    {.name = NULL},
};
