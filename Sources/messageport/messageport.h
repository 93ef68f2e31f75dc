/* SPDX-License-Identifier: Apache-2.0 */
/* The declarations that the files of messageport share. */
#ifndef MESSAGEPORT_H
#define MESSAGEPORT_H

#include <stdarg.h>
#include <stdbool.h>

#include "CoreFoundation/CoreFoundation.h"

enum exit_status { exit_success, exit_error, exit_usage, exit_no_port, exit_timeout, exit_died };

struct options {
    const char *name;
    const char *data; /* the message's bytes */
    const char *file; /* the file with the message; "-" is standard input */
    const char *command; /* of serve */
    SInt32 id;
    double timeout; /* seconds */
    bool is_one_way;
    bool is_json;
};

/* Prints one line on standard error; returns the status. */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Becomes the program of the bridge with these words; returns only after an error, which is printed. */
int run_bridge(char **words);
int list_ports(const struct options *options);
int send_message(const struct options *options);
int serve_port(const struct options *options);
int watch_name(const struct options *options);

/* Prints a JSON string with its quotes from bytes in UTF-8. Invalid bytes are printed as U+FFFD. */
void print_json_string(const char *bytes, size_t length);

/* Reads everything from a descriptor. NULL after an error, which is printed. */
CFDataRef read_all(int descriptor, const char *what);
bool write_all(int descriptor, CFDataRef data);

#endif
