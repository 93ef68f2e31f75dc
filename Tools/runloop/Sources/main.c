/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runloop: traces programs that use run loops, and makes pictures and tables of their traces. docs: runloop(1), Tools/runloop/trace.md.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runloop.h"

static const char usage[] = "usage: runloop trace [-o FILE] [--buffer BYTES] [--stacks] -- PROGRAM [ARGUMENT...]\n"
                            "       runloop export --format html|perfetto|csv [-o FILE] [--stall SECONDS] TRACE...\n"
                            "       runloop why [--stall SECONDS] [--interval SECONDS] [--json] PROCESS|TRACE...\n"
                            "       runloop top [--interval SECONDS] [--count NUMBER] [--json]\n"
                            "       runloop --help | --version\n";

static const char help[] =
    "\n"
    "trace   runs PROGRAM, and writes into a file what its run loops do\n"
    "  -o, --output FILE  the file (PROGRAM.crltrace); child processes get FILE.NUMBER\n"
    "  --buffer BYTES     of each thread's latest events, at 32 bytes an event (2097152)\n"
    "  --stacks           besides, what each thread was doing 997 times a second, and when it waited for a processor\n"
    "export  writes traces of one machine, together, in another form\n"
    "  --format html      a page with a time line and figures, for any browser, without network\n"
    "  --format perfetto  for Perfetto's viewer (ui.perfetto.dev) and its trace processor\n"
    "  --format csv       a line for each run, pass, sleep, callout, arrow and sample\n"
    "  -o, --output FILE  the file (standard output)\n"
    "  --stall SECONDS    how long a loop may stay awake until it counts as a stall (0.25)\n"
    "why     says what is wrong: never called, spins, late, hangs, wakes too often\n"
    "  --interval SECONDS how long to watch a process that runs with CORERUNLOOP_STATISTICS=1 (1)\n"
    "  --json             an object\n"
    "top     shows what the loops of this user's processes do that run with CORERUNLOOP_STATISTICS=1\n"
    "  --interval SECONDS how long to count for each table (1)\n"
    "  --count NUMBER     of tables (without end; with --json 1)\n"
    "  --json             an object for each table\n"
    "\n"
    "Exit status: 0 success; 1 an error; 2 wrong usage. why: 3 if something is wrong. trace: that of PROGRAM, 126 "
    "if it cannot be run, 127 if it is not there,\n"
    "and 128 and the signal's number if a signal ended it.\n";

struct options {
    const char *output;
    const char *buffer;
    const char *format;
    double stall_s;
    double interval_s;
    long tables; /* -1: not said */
    bool is_json;
    bool is_with_stacks;
};

static const struct options default_options = {.stall_s = 0.25, .interval_s = 1, .tables = -1};

static int take_buffer(struct options *options)
{
    options->buffer = optarg;
    return *optarg != '\0' && optarg[strspn(optarg, "0123456789")] == '\0' ? exit_success
                                                                           : misuse("--buffer %s is no number of bytes", optarg);
}

static int take_count(struct options *options)
{
    char *end;

    options->tables = strtol(optarg, &end, 10);
    return *optarg >= '1' && *optarg <= '9' && *end == '\0' ? exit_success : misuse("--count %s is no number above 0", optarg);
}

static int take_interval(struct options *options)
{
    bool is_taken = seconds_read(optarg, &options->interval_s) && options->interval_s >= 0.01 && options->interval_s <= 86400;

    return is_taken ? exit_success : misuse("--interval %s is no number of seconds from 0.01 to a day", optarg);
}

static int take_stall(struct options *options)
{
    bool is_taken = seconds_read(optarg, &options->stall_s) && options->stall_s > 0 && options->stall_s < 1e9;

    return is_taken ? exit_success : misuse("--stall %s is no number of seconds", optarg);
}

/* The options that a command knows; those of others are wrong usage. */
static bool is_known(const char *command, int option)
{
    const char *known = strcmp(command, "trace") == 0    ? "obk"
                        : strcmp(command, "export") == 0 ? "ofs"
                        : strcmp(command, "why") == 0    ? "sij"
                                                         : "inj";

    return strchr(known, option) != NULL;
}

static int take_option(int option, char **words, void *taken)
{
    struct options *options = taken;

    if (!is_known(words[0], option)) {
        return misuse("an option does not belong to %s", words[0]);
    }
    switch (option) {
    case 'b':
        return take_buffer(options);
    case 'n':
        return take_count(options);
    case 'i':
        return take_interval(options);
    case 's':
        return take_stall(options);
    case 'o':
        options->output = optarg;
        return exit_success;
    case 'f':
        options->format = optarg;
        return exit_success;
    case 'k':
        options->is_with_stacks = true;
        return exit_success;
    default:
        options->is_json = true;
        return exit_success;
    }
}

static int take_options(int count, char **words, struct options *options)
{
    static const struct option known[] = {
        {"output", required_argument, NULL, 'o'}, {"buffer", required_argument, NULL, 'b'},   {"format", required_argument, NULL, 'f'},
        {"stall", required_argument, NULL, 's'},  {"interval", required_argument, NULL, 'i'}, {"count", required_argument, NULL, 'n'},
        {"json", no_argument, NULL, 'j'},         {"stacks", no_argument, NULL, 'k'},         {NULL, 0, NULL, 0}};
    const char *letters = strcmp(words[0], "trace") == 0 ? "+:o:" : ":o:"; /* those of trace end at its program */

    return options_take(count, words, letters, known, take_option, options);
}

typedef int format_writer(const struct story *story, FILE *file);

/* Returns NULL if there is no format of that name. */
static format_writer *find_format(const char *name)
{
    static const struct {
        const char *name;
        format_writer *write;
    } formats[] = {{"html", write_html}, {"perfetto", write_perfetto}, {"csv", write_csv}};

    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(formats[i].name, name) == 0) {
            return formats[i].write;
        }
    }
    return NULL;
}

/* A pipe without a reader is an error, and one whose reader is slow is waited for. */
static FILE *open_output(const char *path)
{
    int output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    FILE *file = output >= 0 && fcntl(output, F_SETFL, 0) == 0 ? fdopen(output, "wb") : NULL;

    if (output >= 0 && !file) {
        (void)close(output);
    }
    return file;
}

static int export_traces(const struct options *options, int count, char **files)
{
    FILE *file = stdout;
    struct traces traces = {0};
    struct story story;
    int status = traces_read(&traces, count, files);

    if (status != exit_success) {
        return status;
    }
    story_tell(&story, &traces, (int64_t)llround(options->stall_s * 1e9));
    if (options->output && !(file = open_output(options->output))) {
        return fail(exit_error, "%s: %s", options->output, strerror(errno));
    }
    status = find_format(options->format)(&story, file);
    if (fflush(file) != 0 || ferror(file)) {
        status = exit_error;
    }
    if (options->output && fclose(file) != 0) {
        status = exit_error;
    }
    return status == exit_success
               ? status
               : fail(status, "%s cannot be written: %s", options->output ? options->output : "standard output", strerror(errno));
}

static int run_trace(int count, char **words)
{
    struct options options = default_options;
    int status = take_options(count, words, &options);

    if (status != exit_success) {
        return status;
    }
    return optind < count ? record_program(options.output, options.buffer, options.is_with_stacks, words + optind)
                          : misuse("trace needs a program");
}

static int run_export(int count, char **words)
{
    struct options options = default_options;
    int status = take_options(count, words, &options);

    if (status != exit_success) {
        return status;
    }
    if (!options.format) {
        return misuse("export needs --format");
    }
    if (!find_format(options.format)) {
        return misuse("there is no format %s", options.format);
    }
    return optind < count ? export_traces(&options, count - optind, words + optind) : misuse("export needs a trace");
}

static int run_why(int count, char **words)
{
    struct options options = default_options;
    int status = take_options(count, words, &options);
    int64_t stall_ns = (int64_t)llround(options.stall_s * 1e9);
    char *end;
    long process;

    if (status != exit_success) {
        return status;
    }
    if (optind == count) {
        return misuse("why needs a process or a trace");
    }
    process = strtol(words[optind], &end, 10);
    if (count - optind == 1 && *end == '\0' && process > 0 && process <= INT32_MAX) {
        return explain_process(process, options.interval_s, stall_ns, options.is_json);
    }
    return explain_traces(count - optind, words + optind, stall_ns, options.is_json);
}

static int run_top(int count, char **words)
{
    struct options options = default_options;
    int status = take_options(count, words, &options);

    if (status != exit_success) {
        return status;
    }
    if (optind < count) {
        return misuse("top takes no %s", words[optind]);
    }
    return show_top(options.interval_s, options.tables >= 0 ? options.tables : options.is_json, options.is_json);
}

static const struct command commands[] = {
    {"trace", run_trace, false}, {"export", run_export, false}, {"why", run_why, false}, {"top", run_top, false}, {NULL, NULL, false}};

static const struct command_line line = {"runloop", usage, help, commands};

int main(int count, char **words)
{
    return run_command_line(&line, count, words);
}
