/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions from ELF files, which may have been replaced since the trace, or be no ELF files at all: every place is checked
 * against the file's size. A file's functions are read once, from its whole symbol table or, if that was stripped, from the dynamic one.
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runloop.h"

struct symbol {
    uint64_t address;
    uint64_t size;
    const char *name;
};

struct symbol_table {
    struct symbol *symbols; /* by address */
    size_t count, capacity;
};

typedef ElfW(Ehdr) elf_header;
typedef ElfW(Shdr) elf_section;
typedef ElfW(Sym) elf_symbol;

struct elf {
    const unsigned char *bytes;
    uint64_t size;
};

/* The bytes at a place of the file; NULL if the file does not have all of them. */
static const void *find_part(const struct elf *elf, uint64_t at, uint64_t size)
{
    return at <= elf->size && size <= elf->size - at ? elf->bytes + at : NULL;
}

static int by_address(const void *one, const void *other)
{
    const struct symbol *a = one;
    const struct symbol *b = other;

    return a->address != b->address ? (a->address < b->address ? -1 : 1) : 0;
}

static void read_section(struct symbol_table *table, const struct elf *elf, const elf_section *section, const elf_section *strings)
{
    const char *names = find_part(elf, strings->sh_offset, strings->sh_size);
    const elf_symbol *symbols = find_part(elf, section->sh_offset, section->sh_size);

    if (!names || !symbols || strings->sh_size == 0 || names[strings->sh_size - 1] != '\0') {
        return;
    }
    for (uint64_t i = 0; i < section->sh_size / sizeof *symbols; i++) {
        bool is_function = (symbols[i].st_info & 0xf) == STT_FUNC && symbols[i].st_shndx != SHN_UNDEF;

        if (is_function && symbols[i].st_name < strings->sh_size) {
            table->symbols = grow_array(table->symbols, table->count, &table->capacity, sizeof *table->symbols);
            table->symbols[table->count++] = (struct symbol){symbols[i].st_value, symbols[i].st_size, strdup(names + symbols[i].st_name)};
        }
    }
}

static void read_kind(struct symbol_table *table, const struct elf *elf, uint32_t kind)
{
    const elf_header *header = find_part(elf, 0, sizeof *header);
    const elf_section *sections;

    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) || header->e_shentsize != sizeof *sections) {
        return;
    }
    sections = find_part(elf, header->e_shoff, (uint64_t)header->e_shnum * sizeof *sections);
    for (unsigned i = 0; sections && i < header->e_shnum; i++) {
        if (sections[i].sh_type == kind && sections[i].sh_link < header->e_shnum) {
            read_section(table, elf, &sections[i], &sections[sections[i].sh_link]);
        }
    }
}

static struct symbol_table *read_file(const char *path)
{
    struct symbol_table *table = make_room(1, sizeof *table);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    struct elf elf;
    void *memory;

    if (file < 0) {
        return table;
    }
    memory = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0
                 ? mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0)
                 : MAP_FAILED;
    (void)close(file);
    if (memory == MAP_FAILED) {
        return table;
    }
    elf = (struct elf){memory, (uint64_t)status.st_size};
    read_kind(table, &elf, SHT_SYMTAB);
    if (table->count == 0) {
        read_kind(table, &elf, SHT_DYNSYM);
    }
    (void)munmap(memory, (size_t)status.st_size);
    if (table->count > 0) {
        qsort(table->symbols, table->count, sizeof *table->symbols, by_address);
    }
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
            return symbol->name;
        }
    }
    (void)snprintf(text, sizeof text, "0x%" PRIx64, address);
    return strdup(text);
}
