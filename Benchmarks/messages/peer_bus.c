/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sd-bus: a method that takes an array of bytes and returns it, over a socket pair, and through a dbus-daemon of our own; and, over the
 * socket pair, one without a reply. The daemon throws away what it has no room for, which a call without a reply would not notice.
 */
#ifdef HAVE_SYSTEMD
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "messages.h"

static const char service[] = "org.corerunloop.Benchmark";
static const char path[] = "/benchmark";
static sd_bus *client;
static const char *destination; /* NULL without a daemon */

/* ---- the server ---- */

static int take(sd_bus_message *message, void *info, sd_bus_error *error)
{
    const void *bytes;
    size_t size;
    int result;

    (void)info, (void)error;
    if (!sd_bus_message_is_method_call(message, service, "Take")) {
        return 0;
    }
    result = sd_bus_message_read_array(message, 'y', &bytes, &size);
    if (result >= 0) {
        was_told(size);
    }
    return result < 0 ? result : 1;
}

static int give_back(sd_bus_message *message, void *info, sd_bus_error *error)
{
    sd_bus_message *reply = NULL;
    const void *bytes;
    size_t size;
    int result;

    (void)info, (void)error;
    if (!sd_bus_message_is_method_call(message, service, "GiveBack")) {
        return 0;
    }
    result = sd_bus_message_read_array(message, 'y', &bytes, &size);
    if (result >= 0) {
        result = sd_bus_message_new_method_return(message, &reply);
    }
    if (result >= 0) {
        result = sd_bus_message_append_array(reply, 'y', bytes, size);
    }
    if (result >= 0) {
        result = sd_bus_send(NULL, reply, NULL);
    }
    (void)sd_bus_message_unref(reply);
    return result < 0 ? result : 1;
}

static void serve_bus(sd_bus *bus, bool is_one_way)
{
    int result = sd_bus_add_filter(bus, NULL, is_one_way ? take : give_back, NULL);

    while (result >= 0) {
        result = sd_bus_process(bus, NULL);
        if (result == 0) {
            result = sd_bus_wait(bus, UINT64_MAX);
        }
    }
}

/* ---- the client ---- */

static bool exchange(const void *request, size_t size)
{
    sd_bus_message *message = NULL;
    sd_bus_message *reply = NULL;
    const void *bytes;
    size_t received = 0;
    bool is_same = sd_bus_message_new_method_call(client, &message, destination, path, service, "GiveBack") >= 0 &&
                   sd_bus_message_append_array(message, 'y', request, size) >= 0 &&
                   sd_bus_call(client, message, UINT64_MAX, NULL, &reply) >= 0 &&
                   sd_bus_message_read_array(reply, 'y', &bytes, &received) >= 0 && received == size;

    (void)sd_bus_message_unref(message);
    (void)sd_bus_message_unref(reply);
    return is_same;
}

static bool tell(const void *bytes, size_t size)
{
    sd_bus_message *message = NULL;
    bool is_sent = sd_bus_message_new_method_call(client, &message, destination, path, service, "Take") >= 0 &&
                   sd_bus_message_set_expect_reply(message, 0) >= 0 && sd_bus_message_append_array(message, 'y', bytes, size) >= 0 &&
                   sd_bus_send(client, message, NULL) >= 0 && sd_bus_flush(client) >= 0;

    (void)sd_bus_message_unref(message);
    return is_sent;
}

/* ---- over a socket pair ---- */

static bool make_pair(struct place *place)
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, place->ends) == 0;
}

static void serve_pair(const struct place *place)
{
    static const sd_id128_t id = {.bytes = {1}};
    sd_bus *bus;

    if (sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, place->ends[1], place->ends[1]) < 0 || sd_bus_set_server(bus, 1, id) < 0 ||
        sd_bus_set_anonymous(bus, 1) < 0 || sd_bus_start(bus) < 0) {
        give_up("sd-bus cannot serve");
    }
    serving();
    serve_bus(bus, place->is_one_way);
}

static bool open_pair(const struct place *place)
{
    return sd_bus_new(&client) >= 0 && sd_bus_set_fd(client, place->ends[0], place->ends[0]) >= 0 && sd_bus_start(client) >= 0;
}

/* ---- through a daemon ---- */

static const char configuration[] =
    "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" "
    "\"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
    "<busconfig><listen>unix:path=%s</listen><auth>EXTERNAL</auth>"
    "<policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/><allow own=\"*\"/></policy>"
    "<limit name=\"max_incoming_bytes\">1000000000</limit><limit name=\"max_outgoing_bytes\">1000000000</limit>"
    "<limit name=\"max_message_size\">134217728</limit></busconfig>\n";

static void start_daemon(const char *file, int ready)
{
    char option[160];
    char print[32];

    if (fork() == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!freopen("/dev/null", "w", stderr); /* it complains that it may not raise limits */
        (void)snprintf(option, sizeof option, "--config-file=%s", file);
        (void)snprintf(print, sizeof print, "--print-address=%d", ready);
        (void)execlp("dbus-daemon", "dbus-daemon", option, "--nofork", print, (char *)NULL);
        _exit(127);
    }
}

static bool begin_daemon(struct place *place)
{
    char file[128];
    char byte;
    int ready[2];
    FILE *stream;
    bool has_begun;

    (void)snprintf(file, sizeof file, "%s/bus.conf", place->folder);
    stream = fopen(file, "we");
    if (!stream || pipe(ready) != 0) {
        return false;
    }
    (void)fprintf(stream, configuration, place->address);
    (void)fclose(stream);
    start_daemon(file, ready[1]);
    (void)close(ready[1]);
    has_begun = read(ready[0], &byte, 1) == 1;
    (void)close(ready[0]);
    return has_begun;
}

static bool join_bus(const struct place *place, sd_bus **ret_bus)
{
    char address[128];

    (void)snprintf(address, sizeof address, "unix:path=%s", place->address);
    return sd_bus_new(ret_bus) >= 0 && sd_bus_set_address(*ret_bus, address) >= 0 && sd_bus_set_bus_client(*ret_bus, 1) >= 0 &&
           sd_bus_start(*ret_bus) >= 0;
}

static void serve_daemon(const struct place *place)
{
    sd_bus *bus;

    if (!join_bus(place, &bus) || sd_bus_request_name(bus, service, 0) < 0) {
        give_up("the bus cannot be joined");
    }
    serving();
    serve_bus(bus, false);
}

static bool open_daemon(const struct place *place)
{
    destination = service;
    return join_bus(place, &client);
}

const struct peer direct_bus_peer = {.name = "sd-bus",
                                     .what = "sd-bus, over a socket pair",
                                     .prepare = make_pair,
                                     .serve = serve_pair,
                                     .open = open_pair,
                                     .exchange = exchange,
                                     .tell = tell};
const struct peer daemon_bus_peer = {.name = "dbus-daemon",
                                     .what = "sd-bus, through a dbus-daemon",
                                     .prepare = begin_daemon,
                                     .serve = serve_daemon,
                                     .open = open_daemon,
                                     .exchange = exchange};
#endif
