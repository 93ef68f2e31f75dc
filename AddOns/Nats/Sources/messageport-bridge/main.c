/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messageport-bridge: what the command `messageport bridge` runs. docs: messageport-bridge(1).
 *
 * Standard output has a line for each thing that comes or goes; every error is one line on standard error.
 */
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "CRLNats.h"
#include "CRLRunLoop.h"
#include "CoreFoundation/CoreFoundation.h"
#include "command_line.h"
#include "json_string.h"
#include "regular_file.h"
#include "stop_signal.h"

enum { exit_name = exit_usage + 1 };

static const char usage[] =
    "usage: messageport bridge --server URL[,URL]... [--export NAME... [--share]] [--import NAME[@MACHINE]... [--as LOCAL]] [options]\n"
    "       messageport bridge --help | --version\n";

static const char help[] =
    "\n"
    "Connects message ports of this machine with those of others, through a NATS server, until SIGINT or SIGTERM.\n"
    "  --server URL             nats://HOST:PORT or tls://HOST:PORT; several with commas, or given again\n"
    "  --export NAME...         other machines reach the local ports of these names\n"
    "  --share                  several machines may export the names before it; each message goes to one of them\n"
    "  --import NAME[@MACHINE]... these names of other machines are reached here; with a machine, only its own\n"
    "  --as LOCAL               the import before it is called LOCAL here (with a machine NAME@MACHINE, otherwise NAME)\n"
    "  --machine NAME           this machine's name among the bridges (the host name)\n"
    "  --durable                one-way messages are kept by the server (JetStream) until their receivers have them\n"
    "  --user NAME              with --password-file FILE, whose first line is the password\n"
    "  --credentials FILE       a JWT and its seed\n"
    "  --authorities FILE       certificates that may have signed the server's (PEM)\n"
    "  --certificate FILE       the client's own certificate, with --key FILE\n"
    "  --json                   one JSON object a line\n"
    "\n"
    "Exit status: 0 ended by a signal; 1 another error, or the server wants other credentials; 2 wrong usage; 3 a name cannot be used.\n";

static const struct command_line line = {"messageport bridge", usage, help, NULL};

enum { names_max = 1024 };

struct name {
    const char *name;
    const char *local_name; /* of an import; or NULL */
    bool is_import;
    bool shares;
};

struct options {
    CRLNatsConfiguration configuration;
    char servers[4096];
    char password[256];
    struct name names[names_max];
    int count;
    bool is_json;
};

static int status_at_end = exit_success;

/* ---- options ---- */

static int add_name(struct options *options, const char *name, bool is_import)
{
    if (options->count == names_max) {
        return misuse("%s is one name too many", name);
    }
    options->names[options->count++] = (struct name){.name = name, .is_import = is_import};
    return exit_success;
}

static int add_server(struct options *options, const char *server)
{
    size_t length = strlen(options->servers);

    if (length + strlen(server) + 2 > sizeof options->servers) {
        return misuse("%s is one server too many", server);
    }
    (void)snprintf(options->servers + length, sizeof options->servers - length, "%s%s", length > 0 ? "," : "", server);
    return exit_success;
}

static int read_password(struct options *options, const char *path)
{
    struct stat status;
    const char *reason;
    int file = regular_file_open(path, &status, &reason);
    size_t size;

    if (file < 0) {
        return fail(exit_error, "%s: there is no password to read: %s", path, reason);
    }
    size = regular_file_copy(file, 0, options->password, sizeof options->password - 1);
    (void)close(file);
    if (size == 0 || (size == sizeof options->password - 1 && !memchr(options->password, '\n', size))) {
        return fail(exit_error, "%s: there is no password of %zu bytes at most", path, sizeof options->password - 2);
    }
    options->password[strcspn(options->password, "\r\n")] = '\0';
    options->configuration.password = options->password;
    return exit_success;
}

static int share_names(struct options *options)
{
    int count = 0;

    for (int i = 0; i < options->count; i++) {
        if (!options->names[i].is_import) {
            options->names[i].shares = true;
            count++;
        }
    }
    return count > 0 ? exit_success : misuse("%s stands before any --export", "--share");
}

static int name_import(struct options *options, const char *local_name)
{
    if (options->count == 0 || !options->names[options->count - 1].is_import) {
        return misuse("--as %s does not follow an import", local_name);
    }
    options->names[options->count - 1].local_name = local_name;
    return exit_success;
}

static int apply_option(int option, struct options *options)
{
    switch (option) {
    case 's':
        return add_server(options, optarg);
    case 'e':
    case 'i':
        return add_name(options, optarg, option == 'i');
    case 'a':
        return name_import(options, optarg);
    case 'S':
        return share_names(options);
    case 'p':
        return read_password(options, optarg);
    case 'm':
        options->configuration.machine = optarg;
        return exit_success;
    case 'd':
        options->configuration.durable = true;
        return exit_success;
    case 'u':
        options->configuration.user = optarg;
        return exit_success;
    case 'c':
        options->configuration.credentials = optarg;
        return exit_success;
    case 'A':
        options->configuration.authorities = optarg;
        return exit_success;
    case 'C':
        options->configuration.certificate = optarg;
        return exit_success;
    case 'k':
        options->configuration.key = optarg;
        return exit_success;
    case 'j':
        options->is_json = true;
        return exit_success;
    default:
        (void)fputs(usage, stdout);
        (void)fputs(option == 'h' ? help : "", stdout);
        exit(exit_success);
    }
}

static const struct option known_options[] = {{"server", required_argument, NULL, 's'},
                                              {"export", required_argument, NULL, 'e'},
                                              {"import", required_argument, NULL, 'i'},
                                              {"as", required_argument, NULL, 'a'},
                                              {"share", no_argument, NULL, 'S'},
                                              {"machine", required_argument, NULL, 'm'},
                                              {"durable", no_argument, NULL, 'd'},
                                              {"user", required_argument, NULL, 'u'},
                                              {"password-file", required_argument, NULL, 'p'},
                                              {"credentials", required_argument, NULL, 'c'},
                                              {"authorities", required_argument, NULL, 'A'},
                                              {"certificate", required_argument, NULL, 'C'},
                                              {"key", required_argument, NULL, 'k'},
                                              {"json", no_argument, NULL, 'j'},
                                              {"help", no_argument, NULL, 'h'},
                                              {NULL, 0, NULL, 0}};

/* A word that is no option belongs to the --export or --import before it. */
static int parse_options(int count, char **words, struct options *options)
{
    int status = exit_success;
    int before = 0;
    int option;

    opterr = 0;
    while (status == exit_success && (option = getopt_long(count, words, "-:", known_options, NULL)) != -1) {
        if (option == '?' || option == ':') {
            return misuse(option == '?' ? "there is no option %s" : "%s needs a value", words[optind - 1]);
        }
        if (option == 1 && before != 'e' && before != 'i') {
            return misuse("%s is one word too many", optarg);
        }
        status = option == 1 ? add_name(options, optarg, before == 'i') : apply_option(option, options);
        before = option == 1 || option == 'a' ? before : option;
    }
    if (status == exit_success && options->servers[0] == '\0') {
        return misuse("%s is missing", "--server");
    }
    if (status == exit_success && options->count == 0) {
        return misuse("%s is to be exported or imported", "nothing");
    }
    return status;
}

/* ---- the bridge ---- */

static const char *event_word(CRLNatsEvent event)
{
    switch (event) {
    case kCRLNatsConnected:
        return "connected";
    case kCRLNatsDisconnected:
        return "disconnected";
    case kCRLNatsNameAppeared:
        return "name-appeared";
    case kCRLNatsNameVanished:
        return "name-vanished";
    case kCRLNatsCannotConnect:
        return "cannot-connect";
    case kCRLNatsRefused:
        return "refused";
    case kCRLNatsNameTaken:
        return "name-taken";
    case kCRLNatsNameUnusable:
        return "name-unusable";
    case kCRLNatsMessageDropped:
        return "message-dropped";
    case kCRLNatsPeerMisbehaves:
        return "peer-misbehaves";
    case kCRLNatsServerComplains:
        return "server-complains";
    case kCRLNatsMessageInDoubt:
        return "message-in-doubt";
    }
    return "unknown";
}

static void on_bridge_event(CRLNatsBridgeRef bridge, CRLNatsEvent event, const char *name, const char *text, void *info)
{
    const struct options *options = info;

    (void)bridge;
    if (options->is_json) {
        (void)printf("{\"event\":\"%s\",\"name\":", event_word(event));
        write_json_string(stdout, name ? name : "", name ? strlen(name) : 0, "");
        (void)fputs(",\"text\":", stdout);
        write_json_string(stdout, text, strlen(text), "");
        (void)puts("}");
    } else if (event >= 0) {
        (void)puts(text);
    }
    (void)fflush(stdout);
    if (event < 0) {
        (void)fail(exit_error, "%s", text);
    }
    if (event == kCRLNatsRefused) {
        status_at_end = exit_error;
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
}

/* NAME@MACHINE is split at its last @; a name that contains one and is to come from any machine ends with another. */
static bool import_name(CRLNatsBridgeRef bridge, const struct name *wanted)
{
    char *name = strdup(wanted->name);
    char *at = name ? strrchr(name, '@') : NULL;
    bool result;

    if (at) {
        *at++ = '\0';
    }
    result = name && CRLNatsBridgeImport(bridge, name, at && *at != '\0' ? at : NULL, wanted->local_name);
    free(name);
    return result;
}

static bool add_names(CRLNatsBridgeRef bridge, const struct options *options)
{
    for (int i = 0; i < options->count; i++) {
        const struct name *name = &options->names[i];

        if (!(name->is_import ? import_name(bridge, name) : CRLNatsBridgeExport(bridge, name->name, name->shares))) {
            return false;
        }
    }
    return true;
}

int main(int count, char **words)
{
    static struct options options;
    CRLNatsBridgeRef bridge;
    int status;

    command_line_begin(&line);
    if (count == 2 && strcmp(words[1], "--version") == 0) {
        (void)puts("messageport bridge " CRL_VERSION_STRING);
        return exit_success;
    }
    status = parse_options(count, words, &options);
    if (status != exit_success) {
        return status;
    }
    options.configuration.servers = options.servers;
    options.configuration.callback = on_bridge_event;
    options.configuration.info = &options;
    stop_on(SIGINT);
    stop_on(SIGTERM);
    bridge = CRLNatsBridgeCreate(&options.configuration);
    if (!bridge) {
        return exit_error;
    }
    if (add_names(bridge, &options)) {
        CFRunLoopRun();
    } else {
        status_at_end = exit_name;
    }
    CRLNatsBridgeInvalidate(bridge);
    return status_at_end;
}
