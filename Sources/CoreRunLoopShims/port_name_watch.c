/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of message ports' names: who is in it, and when it changes. */
#include <limits.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "CoreRunLoopShims.h"
#include "Overlay/overlay.h"

struct visit {
    shim_port_name_found found;
    void *info;
};

static void visit_one(void *info, const struct port_names_entry *entry)
{
    const struct visit *visit = info;

    if (entry->is_alive) {
        visit->found(visit->info, (const uint8_t *)entry->name, (intptr_t)entry->length, entry->pid);
    }
}

void shim_port_names_list(shim_port_name_found found, void *info)
{
    struct visit visit = {found, info};

    (void)port_names_list(visit_one, &visit);
}

int shim_port_names_watch(void)
{
    char path[PATH_MAX];
    int changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (changes >= 0 && (!port_names_directory(path, sizeof path) || inotify_add_watch(changes, path, IN_DELETE | IN_MOVED_TO) < 0)) {
        (void)close(changes);
        return -1;
    }
    return changes;
}

void shim_port_names_drain(int changes)
{
    char events[4096];

    while (read(changes, events, sizeof events) > 0) {
    }
}
