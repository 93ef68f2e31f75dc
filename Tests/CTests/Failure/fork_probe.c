/* SPDX-License-Identifier: Apache-2.0 */
/* See fork_probe.h. */
#define _GNU_SOURCE
#include "Failure/fork_probe.h"

#include <bsd/stdlib.h>
#include <fcntl.h>
#include <libintl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

enum { thread_count = 8 };

/* In memory that the child shares. */
struct progress {
    const char *_Atomic doing; /* the name of the last use that was begun; NULL: all have ended */
    const char *_Atomic failed; /* of one that did not work */
};

static const struct fork_use *probed; /* constant while the threads run */
static _Atomic bool threads_end;
static const char *failure; /* the last one; NULL: none */
static const char *failed_use;
static const char *_Atomic failed_in_thread; /* a use that did not work in one of the threads; NULL: none */

/* Takes the locks of the C library that a program may hold, and uses everything. */
static void *use_everything(void *context)
{
    const struct fork_use *next = probed;

    for (uintptr_t i = (uintptr_t)context; i > 0 && next->name; i--) {
        next++; /* each thread begins elsewhere */
    }
    while (!threads_end) {
        time_t now = 0;
        struct tm parts;
        unsigned char bytes[16];

        next = next->name ? next : probed;
        if (!next->function()) {
            failed_in_thread = next->name;
        }
        next++;
        freelocale(newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0));
        (void)localtime_r(&now, &parts);
        (void)textdomain("fork");
        arc4random_buf(bytes, sizeof bytes);
    }
    return NULL;
}

static void use_in_child(struct progress *progress)
{
    for (const struct fork_use *use = probed; use->name; use++) {
        progress->doing = use->name;
        if (!use->function()) {
            progress->failed = use->name;
        }
    }
    progress->doing = NULL;
}

static bool has_ended(pid_t child, double patience_s)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (double waited_s = 0; waited_s < patience_s; waited_s += 0.001) {
        if (waitpid(child, NULL, WNOHANG) == child) {
            return true;
        }
        nanosleep(&pause, NULL);
    }
    return false;
}

static void note_failure(const char *what, const char *use)
{
    failure = what;
    failed_use = use;
}

/* Notes what the child was doing if it does not end, or has not worked. */
static void expect_child_works(struct progress *progress)
{
    pid_t child;

    progress->doing = probed->name;
    progress->failed = NULL;
    child = fork();
    if (child == 0) {
        use_in_child(progress);
        _exit(0);
    }
    if (!has_ended(child, 4 * test_patience_s())) {
        note_failure("hangs where it", progress->doing);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    } else if (progress->doing) {
        note_failure("has died where it", progress->doing);
    } else if (progress->failed) {
        note_failure("fails where it", progress->failed);
    }
}

void fork_probe_run(const struct fork_use *uses)
{
    struct progress *progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rounds = test_is_soak() ? 1000 : 50;
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int errors = dup(STDERR_FILENO); /* until the threads have ended, what they show goes nowhere */
    pthread_t threads[thread_count];

    if (test_is_instrumented()) {
        test_skip("the locks of a sanitizer stay taken in a child, too");
    }
    REQUIRE(progress != MAP_FAILED && dup2(nowhere, STDERR_FILENO) == STDERR_FILENO);
    probed = uses;
    for (uintptr_t i = 0; i < thread_count; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, use_everything, (void *)i) == 0);
    }
    for (int i = 0; i < rounds && !failure; i++) {
        const struct timespec moment = {.tv_nsec = 1 + arc4random_uniform(3000000)};

        nanosleep(&moment, NULL);
        expect_child_works(progress);
    }
    threads_end = true;
    for (int i = 0; i < thread_count; i++) {
        pthread_join(threads[i], NULL);
    }
    (void)dup2(errors, STDERR_FILENO);
    if (failure) {
        test_failed(__FILE__, __LINE__, "the child of a fork %s %s", failure, failed_use);
    }
    if (failed_in_thread) {
        test_failed(__FILE__, __LINE__, "a thread fails where it %s", failed_in_thread);
    }
    close(errors);
    close(nowhere);
    munmap(progress, sizeof *progress);
}
