/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers in PID and user namespaces, as containers have them: the kernel hides their process ids from each other, so all are 0. Only root
 * may make a PID namespace; without that right all workers live in one, which is said once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "chaos.h"

enum { one_in = 3 };

static uint64_t pid_count;
static int own_namespace = -1; /* the PID namespace of the children that get no other */
static bool are_refused;

uint64_t namespaces_pid_count(void)
{
    return pid_count;
}

static void refuse(void)
{
    are_refused = true;
    (void)printf("chaos: skipped: namespaces: %s; only root may make them\n", strerror(errno));
}

/* The next child is the first process of a new PID namespace. False: it cannot be. */
static bool begin_pid_namespace(void)
{
    if (own_namespace < 0) {
        own_namespace = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    }
    if (own_namespace < 0 || unshare(CLONE_NEWPID) != 0) {
        refuse();
        return false;
    }
    return true;
}

static void write_map(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);

    if (file < 0 || write(file, text, strlen(text)) < 0) {
        chaos_violation("%s cannot be written: %s", path, strerror(errno));
    }
    (void)close(file);
}

/* Root stays root there, and has no rights outside. A process with threads stays where it is: ThreadSanitizer starts one. */
static void enter_user_namespace(void)
{
    if (unshare(CLONE_NEWUSER) != 0) {
        if (errno != EINVAL) {
            chaos_violation("there is no user namespace: %s", strerror(errno));
        }
        return;
    }
    atomic_fetch_add(&chaos->in_user_namespaces, 1);
    write_map("/proc/self/setgroups", "deny");
    write_map("/proc/self/uid_map", "0 0 1");
    write_map("/proc/self/gid_map", "0 0 1");
}

pid_t namespaces_fork(void)
{
    bool is_chosen = chaos_random(one_in) == 0;
    bool has_user = chaos_random(one_in) == 0;
    pid_t pid;

    if (!is_chosen || are_refused || !begin_pid_namespace()) {
        return fork();
    }
    pid_count++;
    pid = fork();
    if (pid == 0) {
        if (has_user) {
            enter_user_namespace();
        }
        return 0;
    }
    if (setns(own_namespace, CLONE_NEWPID) != 0) {
        chaos_violation("the PID namespace cannot be left: %s", strerror(errno));
    }
    return pid;
}
