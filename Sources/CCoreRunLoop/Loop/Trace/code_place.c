/* SPDX-License-Identifier: Apache-2.0 */
/* Reads symbol tables; see code_place.h. Whatever is in the file, it only decides what text is shown. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "Loop/Trace/code_place.h"

#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/Trace/kernel_trace.h"
#include "Kernel/kernel.h"

enum { parts_most = 32, path_most = 4096, symbols_at_once = 64, symbols_most = 1 << 20 };

/* A loaded object, which is copied because another thread may unload it. */
struct loaded_object {
    uintptr_t address; /* that is looked for */
    uintptr_t bias;
    ElfW(Phdr) parts[parts_most];
    unsigned count;
    char path[path_most];
};

static int copy_if_it_holds(struct dl_phdr_info *info, size_t size, void *context)
{
    struct loaded_object *object = context;
    bool holds = false;

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum && info->dlpi_phnum <= parts_most && !holds; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        holds = part->p_type == PT_LOAD && object->address - info->dlpi_addr - part->p_vaddr < part->p_memsz;
    }
    if (holds) {
        object->bias = info->dlpi_addr;
        object->count = info->dlpi_phnum;
        memcpy(object->parts, info->dlpi_phdr, object->count * sizeof object->parts[0]);
        (void)snprintf(object->path, sizeof object->path, "%s", info->dlpi_name ? info->dlpi_name : "");
    }
    return holds;
}

static bool is_read(int file, uint64_t at, void *ret_bytes, size_t size)
{
    return kernel_ports.file_read(file, ret_bytes, size, (off_t)at) == (ssize_t)size;
}

/* The file may have been replaced since it was loaded; then its program headers differ, which say where all of it lies. */
static bool is_loaded(int file, const ElfW(Ehdr) *head, const struct loaded_object *object)
{
    ElfW(Phdr) parts[parts_most];
    const size_t size = object->count * sizeof parts[0];

    return head->e_phnum == object->count && is_read(file, head->e_phoff, parts, size) && memcmp(parts, object->parts, size) == 0;
}

/* Finds the table of symbols, or of the exported ones if the file was stripped, and its strings. */
static bool find_table(int file, const struct loaded_object *object, ElfW(Shdr) *ret_table, ElfW(Shdr) *ret_strings)
{
    ElfW(Ehdr) head;
    ElfW(Shdr) section;

    ret_table->sh_type = SHT_NULL;
    if (!is_read(file, 0, &head, sizeof head) || !is_loaded(file, &head, object)) {
        return false;
    }
    for (unsigned i = 0; i < head.e_shnum && ret_table->sh_type != SHT_SYMTAB; i++) {
        if (is_read(file, head.e_shoff + i * sizeof section, &section, sizeof section) &&
            (section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM)) {
            *ret_table = section;
        }
    }
    return ret_table->sh_type != SHT_NULL && is_read(file, head.e_shoff + ret_table->sh_link * sizeof section, ret_strings, sizeof section);
}

static void find_function(struct code_place *place, int file, const struct loaded_object *object)
{
    ElfW(Sym) symbols[symbols_at_once];
    ElfW(Shdr) table;
    ElfW(Shdr) strings;
    size_t left = find_table(file, object, &table, &strings) ? table.sh_size / sizeof symbols[0] : 0;

    for (left = left < symbols_most ? left : symbols_most; left > 0;) {
        size_t count = left < symbols_at_once ? left : symbols_at_once;

        if (!is_read(file, table.sh_offset, symbols, count * sizeof symbols[0])) {
            return;
        }
        for (size_t i = 0; i < count; i++) {
            if ((symbols[i].st_info & 0xf) == STT_FUNC && place->at - symbols[i].st_value < symbols[i].st_size) {
                place->into = place->at - symbols[i].st_value;
                (void)kernel_ports.file_read(file, place->function, sizeof place->function - 1,
                                             (off_t)(strings.sh_offset + symbols[i].st_name));
                return;
            }
        }
        table.sh_offset += count * sizeof symbols[0];
        left -= count;
    }
}

/* ---- the loaded objects ---- */

struct lock code_objects_lock;

int code_objects_visit(int (*visit)(struct dl_phdr_info *info, size_t size, void *context), void *context)
{
    int result;

    lock_take(&code_objects_lock);
    result = dl_iterate_phdr(visit, context);
    lock_drop(&code_objects_lock);
    return result;
}

void code_place_find(struct code_place *ret_place, const void *address)
{
    struct loaded_object object = {.address = (uintptr_t)address};
    const char *slash;
    int file;

    memset(ret_place, 0, sizeof *ret_place);
    if (code_objects_visit(copy_if_it_holds, &object) == 0) {
        return;
    }
    if (object.path[0] == '\0') {
        kernel_trace.program(object.path, sizeof object.path);
    }
    slash = strrchr(object.path, '/');
    (void)snprintf(ret_place->file, sizeof ret_place->file, "%.199s", slash ? slash + 1 : object.path);
    ret_place->at = object.address - object.bias;
    file = kernel.path_open(object.path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (file >= 0) {
        find_function(ret_place, file, &object);
        (void)kernel.close(file);
    }
}
