/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runloop trace: runs the program with the environment that has it traced, and says afterwards where the trace is.
 *
 * The terminal sends its signals to both processes: this one ignores them and waits for the program. What is sent to this process alone is
 * passed on.
 */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Stacks/sampling.h"
#include "Stacks/stack_file.h"
#include "regular_file.h"
#include "runloop.h"

static volatile sig_atomic_t child; /* 0: none yet */

static void pass_on(int signal)
{
    if (child > 0) {
        (void)kill((pid_t)child, signal);
    }
}

/* Removes a file of an earlier run. Returns false, and leaves it, if it does not begin with the magic. */
static bool make_way(const char *path, const char magic[8], int *ret_status)
{
    char begin[8];
    struct stat status;
    const char *reason;
    int file = regular_file_open(path, &status, &reason);
    size_t size;

    *ret_status = exit_success;
    if (file < 0) {
        bool is_there = access(path, F_OK) == 0 || errno != ENOENT;

        *ret_status = is_there ? fail(exit_error, "%s: %s", path, reason) : exit_success;
        return true;
    }
    size = regular_file_copy(file, 0, begin, sizeof begin);
    (void)close(file);
    if (size != sizeof begin || memcmp(begin, magic, sizeof begin) != 0) {
        return false;
    }
    *ret_status = unlink(path) == 0 ? exit_success : fail(exit_error, "%s: %s", path, strerror(errno));
    return true;
}

/* Samples of an earlier run would be taken for those of this one. A file of another kind at their place is not. */
static int make_way_for_all(const char *path, const char *stacks)
{
    int status;

    if (!make_way(path, trace_file_magic, &status)) {
        return fail(exit_error, "%s is no trace, and stays as it is", path);
    }
    if (status == exit_success) {
        (void)make_way(stacks, stack_file_magic, &status);
    }
    return status;
}

static char *path_for(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    char *path = make_room(strlen(name) + sizeof ".crltrace", 1);

    (void)sprintf(path, "%s.crltrace", name);
    return path;
}

/* In the child. It runs the program once the other process has said that its events are open. */
static void run_program(char **program, const int go[2])
{
    int error;
    char word;

    (void)close(go[1]);
    if (read(go[0], &word, 1) != 1) {
        _exit(exit_error); /* the other process has said why */
    }
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGQUIT, SIG_DFL);
    (void)execvp(program[0], program);
    error = errno;
    _exit(fail(error == ENOENT ? exit_not_found : exit_not_run, "%s: %s", program[0], strerror(error)));
}

/* Waits for the program. Returns its exit status, as a shell tells it. */
static int wait_for_child(void)
{
    int status = 0;

    invariant(child > 0);
    while (waitpid((pid_t)child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Lets the child run its program, and waits for its end; with a path for samples these are taken meanwhile. */
static int follow_program(const int go[2], const char *stacks)
{
    struct sampling sampling;
    int status = stacks ? sampling_begin(&sampling, (pid_t)child, stacks) : exit_success;
    int written = exit_success;

    if (status == exit_success && write(go[1], "", 1) != 1) {
        status = fail(exit_error, "the program cannot be started: %s", strerror(errno));
    }
    (void)close(go[1]);
    if (status != exit_success) {
        (void)wait_for_child();
        return status;
    }
    if (stacks) {
        sampling_follow(&sampling, (pid_t)child);
        written = sampling_end(&sampling);
    }
    status = wait_for_child();
    return status == exit_success ? written : status;
}

int record_program(const char *file, const char *buffer, bool is_with_stacks, char **program)
{
    const char *path = file ? file : path_for(program[0]);
    const char *stacks = path_of_stacks(path);
    int status = make_way_for_all(path, stacks);
    int go[2];
    pid_t started;

    if (status != exit_success) {
        return status;
    }
    if (setenv("CORERUNLOOP_TRACE", path, 1) != 0 || (buffer && setenv("CORERUNLOOP_TRACE_BUFFER", buffer, 1) != 0)) {
        return fail(exit_error, "there is no memory");
    }
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGQUIT, SIG_IGN);
    (void)signal(SIGTERM, pass_on);
    (void)signal(SIGHUP, pass_on);
    started = pipe2(go, O_CLOEXEC) == 0 ? fork() : -1;
    if (started < 0) {
        return fail(exit_error, "%s: %s", program[0], strerror(errno));
    }
    if (started == 0) {
        run_program(program, go);
    }
    (void)close(go[0]);
    child = (sig_atomic_t)started;
    status = follow_program(go, is_with_stacks ? stacks : NULL);
    if (child > 0 && access(path, R_OK) != 0 && status != exit_not_found && status != exit_not_run) {
        (void)fail(status, "%s has written no trace: it has run no loop of this library", program[0]);
    }
    return status;
}
