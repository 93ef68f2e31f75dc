/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child that reads symbols and debug information by elfutils; see symbols.h. Debug information of its own file is found by build-id and
 * by .gnu_debuglink, under /usr/lib/debug. No server is asked for it. Without elfutils there are no names.
 */
#include "Names/symbols.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regular_file.h"

#if defined(HAS_LIBDW)
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

struct file {
    char *path;
    Dwfl *session; /* NULL: it could not be read */
    Dwfl_Module *module;
    struct file *next;
};

static struct file *files; /* that were asked for */

/* What is not a file's name for the function at the address, but the one before it. */
static bool is_of_function(const GElf_Sym *symbol, GElf_Off into)
{
    int type = GELF_ST_TYPE(symbol->st_info);

    return into == 0 ? type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC : type == STT_FUNC && into < symbol->st_size;
}

static void read_file(struct file *file, int64_t newest_s)
{
    static char *paths; /* the usual places of debug information */
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo,
                                             .section_address = dwfl_offline_section_address,
                                             .debuginfo_path = &paths};
    struct stat status;
    const char *reason;
    int descriptor = regular_file_open(file->path, &status, &reason);

    if (descriptor < 0) {
        return;
    }
    file->session = status.st_mtim.tv_sec > newest_s ? NULL : dwfl_begin(&callbacks);
    if (!file->session) {
        (void)close(descriptor);
        return;
    }
    dwfl_report_begin(file->session);
    file->module = dwfl_report_elf(file->session, "file", file->path, descriptor, 0, true); /* has the descriptor from here on */
    if (!file->module) {
        (void)close(descriptor);
    }
    (void)dwfl_report_end(file->session, NULL, NULL);
}

static struct file *find_file(const struct symbol_question *question)
{
    struct file *file = files;

    while (file && strcmp(file->path, question->path) != 0) {
        file = file->next;
    }
    if (!file && (file = calloc(1, sizeof *file)) != NULL) {
        file->path = strdup(question->path);
        file->next = files;
        files = file;
        if (file->path) {
            read_file(file, question->newest_s);
        }
    }
    return file;
}

/* The unit of translation that has the address: by the file's table, which not every compiler makes. */
static Dwarf_Die *find_unit(Dwfl_Module *module, uint64_t address, Dwarf_Addr *ret_bias)
{
    Dwarf_Die *unit = dwfl_module_addrdie(module, address, ret_bias);

    if (!unit) {
        do {
            unit = dwfl_module_nextcu(module, unit, ret_bias);
        } while (unit && dwarf_haspc(unit, address - *ret_bias) <= 0);
    }
    return unit;
}

static void write_place(struct symbol_answer *ret_answer, const char *source, int line)
{
    const char *slash = source ? strrchr(source, '/') : NULL;

    if (source && line > 0) {
        (void)snprintf(ret_answer->place, sizeof ret_answer->place, "%.255s:%d", slash ? slash + 1 : source, line);
    }
}

/* Where the function is declared. Around a part that was inlined are that function's own scopes, unless one asks by the part itself. */
static void find_place(Dwfl_Module *module, uint64_t address, struct symbol_answer *ret_answer)
{
    Dwarf_Addr bias;
    Dwarf_Die *unit = find_unit(module, address, &bias);
    Dwarf_Die *innermost = NULL;
    Dwarf_Die *scopes = NULL;
    int count = unit && dwarf_getscopes(unit, address - bias, &innermost) > 0 ? dwarf_getscopes_die(innermost, &scopes) : 0;
    int line = 0;

    for (int i = 0; i < count; i++) {
        if (dwarf_tag(&scopes[i]) == DW_TAG_subprogram && dwarf_decl_line(&scopes[i], &line) == 0) {
            write_place(ret_answer, dwarf_decl_file(&scopes[i]), line);
            break;
        }
    }
    free(innermost);
    free(scopes);
}

void symbol_look_up(const struct symbol_question *question, struct symbol_answer *ret_answer)
{
    struct file *file = find_file(question);
    const char *name;
    GElf_Sym symbol;
    GElf_Off into;

    memset(ret_answer, 0, sizeof *ret_answer);
    if (!file || !file->module) {
        return;
    }
    name = dwfl_module_addrinfo(file->module, question->address, &into, &symbol, NULL, NULL, NULL);
    if (name && is_of_function(&symbol, into)) {
        char plain[symbol_name_most]; /* without the version that a shared library's name may have */

        (void)snprintf(plain, sizeof plain, "%.*s", (int)strcspn(name, "@"), name);
        symbol_demangle(plain, ret_answer->name);
    }
    find_place(file->module, question->address, ret_answer);
}
#else
void symbol_look_up(const struct symbol_question *question, struct symbol_answer *ret_answer)
{
    (void)question;
    memset(ret_answer, 0, sizeof *ret_answer);
}
#endif

void symbols_answer(int questions, int answers)
{
    static struct symbol_question question;
    static struct symbol_answer answer;

    (void)unsetenv("DEBUGINFOD_URLS");
    while (recv(questions, &question, sizeof question, 0) == (ssize_t)sizeof question) {
        question.path[sizeof question.path - 1] = '\0';
        symbol_look_up(&question, &answer);
        if (send(answers, &answer, sizeof answer, MSG_NOSIGNAL) != (ssize_t)sizeof answer) {
            break;
        }
    }
}
