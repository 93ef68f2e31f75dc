/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions from ELF files, which may have been replaced since the trace, change while they are read, or be no ELF files at all:
 * every part is copied once, and each number in it is judged before it is used. A file's functions are read once, from its whole symbol
 * table or, if that was stripped, from the dynamic one.
 */
#include <elf.h>
#include <inttypes.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "regular_file.h"
#include "runloop.h"

enum { name_most = 4096 }; /* bytes of a function's name; the rest is cut off */

struct symbol {
    uint64_t address;
    uint64_t size;
    char *name;
};

struct symbol_table {
    struct symbol *symbols; /* by address */
    size_t count, capacity;
    struct stat file; /* tells it from others, and from what it was before */
    struct symbol_table *next;
};

typedef ElfW(Ehdr) elf_header;
typedef ElfW(Shdr) elf_section;
typedef ElfW(Sym) elf_symbol;

struct elf {
    int file;
    uint64_t size;
};

static struct symbol_table *tables; /* of the files that were read */
static uint64_t bytes_left = UINT64_C(1) << 30; /* of all files: what is more has no names */

/* Copies a part of the file; NULL if the file does not have all of it. */
static void *copy_part(const struct elf *elf, uint64_t at, uint64_t size)
{
    void *part;

    if (at > elf->size || size > elf->size - at || size > bytes_left) {
        return NULL;
    }
    bytes_left -= size;
    part = make_room((size_t)size, 1);
    if (regular_file_copy(elf->file, at, part, (size_t)size) < size) {
        free(part);
        part = NULL;
    }
    return part;
}

static int by_address(const void *one, const void *other)
{
    const struct symbol *a = one;
    const struct symbol *b = other;

    return a->address != b->address ? (a->address < b->address ? -1 : 1) : 0;
}

/* The names stay in the copy of the strings. */
static void read_section(struct symbol_table *table, const struct elf *elf, const elf_section *section, const elf_section *strings)
{
    char *names = copy_part(elf, strings->sh_offset, strings->sh_size);
    elf_symbol *symbols = names ? copy_part(elf, section->sh_offset, section->sh_size) : NULL;

    if (symbols && strings->sh_size > 0 && names[strings->sh_size - 1] == '\0') {
        for (uint64_t i = 0; i < section->sh_size / sizeof *symbols; i++) {
            bool is_function = (symbols[i].st_info & 0xf) == STT_FUNC && symbols[i].st_shndx != SHN_UNDEF;

            if (is_function && symbols[i].st_name < strings->sh_size) {
                table->symbols = grow_array(table->symbols, table->count, &table->capacity, sizeof *table->symbols);
                table->symbols[table->count++] = (struct symbol){symbols[i].st_value, symbols[i].st_size, names + symbols[i].st_name};
            }
        }
    }
    free(symbols);
    if (table->count == 0) {
        free(names);
    }
}

/* A file has one table of each kind; more would only be the same bytes many times. */
static void read_kind(struct symbol_table *table, const struct elf *elf, const elf_header *header, uint32_t kind)
{
    elf_section *sections = copy_part(elf, header->e_shoff, (uint64_t)header->e_shnum * sizeof *sections);

    for (unsigned i = 0; sections && i < header->e_shnum; i++) {
        if (sections[i].sh_type == kind && sections[i].sh_link < header->e_shnum) {
            read_section(table, elf, &sections[i], &sections[sections[i].sh_link]);
            break;
        }
    }
    free(sections);
}

static void read_tables(struct symbol_table *table, const struct elf *elf)
{
    elf_header header;

    if (regular_file_copy(elf->file, 0, &header, sizeof header) < sizeof header || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) || header.e_shentsize != sizeof(elf_section)) {
        return;
    }
    read_kind(table, elf, &header, SHT_SYMTAB);
    if (table->count == 0) {
        read_kind(table, elf, &header, SHT_DYNSYM);
    }
    if (table->count > 0) {
        qsort(table->symbols, table->count, sizeof *table->symbols, by_address);
    }
}

static struct symbol_table *find_table(const struct stat *file)
{
    struct symbol_table *table = tables;

    while (table && (table->file.st_dev != file->st_dev || table->file.st_ino != file->st_ino || table->file.st_size != file->st_size ||
                     table->file.st_ctim.tv_sec != file->st_ctim.tv_sec || table->file.st_ctim.tv_nsec != file->st_ctim.tv_nsec)) {
        table = table->next;
    }
    return table;
}

static struct symbol_table *read_file(const char *path)
{
    static struct symbol_table no_symbols;
    struct symbol_table *table;
    struct stat status;
    const char *reason;
    int file = regular_file_open(path, &status, &reason);

    if (file < 0) {
        return &no_symbols;
    }
    table = find_table(&status);
    if (!table) {
        table = make_room(1, sizeof *table);
        table->file = status;
        table->next = tables;
        tables = table;
        read_tables(table, &(struct elf){file, (uint64_t)status.st_size});
    }
    (void)close(file);
    return table;
}

/* The symbol whose function contains the address, or NULL. */
static const struct symbol *find_symbol(const struct symbol_table *table, uint64_t address)
{
    size_t low = 0;
    size_t high = table->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (table->symbols[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return NULL;
    }
    low--;
    invariant(low < table->count && table->symbols[low].address <= address);
    return address - table->symbols[low].address < (table->symbols[low].size > 0 ? table->symbols[low].size : 1) ? &table->symbols[low]
                                                                                                                 : NULL;
}

const char *symbol_name(struct process *process, uint64_t address)
{
    char text[32];

    for (size_t i = 0; i < process->object_count; i++) {
        struct object_map *object = &process->objects[i];
        const struct symbol *symbol;

        if (address < object->begin || address >= object->end) {
            continue;
        }
        if (!object->symbols) {
            object->symbols = read_file(object->path);
        }
        symbol = find_symbol(object->symbols, address - object->bias);
        if (symbol) {
            if (strnlen(symbol->name, name_most) == name_most) {
                symbol->name[name_most - 1] = '\0';
            }
            return symbol->name;
        }
    }
    (void)snprintf(text, sizeof text, "0x%" PRIx64, address);
    return copy_text(text, strlen(text));
}
