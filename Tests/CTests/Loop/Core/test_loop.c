/* SPDX-License-Identifier: Apache-2.0 */
/* A loop's beginning and end, where no public call shows them. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CoreFoundation/CFRunLoop.h"
#include "harness.h"

TEST(a_loop_released_too_often_stops_with_a_sentence, "2")
{
    EXPECT_STOPS("CFRelease: the run loop of a living thread", { CFRelease(CFRunLoopGetCurrent()); });
}

/* Wait sets and eventfds; an instrument has descriptors of other kinds. */
static int kernel_objects(void)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    int count = 0;

    while ((entry = readdir(directory)) != NULL) {
        char target[32] = "";

        if (readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1) > 0) {
            count += strncmp(target, "anon_inode:", 11) == 0;
        }
    }
    closedir(directory);
    return count;
}

static void do_nothing(void *info)
{
    (void)info;
}

static int the_port(void *info)
{
    return *(int *)info;
}

/* A thread whose loop sleeps in a wait set, and so has descriptors. */
struct sleeper {
    int ends[2];
    CFRunLoopRef loop;
    sem_t ready;
};

static void *sleep_on_a_port(void *argument)
{
    struct sleeper *sleeper = argument;
    CFRunLoopSourceContext1 context = {.version = 1, .info = &sleeper->ends[0], .getPort = the_port, .perform = do_nothing};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context);

    sleeper->loop = CFRunLoopGetCurrent();
    CFRunLoopAddSource(sleeper->loop, source, kCFRunLoopDefaultMode);
    sem_post(&sleeper->ready);
    CFRunLoopRun();
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
    return NULL;
}

TEST(a_forked_child_closes_what_other_threads_waited_in, "176")
{
    struct sleeper sleeper;
    pthread_t thread;
    int before = kernel_objects();
    int status = 0;
    pid_t child;

    REQUIRE(pipe(sleeper.ends) == 0);
    sem_init(&sleeper.ready, 0, 0);
    pthread_create(&thread, NULL, sleep_on_a_port, &sleeper);
    sem_wait(&sleeper.ready);
    while (!CFRunLoopIsWaiting(sleeper.loop)) {
        sched_yield();
    }
    EXPECT(kernel_objects() > before);
    child = fork();
    if (child == 0) {
        _exit(kernel_objects() == before ? 0 : 1);
    }
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    CFRunLoopStop(sleeper.loop); /* the parent's loop is as it was */
    pthread_join(thread, NULL);
    close(sleeper.ends[0]);
    close(sleeper.ends[1]);
}
