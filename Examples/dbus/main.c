/* SPDX-License-Identifier: Apache-2.0 */
/*
 * D-Bus in a run loop: two connections of sd-bus, one that offers a service and one that calls it, each driven by a CFFileDescriptor and
 * a timer.
 *
 * usage: dbus [CALLS]
 * Uses the session bus (DBUS_SESSION_BUS_ADDRESS). Calls an Echo method over and over, a hundred times unless told otherwise, then waits
 * for the signal that the service sends at the end; ends with 0 if all answers were right.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <time.h>

static const char *const path = "/org/corerunloop/Example";
static const char *const interface = "org.corerunloop.Example";

/* A connection in the loop. */
struct connection {
    sd_bus *bus;
    CFFileDescriptorRef descriptor;
    CFRunLoopTimerRef timer;
    CFRunLoopObserverRef observer;
};

static struct connection service;
static struct connection client;
static char service_name[64];
static int calls = 100;
static int answered;
static bool has_heard;
static bool has_failed;

static void fail(const char *what, int error)
{
    (void)fprintf(stderr, "dbus: %s: %s\n", what, strerror(-error));
    has_failed = true;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

/* ---- sd-bus in a run loop ---- */

static void process(struct connection *connection)
{
    int result;

    do {
        result = sd_bus_process(connection->bus, NULL);
    } while (result > 0);
    if (result < 0) {
        fail("the connection is lost", result);
    }
}

static void socket_is_ready(CFFileDescriptorRef descriptor, CFOptionFlags types, void *info)
{
    (void)descriptor, (void)types;
    process(info);
}

static void time_is_up(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    process(info);
}

static double seconds_until(uint64_t monotonic_us)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)monotonic_us / 1e6 - ((double)now.tv_sec + (double)now.tv_nsec / 1e9);
}

/* Before the loop sleeps, sd-bus says what it waits for; what it says may change with every call of it, in either connection. */
static void prepare(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    struct connection *connection = info;
    int events = sd_bus_get_events(connection->bus);
    uint64_t deadline_us = UINT64_MAX;

    (void)observer, (void)activity;
    if (events < 0) {
        fail("the connection is lost", events);
        return;
    }
    (void)sd_bus_get_timeout(connection->bus, &deadline_us);
    CFFileDescriptorEnableCallBacks(connection->descriptor, (events & POLLIN ? kCFFileDescriptorReadCallBack : 0ul) |
                                                                (events & POLLOUT ? kCFFileDescriptorWriteCallBack : 0ul));
    CFRunLoopTimerSetNextFireDate(connection->timer,
                                  CFAbsoluteTimeGetCurrent() + (deadline_us == UINT64_MAX ? 1e9 : seconds_until(deadline_us)));
}

static bool open_connection(struct connection *connection)
{
    CFFileDescriptorContext descriptor_context = {0, connection, NULL, NULL, NULL};
    CFRunLoopTimerContext timer_context = {0, connection, NULL, NULL, NULL};
    CFRunLoopObserverContext observer_context = {0, connection, NULL, NULL, NULL};
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceRef source;
    int result = sd_bus_open_user(&connection->bus);

    if (result < 0) {
        fail("there is no session bus", result);
        return false;
    }
    connection->descriptor = CFFileDescriptorCreate(NULL, sd_bus_get_fd(connection->bus), false, socket_is_ready, &descriptor_context);
    source = CFFileDescriptorCreateRunLoopSource(NULL, connection->descriptor, 0);
    CFRunLoopAddSource(loop, source, kCFRunLoopDefaultMode);
    CFRelease(source);
    connection->timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 1e9, 1e9, 0, 0, time_is_up, &timer_context);
    CFRunLoopAddTimer(loop, connection->timer, kCFRunLoopDefaultMode);
    connection->observer = CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeWaiting, true, 0, prepare, &observer_context);
    CFRunLoopAddObserver(loop, connection->observer, kCFRunLoopDefaultMode);
    return true;
}

static void close_connection(struct connection *connection)
{
    if (!connection->descriptor) {
        return;
    }
    CFFileDescriptorInvalidate(connection->descriptor);
    CFRelease(connection->descriptor);
    CFRunLoopTimerInvalidate(connection->timer);
    CFRelease(connection->timer);
    CFRunLoopObserverInvalidate(connection->observer);
    CFRelease(connection->observer);
    (void)sd_bus_flush_close_unref(connection->bus);
}

/* ---- the service ---- */

static int echo(sd_bus_message *message, void *info, sd_bus_error *error)
{
    const char *text = NULL;
    int number = 0;
    int result = sd_bus_message_read(message, "si", &text, &number);

    (void)info, (void)error;
    if (result >= 0 && number == calls) {
        result = sd_bus_emit_signal(service.bus, path, interface, "Done", "i", number);
    }
    return result < 0 ? result : sd_bus_reply_method_return(message, "si", text, number);
}

static const sd_bus_vtable methods[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Echo", "si", "si", echo, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_SIGNAL("Done", "i", 0),
    SD_BUS_VTABLE_END,
};

/* ---- the client ---- */

static void call_echo(void);

static int hear(sd_bus_message *message, void *info, sd_bus_error *error)
{
    int number = 0;

    (void)info, (void)error;
    (void)sd_bus_message_read(message, "i", &number);
    has_heard = number == calls;
    if (answered == calls) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
    return 0;
}

static int answer(sd_bus_message *message, void *info, sd_bus_error *error)
{
    const char *text = NULL;
    int number = 0;

    (void)info, (void)error;
    if (sd_bus_message_is_method_error(message, NULL)) {
        fail("Echo", -sd_bus_message_get_errno(message));
        return 0;
    }
    (void)sd_bus_message_read(message, "si", &text, &number);
    answered++;
    has_failed |= number != answered || strcmp(text, "hello") != 0;
    if (answered < calls) {
        call_echo();
    } else if (has_heard) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
    return 0;
}

static void call_echo(void)
{
    int result =
        sd_bus_call_method_async(client.bus, NULL, service_name, path, interface, "Echo", answer, NULL, "si", "hello", answered + 1);

    if (result < 0) {
        fail("cannot call", result);
    }
}

static bool begin(void)
{
    const char *unique = NULL;
    int result = sd_bus_add_object_vtable(service.bus, NULL, path, interface, methods, NULL);

    if (result >= 0) {
        result = sd_bus_get_unique_name(service.bus, &unique);
    }
    if (result >= 0) {
        (void)snprintf(service_name, sizeof service_name, "%s", unique);
        result = sd_bus_match_signal(client.bus, NULL, service_name, path, interface, "Done", hear, NULL);
    }
    if (result < 0) {
        fail("cannot offer the service", result);
        return false;
    }
    (void)printf("the service is %s\n", service_name);
    call_echo();
    return !has_failed;
}

int main(int count, char **arguments)
{
    if (count > 1) {
        calls = atoi(arguments[1]);
    }
    if (open_connection(&service) && open_connection(&client) && begin()) {
        CFRunLoopRun();
    }
    (void)printf("%d answers, %s\n", answered, has_heard ? "and the signal" : "no signal");
    close_connection(&client);
    close_connection(&service);
    return !has_failed && answered == calls && has_heard ? EXIT_SUCCESS : EXIT_FAILURE;
}
