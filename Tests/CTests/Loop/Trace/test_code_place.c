/* SPDX-License-Identifier: Apache-2.0 */
/* A fork while another thread looks at the loaded objects: the child may look at them, too. */
#define _GNU_SOURCE
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Loop/Trace/code_place.h"
#include "harness.h"

static atomic_bool is_looking;
static atomic_bool has_forked;

/* Gives a fork that does not wait time to come. One that waits comes afterwards. */
static int look_slowly(struct dl_phdr_info *info, size_t size, void *context)
{
    int64_t end_ns = kernel.monotonic_ns() + 50000000;

    (void)info;
    (void)size;
    (void)context;
    is_looking = true;
    while (!has_forked && kernel.monotonic_ns() < end_ns) {
    }
    return 1;
}

static void *look(void *info)
{
    (void)code_objects_visit(look_slowly, NULL);
    return info;
}

TEST(the_child_of_a_fork_finds_code_although_another_thread_was_looking, "176")
{
    struct code_place place;
    pthread_t thread;
    pid_t child;
    int status = -1;

    REQUIRE(pthread_create(&thread, NULL, look, NULL) == 0);
    while (!is_looking) {
    }
    child = fork();
    has_forked = true;
    if (child == 0) {
        (void)alarm(5 * (unsigned)test_patience_s());
        code_place_find(&place, (const void *)(uintptr_t)look_slowly);
        _exit(place.file[0] != '\0' ? 0 : 1);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
}
