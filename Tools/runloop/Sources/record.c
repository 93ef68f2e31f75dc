/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runloop trace: runs the program with the environment that has it traced, and says afterwards where the trace is.
 *
 * The terminal sends its signals to both processes: this one ignores them and waits for the program. What is sent to this process alone is
 * passed on.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regular_file.h"
#include "runloop.h"

static volatile sig_atomic_t child; /* 0: none yet */

static void pass_on(int signal)
{
    if (child > 0) {
        (void)kill((pid_t)child, signal);
    }
}

/* Removes an earlier trace of that name. A file of that name that is no trace is an error. */
static int make_way(const char *path)
{
    char magic[sizeof trace_file_magic];
    struct stat status;
    const char *reason;
    int file = regular_file_open(path, &status, &reason);
    size_t size;

    if (file < 0) {
        return access(path, F_OK) != 0 && errno == ENOENT ? exit_success : fail(exit_error, "%s: %s", path, reason);
    }
    size = regular_file_copy(file, 0, magic, sizeof magic);
    (void)close(file);
    if (size != sizeof magic || memcmp(magic, trace_file_magic, sizeof magic) != 0) {
        return fail(exit_error, "%s is no trace, and stays as it is", path);
    }
    return unlink(path) == 0 ? exit_success : fail(exit_error, "%s: %s", path, strerror(errno));
}

static char *path_for(const char *program)
{
    const char *slash = strrchr(program, '/');
    const char *name = slash ? slash + 1 : program;
    char *path = make_room(strlen(name) + sizeof ".crltrace", 1);

    (void)sprintf(path, "%s.crltrace", name);
    return path;
}

static void run_program(char **program)
{
    int error;

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

int record_program(const char *file, const char *buffer, char **program)
{
    const char *path = file ? file : path_for(program[0]);
    int status = make_way(path);
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
    started = fork();
    if (started < 0) {
        return fail(exit_error, "%s: %s", program[0], strerror(errno));
    }
    if (started == 0) {
        run_program(program);
    }
    child = (sig_atomic_t)started;
    status = wait_for_child();
    if (access(path, R_OK) != 0 && status != exit_not_found && status != exit_not_run) {
        (void)fail(status, "%s has written no trace: it has run no loop of this library", program[0]);
    }
    return status;
}
