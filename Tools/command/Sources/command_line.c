/* SPDX-License-Identifier: Apache-2.0 */
/* See command_line.h. */
#include "command_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CRLRunLoop.h"

static const struct command_line *program; /* constant once the program has begun */

void command_line_begin(const struct command_line *line)
{
    program = line;
}

/* ---- errors ---- */

static __attribute__((format(printf, 1, 0))) void print_error(const char *format, va_list arguments)
{
    (void)fprintf(stderr, "%s: ", program->name);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
}

int fail(int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
    return status;
}

int misuse(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    print_error(format, arguments);
    va_end(arguments);
    (void)fputs(program->usage, stderr);
    return exit_usage;
}

/* ---- options ---- */

bool seconds_read(const char *text, double *ret_seconds)
{
    char *end;

    *ret_seconds = strtod(text, &end);
    return *text != '\0' && *end == '\0';
}

int options_take(int count, char **words, const char *letters, const struct option *known,
                 int (*take)(int option, char **words, void *options), void *options)
{
    int status = exit_success;
    int option;

    opterr = 0;
    while (status == exit_success && (option = getopt_long(count, words, letters, known, NULL)) != -1) {
        status = option == '?'   ? misuse("there is no option %s", words[optind - 1])
                 : option == ':' ? misuse("%s needs a value", words[optind - 1])
                                 : take(option, words, options);
    }
    return status;
}

/* ---- commands ---- */

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static const struct command *find_command(const char *name)
{
    const struct command *command = program->commands;

    while (command->name && strcmp(command->name, name) != 0) {
        command++;
    }
    return command->name ? command : NULL;
}

int run_command_line(const struct command_line *line, int count, char **words)
{
    const struct command *command;

    command_line_begin(line);
    if (count < 2) {
        return misuse("what is to be done?");
    }
    command = find_command(words[1]);
    if (asks_for_help(words[1]) || (command && !command->has_own_help && count > 2 && asks_for_help(words[2]))) {
        (void)fputs(program->usage, stdout);
        (void)fputs(program->help, stdout);
        return exit_success;
    }
    if (strcmp(words[1], "--version") == 0) {
        (void)printf("%s %s\n", program->name, CRL_VERSION_STRING);
        return exit_success;
    }
    return command ? command->run(count - 1, words + 1) : misuse("there is no command %s", words[1]);
}
