/* SPDX-License-Identifier: Apache-2.0 */
#include "forks.h"

#include <sys/wait.h>
#include <unistd.h>

int fork_process(void)
{
    int pid = fork();

    if (pid == 0) {
        alarm(100);
    }
    return pid;
}

int end_of_child(int pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void become_another_program(void)
{
    execl("/bin/true", "true", (char *)0);
    _exit(127);
}
