/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the words on standard error. Each line goes out in one writev, so that lines of several threads do not mix; what cannot be
 * written is dropped.
 */
#include "Support/fault.h"

#include <bsd/string.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "Support/uncancelled.h"

enum { pieces_max = 5, sentence_size = 256, line_size = 1024 };

static void write_line(const char *const *pieces, int count)
{
    struct iovec vectors[pieces_max];
    for (int i = 0; i < count; i++) {
        vectors[i].iov_base = (void *)(uintptr_t)pieces[i];
        vectors[i].iov_len = strlen(pieces[i]);
    }
    while (uncancelled(writev(STDERR_FILENO, vectors, count)) < 0 && errno == EINTR) {
    }
}

/* A line may have names in it that others gave, and goes to a terminal. */
static void make_plain(char *text)
{
    for (; *text; text++) {
        if ((*text > 0 && *text < ' ') || *text == '\x7f') {
            *text = '?';
        }
    }
}

_Noreturn void fault_stop(const char *function, const char *sentence)
{
    const char *const pieces[pieces_max] = {"CoreRunLoop: ", function, ": ", sentence, "\n"};
    write_line(pieces, pieces_max);
    abort();
}

_Noreturn void fault_stop_format(const char *function, const char *format, ...)
{
    char sentence[sentence_size];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    make_plain(sentence);
    fault_stop(function, sentence);
}

void fault_log_once(atomic_flag *logged, const char *text)
{
    if (atomic_flag_test_and_set_explicit(logged, memory_order_relaxed)) {
        return;
    }
    int saved_errno = errno;
    char line[line_size];
    const char *const pieces[3] = {"CoreRunLoop: ", line, "\n"};

    (void)strlcpy(line, text, sizeof line);
    make_plain(line);
    write_line(pieces, 3);
    errno = saved_errno;
}

void fault_log_lines(const char *text)
{
    int saved_errno = errno;
    const char *const pieces[2] = {"CoreRunLoop: ", text};
    write_line(pieces, 2);
    errno = saved_errno;
}
