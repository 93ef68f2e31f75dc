/* SPDX-License-Identifier: Apache-2.0 */
/* messageport bridge: runs another program, which is installed with the NATS add-on. This command is linked with the core library only. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "messageport.h"

/* The folder of this program, with the slash at its end. */
static bool find_folder(char ret_folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", ret_folder, PATH_MAX - 1);
    char *slash;

    if (length < 0) {
        return false;
    }
    ret_folder[length] = '\0';
    slash = strrchr(ret_folder, '/');
    if (slash) {
        slash[1] = '\0';
    }
    return slash != NULL;
}

int run_bridge(int count, char **words)
{
    static const char *const places[] = {"messageport-bridge", "../libexec/corerunloop/messageport-bridge"};
    char folder[PATH_MAX];
    char path[PATH_MAX + 64];

    (void)count;
    if (!find_folder(folder)) {
        return fail(exit_error, "bridge: where this command is cannot be read from /proc/self/exe: %s", strerror(errno));
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        (void)snprintf(path, sizeof path, "%s%s", folder, places[i]);
        (void)execv(path, words);
        if (errno != ENOENT && errno != ENOTDIR) {
            return fail(exit_error, "%s cannot be run: %s", path, strerror(errno));
        }
    }
    return fail(exit_error, "bridge: messageport-bridge is not installed, neither beside this command nor in ../libexec/corerunloop");
}
