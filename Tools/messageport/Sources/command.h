/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs messageport and messageport-bridge have in common. */
#ifndef MESSAGEPORT_COMMAND_H
#define MESSAGEPORT_COMMAND_H

#include <stddef.h>

enum { exit_success, exit_error, exit_usage };

/* What a line of errors begins with: each program has its own. */
extern const char command_name[];

/* Prints one line on standard error; returns the status. */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a JSON string with its quotes from bytes in UTF-8. Invalid bytes are printed as U+FFFD. */
void print_json_string(const char *bytes, size_t length);

/* The signal stops the run of the calling thread's loop. To be called before there is another thread: threads inherit what is blocked. */
void stop_on(int signal);

#endif
