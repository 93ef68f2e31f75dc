/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the registry's records into those of port_names.h, whose layout programs outside the library rely on. */
#include "Port/Names/port_names.h"

#include <string.h>

#include "Port/Names/name_registry.h"

_Static_assert((int)port_names_longest == (int)wire_name_max, "an entry has room for every name");

struct name_listing {
    void (*each)(void *info, const struct port_names_entry *entry);
    void *info;
};

static void pass_on(void *info, const struct name_registry_entry *found)
{
    const struct name_listing *listing = info;
    struct port_names_entry entry = {
        .length = found->card.name.length,
        .pid = found->card.pid,
        .queue_limit = found->card.queue_limit,
        .age_s = found->age_s,
        .is_alive = found->is_alive,
    };

    (void)memcpy(entry.name, found->card.name.bytes, sizeof entry.name);
    listing->each(listing->info, &entry);
}

int port_names_list(void (*each)(void *info, const struct port_names_entry *entry), void *info)
{
    struct name_listing listing = {each, info};

    return name_registry_list(pass_on, &listing);
}

const char *port_names_directory(char *buffer, size_t size)
{
    return name_registry_path(buffer, size);
}
