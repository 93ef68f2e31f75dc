/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of symbols and debug information of the command runloop, as its child runs it, with a file of the input's bytes. It
 * ends by itself and within its memory.
 *
 * Input: an address, and the file. A first byte of 1 stands for a library's file, changed in places that follow.
 */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../Tools/runloop/Sources/Names/symbol_reader.c" /* its list of files is emptied after each input */
#include "check.h"

enum { program_most = 1 << 20 };

static int given_file;

int regular_file_open(const char *path, struct stat *ret_status, const char **ret_reason)
{
    CHECK(path);
    *ret_reason = "";
    memset(ret_status, 0, sizeof *ret_status);
    return dup(given_file);
}

/* The beginning of libelf's own file, which has all that a library has but for what lies far behind. */
static size_t read_program(uint8_t *ret_bytes)
{
    int file = open("/usr/lib/x86_64-linux-gnu/libelf.so.1", O_RDONLY | O_CLOEXEC);
    ssize_t count = file >= 0 ? read(file, ret_bytes, program_most) : 0;

    if (file >= 0) {
        (void)close(file);
    }
    return count > 0 ? (size_t)count : 0;
}

static void write_file(const uint8_t *bytes, size_t size)
{
    static uint8_t program[program_most];
    static uint8_t changed[program_most];
    static size_t program_size;

    program_size = program_size > 0 ? program_size : read_program(program);
    if (size > 0 && bytes[0] == 1 && program_size > 0) {
        memcpy(changed, program, program_size);
        for (size_t i = 1; i + 4 <= size; i += 4) {
            uint32_t at = (uint32_t)bytes[i] | (uint32_t)bytes[i + 1] << 8 | (uint32_t)(bytes[i + 2] & 15) << 16;

            changed[bytes[i + 2] & 128 ? program_size - 1 - at % program_size : at % program_size] = bytes[i + 3];
        }
        bytes = changed;
        size = program_size;
    }
    given_file = memfd_create("program", MFD_CLOEXEC);
    CHECK(given_file >= 0 && write(given_file, bytes, size) == (ssize_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct symbol_question question = {.newest_s = INT64_MAX, .path = "/given"};
    static struct symbol_answer answer;
    uint32_t address = 0;

    if (size < sizeof address) {
        return 0;
    }
    memcpy(&address, bytes, sizeof address);
    question.address = address;
    write_file(bytes + sizeof address, size - sizeof address);
    symbol_look_up(&question, &answer);
    CHECK(memchr(answer.name, 0, sizeof answer.name) && memchr(answer.place, 0, sizeof answer.place));
    (void)close(given_file);
    while (files) {
        struct file *next = files->next;

        if (files->session) {
            dwfl_end(files->session);
        }
        free(files->path);
        free(files);
        files = next;
    }
    return 0;
}
