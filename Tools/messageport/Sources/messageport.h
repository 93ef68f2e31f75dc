/* SPDX-License-Identifier: Apache-2.0 */
/* The declarations that the files of messageport share. The main thread only. */
#ifndef MESSAGEPORT_H
#define MESSAGEPORT_H

#include <stdbool.h>

#include "CoreFoundation/CoreFoundation.h"
#include "command_line.h"

enum { exit_no_port = exit_usage + 1, exit_timeout, exit_died };

struct options {
    const char *name;
    const char *data; /* the message's bytes */
    const char *file; /* the file with the message; "-" is standard input */
    const char *command; /* what serve runs for each message */
    SInt32 id;
    double timeout; /* seconds */
    bool is_one_way;
    bool is_json;
};

/* Becomes the program of the bridge with these words; returns only after an error, which is printed. */
int run_bridge(int count, char **words);
int list_ports(const struct options *options);
int send_message(const struct options *options);
int serve_port(const struct options *options);
int watch_name(const struct options *options);

/* Reads everything from a descriptor. NULL after an error, which is printed. */
CFDataRef read_all(int descriptor, const char *what);
bool write_all(int descriptor, CFDataRef data);

#endif
