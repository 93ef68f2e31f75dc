/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runloop: traces programs that use run loops, and makes pictures and tables of their traces. docs: runloop(1), Tools/runloop/trace.md.
 *
 * Standard output has only what was asked for; every error is one line on standard error, and the exit status says which kind it was.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "CRLRunLoop.h"
#include "runloop.h"

static const char usage[] = "usage: runloop trace [-o FILE] [--buffer BYTES] -- PROGRAM [ARGUMENT...]\n"
                            "       runloop export --format html|perfetto|csv [-o FILE] [--stall SECONDS] TRACE...\n"
                            "       runloop top [--interval SECONDS] [--count NUMBER] [--json]\n"
                            "       runloop --help | --version\n";

static const char help[] =
    "\n"
    "trace   runs PROGRAM, and writes into a file what its run loops do\n"
    "  -o, --output FILE  the file (PROGRAM.crltrace); child processes get FILE.NUMBER\n"
    "  --buffer BYTES     of each thread's latest events, at 32 bytes an event (2097152)\n"
    "export  writes traces of one machine, together, in another form\n"
    "  --format html      a page with a time line and figures, for any browser, without network\n"
    "  --format perfetto  for Perfetto's viewer (ui.perfetto.dev) and its trace processor\n"
    "  --format csv       a line for each run, pass, sleep, callout and arrow\n"
    "  -o, --output FILE  the file (standard output)\n"
    "  --stall SECONDS    how long a loop may stay awake until it counts as a stall (0.25)\n"
    "top     shows what the loops of this user's processes do that run with CORERUNLOOP_STATISTICS=1\n"
    "  --interval SECONDS how long to count for each table (1)\n"
    "  --count NUMBER     of tables (without end; with --json 1)\n"
    "  --json             an object for each table\n"
    "\n"
    "Exit status: 0 success; 1 an error; 2 wrong usage. trace: that of PROGRAM, 126 if it cannot be run, 127 if it is not there,\n"
    "and 128 and the signal's number if a signal ended it.\n";

int fail(int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fputs("runloop: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
    return status;
}

static int misuse(const char *format, const char *what)
{
    (void)fail(exit_usage, format, what);
    (void)fputs(usage, stderr);
    return exit_usage;
}

struct options {
    const char *output;
    const char *buffer;
    const char *format;
    double stall_s;
    double interval_s;
    long tables; /* -1: not said */
    bool is_json;
};

static int take_option(int option, const char *command, struct options *options)
{
    char *end;

    const char *own = strcmp(command, "trace") == 0 ? "ob" : strcmp(command, "export") == 0 ? "ofs" : "inj";

    if (strchr(own, option) == NULL) {
        return misuse("an option does not belong to %s", command);
    }
    switch (option) {
    case 'o':
        options->output = optarg;
        return exit_success;
    case 'b':
        options->buffer = optarg;
        return *optarg == '\0' || optarg[strspn(optarg, "0123456789")] != '\0' ? misuse("--buffer %s is no number of bytes", optarg)
                                                                               : exit_success;
    case 'f':
        options->format = optarg;
        return exit_success;
    case 'j':
        options->is_json = true;
        return exit_success;
    case 'n':
        options->tables = strtol(optarg, &end, 10);
        return *optarg < '1' || *optarg > '9' || *end != '\0' ? misuse("--count %s is no number above 0", optarg) : exit_success;
    case 'i':
        options->interval_s = strtod(optarg, &end);
        if (*optarg == '\0' || *end != '\0' || !(options->interval_s >= 0.01 && options->interval_s <= 86400)) {
            return misuse("--interval %s is no number of seconds from 0.01 to a day", optarg);
        }
        return exit_success;
    default:
        options->stall_s = strtod(optarg, &end);
        if (*optarg == '\0' || *end != '\0' || !(options->stall_s > 0 && options->stall_s < 1e9)) {
            return misuse("--stall %s is no number of seconds", optarg);
        }
        return exit_success;
    }
}

static int take_options(int count, char **words, struct options *options)
{
    static const struct option known[] = {{"output", required_argument, NULL, 'o'},   {"buffer", required_argument, NULL, 'b'},
                                          {"format", required_argument, NULL, 'f'},   {"stall", required_argument, NULL, 's'},
                                          {"interval", required_argument, NULL, 'i'}, {"count", required_argument, NULL, 'n'},
                                          {"json", no_argument, NULL, 'j'},           {NULL, 0, NULL, 0}};
    const char *ends_at_program = strcmp(words[0], "trace") == 0 ? "+:o:" : ":o:";
    int status = exit_success;
    int option;

    opterr = 0;
    while (status == exit_success && (option = getopt_long(count, words, ends_at_program, known, NULL)) != -1) {
        status = option == '?'   ? misuse("there is no option %s", words[optind - 1])
                 : option == ':' ? misuse("%s needs a value", words[optind - 1])
                                 : take_option(option, words[0], options);
    }
    return status;
}

static int write_out(const struct story *story, const char *format, FILE *file)
{
    int status = strcmp(format, "csv") == 0        ? write_csv(story, file)
                 : strcmp(format, "perfetto") == 0 ? write_perfetto(story, file)
                                                   : write_html(story, file);

    return fflush(file) != 0 || ferror(file) ? exit_error : status;
}

static int export(const struct options *options, int count, char **files)
{
    FILE *file = stdout;
    struct traces traces = {0};
    struct story story;
    int status = exit_success;

    for (int i = 0; i < count && status == exit_success; i++) {
        status = traces_add(&traces, files[i]);
    }
    if (status != exit_success) {
        return status;
    }
    traces_finish(&traces);
    story_tell(&story, &traces, (int64_t)llround(options->stall_s * 1e9));
    if (options->output && !(file = fopen(options->output, "wbe"))) {
        return fail(exit_error, "%s: %s", options->output, strerror(errno));
    }
    status = write_out(&story, options->format, file);
    if (options->output && fclose(file) != 0) {
        status = exit_error;
    }
    return status == exit_success
               ? status
               : fail(status, "%s cannot be written: %s", options->output ? options->output : "standard output", strerror(errno));
}

static int run(int count, char **words)
{
    struct options options = {.stall_s = 0.25, .interval_s = 1, .tables = -1};
    int status = take_options(count, words, &options);

    if (status != exit_success) {
        return status;
    }
    if (strcmp(words[0], "trace") == 0) {
        return optind < count ? record(options.output, options.buffer, words + optind) : misuse("trace needs a program%s", "");
    }
    if (strcmp(words[0], "top") == 0) {
        return optind < count ? misuse("top takes no %s", words[optind])
                              : show_top(options.interval_s, options.tables >= 0 ? options.tables : options.is_json, options.is_json);
    }
    if (!options.format) {
        return misuse("export needs --format%s", "");
    }
    if (strcmp(options.format, "csv") != 0 && strcmp(options.format, "perfetto") != 0 && strcmp(options.format, "html") != 0) {
        return misuse("there is no format %s", options.format);
    }
    return optind < count ? export(&options, count - optind, words + optind) : misuse("export needs a trace%s", "");
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool is_command(const char *word)
{
    return strcmp(word, "trace") == 0 || strcmp(word, "export") == 0 || strcmp(word, "top") == 0;
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
        (void)puts("runloop " CRL_VERSION_STRING);
        return exit_success;
    }
    return is_command(words[1]) ? run(count - 1, words + 1) : misuse("there is no command %s", words[1]);
}
