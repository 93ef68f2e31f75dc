/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the loader for the loaded objects; see trace_objects.h. */
#define _GNU_SOURCE
#include "Loop/Trace/trace_objects.h"

#include <link.h>
#include <string.h>

#include "Loop/Trace/code_place.h"

struct object_listing {
    struct trace_objects *objects;
    const char *program;
};

static void add(struct trace_objects *objects, uint64_t bias, const ElfW(Phdr) *part, const char *path)
{
    size_t length = strlen(path);
    size_t size = (sizeof(struct trace_object) + length + 7) & ~(size_t)7;
    struct trace_object record = {.bias = bias,
                                  .begin = bias + part->p_vaddr,
                                  .end = bias + part->p_vaddr + part->p_memsz,
                                  .size = (uint32_t)size,
                                  .length = (uint32_t)length};

    if (size > sizeof objects->records - objects->size) {
        objects->is_cut = 1;
        return;
    }
    memcpy(objects->records + objects->size, &record, sizeof record);
    memcpy(objects->records + objects->size + sizeof record, path, length);
    objects->size += (uint32_t)size;
}

static int list_object(struct dl_phdr_info *info, size_t size, void *context)
{
    const struct object_listing *listing = context;
    const char *path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : listing->program;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && *path == '/') { /* the kernel's own object has no path */
            add(listing->objects, info->dlpi_addr, part, path);
        }
    }
    return 0;
}

void trace_objects_list(struct trace_objects *objects, const char *program)
{
    struct object_listing listing = {objects, program};

    objects->size = 0;
    objects->is_cut = 0;
    (void)code_objects_visit(list_object, &listing);
}
