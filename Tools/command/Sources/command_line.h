/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the command lines of this project's programs have in common: the words of errors, the exit statuses, and how the first word picks a
 * command. The main thread only.
 *
 * Standard output has only what was asked for. Every error is one line on standard error, and the exit status says which kind it was.
 */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <getopt.h>
#include <stdbool.h>

enum exit_status { exit_success, exit_error, exit_usage };

/* One of a program's commands. */
struct command {
    const char *name;
    int (*run)(int count, char **words); /* the words begin with the command's name; returns the exit status */
    bool has_own_help; /* answers --help after its name by itself */
};

/* What a program says of itself. All of it is constant. */
struct command_line {
    const char *name; /* what a line of errors begins with */
    const char *usage; /* the lines that follow an error in the words of the command line */
    const char *help; /* what --help prints after these */
    const struct command *commands; /* the last one has no name */
};

/* The lines of errors are this program's from now on. The program's first call, unless that is run_command_line. */
void command_line_begin(const struct command_line *line);

/* Prints one line on standard error; returns the status. */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints one line and the usage on standard error; returns exit_usage. */
int misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reads a number of seconds, and nothing after it. */
bool seconds_read(const char *text, double *ret_seconds);

/*
 * Calls `take` for each option until it returns another status than exit_success. `letters` is what getopt_long is to read; it has a colon
 * before the first letter. The option's value is in `optarg`, and its last word is `words[optind - 1]`.
 */
int options_take(int count, char **words, const char *letters, const struct option *known,
                 int (*take)(int option, char **words, void *options), void *options);

/* The program's main function: answers --help and --version, and runs the command that the first word names. */
int run_command_line(const struct command_line *line, int count, char **words);

#endif
