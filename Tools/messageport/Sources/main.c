/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messageport: lists message ports, sends to them, serves one by a command, and watches names come and go. docs: messageport(1).
 */
#include <bsd/stdlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messageport.h"

static const char usage[] =
    "usage: messageport list [--json]\n"
    "       messageport send NAME [--id N] [--data TEXT | --file FILE | -] [--one-way] [--timeout SECONDS] [--json]\n"
    "       messageport serve NAME --exec COMMAND [--json]\n"
    "       messageport watch NAME [--json]\n"
    "       messageport bridge --server URL [--export NAME...] [--import NAME[@MACHINE]...]\n"
    "       messageport --help | --version\n";

static const char help[] =
    "\n"
    "list   the ports of this user: name, process, program, state, age in seconds; the last column is reserved, and always -\n"
    "send   sends one message and writes the reply to standard output\n"
    "  --id N             the message's number, -2147483648 to 2147483647 (0)\n"
    "  --data TEXT        the message is TEXT\n"
    "  --file FILE        the message is what is in FILE\n"
    "  -                  the message is what comes on standard input\n"
    "  --one-way          does not wait for a reply\n"
    "  --timeout SECONDS  how long to wait for room, and then for the reply (10)\n"
    "serve  has NAME, and runs COMMAND by the shell for each message: the message is its standard input, MESSAGEPORT_ID its number,\n"
    "       and its output the reply; ends on SIGINT and SIGTERM\n"
    "watch  says when NAME appears and when it goes, until it is interrupted\n"
    "bridge connects ports of this machine with those of others, through a NATS server: messageport bridge --help\n"
    "--json one JSON object a line\n"
    "\n"
    "Exit status: 0 success; 1 another error; 2 wrong usage; 3 no such port, or the name is taken; 4 timed out; 5 the port died.\n";

/* The options that a command knows; those of others are wrong usage. */
static bool is_known(const char *command, int option)
{
    const char *known = strcmp(command, "send") == 0 ? "idfot" : strcmp(command, "serve") == 0 ? "x" : "";

    return option == 'j' || strchr(known, option) != NULL;
}

static int take_number(const char *text, struct options *options)
{
    const char *error = NULL;

    options->id = (SInt32)strtonum(text, INT32_MIN, INT32_MAX, &error);
    return error ? misuse("--id %s is no number of 32 bits", text) : exit_success;
}

static int take_seconds(const char *text, struct options *options)
{
    bool is_taken = seconds_read(text, &options->timeout) && options->timeout >= 0;

    return is_taken ? exit_success : misuse("--timeout %s is no number of seconds", text);
}

static int take_message(const char **place, const char *value, const struct options *options)
{
    if (options->data || options->file) {
        return misuse("more than one message is given");
    }
    *place = value;
    return exit_success;
}

static int take_option(int option, char **words, void *taken)
{
    struct options *options = taken;

    if (!is_known(words[0], option)) {
        return misuse("%s does not belong to this command", words[optind - 1]);
    }
    switch (option) {
    case 'i':
        return take_number(optarg, options);
    case 't':
        return take_seconds(optarg, options);
    case 'd':
        return take_message(&options->data, optarg, options);
    case 'f':
        return take_message(&options->file, optarg, options);
    case 'o':
        options->is_one_way = true;
        return exit_success;
    case 'x':
        options->command = optarg;
        return exit_success;
    default:
        options->is_json = true;
        return exit_success;
    }
}

/* The words that are no options: the name, and - for standard input. */
static int take_words(int count, char **words, struct options *options)
{
    const char *command = words[0];

    for (; optind < count; optind++) {
        if (strcmp(words[optind], "-") == 0 && strcmp(command, "send") == 0 && !options->data && !options->file) {
            options->file = words[optind];
        } else if (!options->name && strcmp(command, "list") != 0) {
            options->name = words[optind];
        } else {
            return misuse("%s is one word too many", words[optind]);
        }
    }
    return exit_success;
}

static int run_command(int count, char **words)
{
    static const struct option known[] = {{"id", required_argument, NULL, 'i'},      {"data", required_argument, NULL, 'd'},
                                          {"file", required_argument, NULL, 'f'},    {"one-way", no_argument, NULL, 'o'},
                                          {"timeout", required_argument, NULL, 't'}, {"exec", required_argument, NULL, 'x'},
                                          {"json", no_argument, NULL, 'j'},          {NULL, 0, NULL, 0}};
    struct options options = {.timeout = 10};
    const char *command = words[0];
    int status = options_take(count, words, ":", known, take_option, &options);

    if (status == exit_success) {
        status = take_words(count, words, &options);
    }
    if (status != exit_success) {
        return status;
    }
    if (strcmp(command, "list") == 0) {
        return list_ports(&options);
    }
    if (!options.name) {
        return misuse("%s needs a name", command);
    }
    if (strcmp(command, "send") == 0) {
        return send_message(&options);
    }
    if (strcmp(command, "watch") == 0) {
        return watch_name(&options);
    }
    return options.command ? serve_port(&options) : misuse("serve needs --exec");
}

static const struct command commands[] = {
    {"list", run_command, false},  {"send", run_command, false}, {"serve", run_command, false},
    {"watch", run_command, false}, {"bridge", run_bridge, true}, {NULL, NULL, false},
};

static const struct command_line line = {"messageport", usage, help, commands};

int main(int count, char **words)
{
    return run_command_line(&line, count, words);
}
