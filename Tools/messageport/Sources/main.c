/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messageport: lists message ports, sends to them, serves one by a command, and watches names come and go. docs: messageport(1).
 *
 * Standard output has only what was asked for; every error is one line on standard error, and the exit status says which kind it was.
 */
#include <bsd/stdlib.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CRLRunLoop.h"
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

const char command_name[] = "messageport";

static int misuse(const char *format, const char *what)
{
    (void)fail(exit_usage, format, what);
    (void)fputs(usage, stderr);
    return exit_usage;
}

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
    char *end;

    options->timeout = strtod(text, &end);
    return *text == '\0' || *end != '\0' || !(options->timeout >= 0) ? misuse("--timeout %s is no number of seconds", text) : exit_success;
}

static int take_option(int option, struct options *options)
{
    switch (option) {
    case 'i':
        return take_number(optarg, options);
    case 't':
        return take_seconds(optarg, options);
    case 'd':
    case 'f':
        if (options->data || options->file) {
            return misuse("more than one message is given%s", "");
        }
        *(option == 'd' ? &options->data : &options->file) = optarg;
        return exit_success;
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

static int take_options(int count, char **words, struct options *options)
{
    static const struct option known[] = {{"id", required_argument, NULL, 'i'},      {"data", required_argument, NULL, 'd'},
                                          {"file", required_argument, NULL, 'f'},    {"one-way", no_argument, NULL, 'o'},
                                          {"timeout", required_argument, NULL, 't'}, {"exec", required_argument, NULL, 'x'},
                                          {"json", no_argument, NULL, 'j'},          {NULL, 0, NULL, 0}};
    const char *command = words[0];
    int option;

    opterr = 0;
    while ((option = getopt_long(count, words, ":", known, NULL)) != -1) {
        int status = option == '?'                ? misuse("there is no option %s", words[optind - 1])
                     : option == ':'              ? misuse("%s needs a value", words[optind - 1])
                     : !is_known(command, option) ? misuse("%s does not belong to this command", words[optind - 1])
                                                  : take_option(option, options);

        if (status != exit_success) {
            return status;
        }
    }
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

static int run(int count, char **words)
{
    struct options options = {.timeout = 10};
    const char *command = words[0];
    int status = take_options(count, words, &options);

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
    return options.command ? serve_port(&options) : misuse("serve needs --exec%s", "");
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool is_command(const char *word)
{
    static const char *const commands[] = {"list", "send", "serve", "watch"};

    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(word, commands[i]) == 0) {
            return true;
        }
    }
    return false;
}

int main(int count, char **words)
{
    if (count < 2) {
        return misuse("what is to be done%s?", "");
    }
    if (is_help(words[1]) || (is_command(words[1]) && count > 2 && is_help(words[2]))) {
        (void)fputs(usage, stdout);
        (void)fputs(help, stdout);
        return exit_success;
    }
    if (strcmp(words[1], "--version") == 0) {
        (void)puts("messageport " CRL_VERSION_STRING);
        return exit_success;
    }
    if (strcmp(words[1], "bridge") == 0) {
        return run_bridge(words + 1);
    }
    return is_command(words[1]) ? run(count - 1, words + 1) : misuse("there is no command %s", words[1]);
}
