/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions. The files that have them may be anything: replaced since the trace, changed while they are read, or made by somebody
 * hostile, and the reader of such files is a large library (elfutils). So a child process reads them (symbol_reader.c), within limits of
 * memory and time. If it dies or is late, it is begun anew, and the file that it had has no names.
 */
#ifndef RUNLOOP_SYMBOLS_H
#define RUNLOOP_SYMBOLS_H

#include <stdint.h>

enum { symbol_name_most = 4096 }; /* bytes of a name or place, with its end; the rest is cut off */

/* What is known of an address in the code of a file. */
struct code_name {
    const char *name; /* of the function, as in its language; "program+0x11b7" if it has none */
    const char *place; /* "spin.c:4", or "" without debug information */
};

/* A question to the child: an address as the file has it. */
struct symbol_question {
    uint64_t address;
    int64_t newest_s; /* a file that was changed after that second is another one than the process had */
    char path[symbol_name_most];
};

struct symbol_answer {
    char name[symbol_name_most]; /* "": not known */
    char place[symbol_name_most];
};

/* In the child: answers questions from `questions` by `answers` until there are no more. */
void symbols_answer(int questions, int answers);
/* One question. The answer's texts have their ends. */
void symbol_look_up(const struct symbol_question *question, struct symbol_answer *ret_answer);
/* The name as in its language. Cuts it to the room. */
void symbol_demangle(const char *name, char ret_text[symbol_name_most]);

#endif
