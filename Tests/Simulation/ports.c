/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random program of several processes: servers that want the names, and clients that send to them.
 *
 * A message's data begins with a letter that says how large its reply is to be; all other bytes follow from its number. Servers may answer
 * at once, run their loop again first, or ask another name. When all clients are done, each process's janitor tells its servers to stop;
 * they handle what is still there.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "CRLRunLoop.h"
#include "CoreFoundation/CoreFoundation.h"
#include "files.h"
#include "history.h"
#include "hostile.h"
#include "image.h"
#include "plan.h"
#include "scheduler.h"

enum { hops_max = 2, attacks_max = 8, sizes = 7, tries_max = 100, row = 4, busy_row = 60 };

static const CFTimeInterval for_ever = 1e10;
static const int64_t pause_ns = 5000000;

struct server {
    int name;
    CFRunLoopRef loop; /* NULL before it runs */
    int nesting;
};

static struct server servers[names_max];
static bool is_quitting;
static bool has_told; /* the janitor has, and looks at no loop any more */
static CFStringRef name_strings[names_max];

static uint64_t any(uint64_t below)
{
    return scheduler_random(random_work, below);
}

static bool by_chance(uint64_t one_in)
{
    return any(one_in) == 0;
}

static void sleep_for(int64_t ns)
{
    (void)scheduler_wait(NULL, NULL, scheduler_now_ns() + ns);
}

/* ---- letters ---- */

static uint32_t some_size(void)
{
    static const uint32_t usual[sizes] = {0, 1, 100, 3000, 5000, 66000, 140000};

    return (uint32_t)sizeof(struct letter) + usual[any(by_chance(4) ? sizes : 4)];
}

static UInt8 byte_at(uint32_t id, uint32_t place)
{
    return (UInt8)(id * 31 + place * 7 + (place >> 8));
}

static CFDataRef make_data(uint32_t id, uint32_t size, uint32_t hops, uint32_t reply_size)
{
    CFMutableDataRef data = CFDataCreateMutable(NULL, 0);
    const struct letter letter = {id, size, hops, reply_size};
    UInt8 *bytes;

    CFDataSetLength(data, (CFIndex)size);
    bytes = CFDataGetMutableBytePtr(data);
    memcpy(bytes, &letter, sizeof letter);
    for (uint32_t i = sizeof letter; i < size; i++) {
        bytes[i] = byte_at(id, i);
    }
    return data;
}

/* Whether the data is what make_data makes of its letter. */
static bool read_data(CFDataRef data, struct letter *ret_letter)
{
    size_t size = data ? (size_t)CFDataGetLength(data) : 0;
    const UInt8 *bytes = data ? CFDataGetBytePtr(data) : NULL;

    if (size < sizeof *ret_letter) {
        return false;
    }
    memcpy(ret_letter, bytes, sizeof *ret_letter);
    for (uint32_t i = sizeof *ret_letter; i < size; i++) {
        if (bytes[i] != byte_at(ret_letter->id, i)) {
            return false;
        }
    }
    return ret_letter->size == size;
}

/* ---- sending ---- */

static CFTimeInterval some_limit(bool *ret_is_limit)
{
    static const CFTimeInterval limits[] = {0, 0.001, 0.02, 1};

    *ret_is_limit = by_chance(plan.is_busy ? 16 : 3);
    return *ret_is_limit ? limits[any(4)] : for_ever;
}

static void send_one(CFMessagePortRef remote, int name, uint32_t hops, uint64_t ends)
{
    struct sending sending = {.name = name, .is_one_way = plan.is_crowd ? !by_chance(8) : by_chance(3), .ends = ends};
    CFTimeInterval send_limit = some_limit(&sending.has_send_limit);
    CFTimeInterval receive_limit = some_limit(&sending.has_receive_limit);
    CFStringRef mode = by_chance(3) ? CFSTR("private") : kCFRunLoopDefaultMode;
    CFDataRef reply = NULL;
    CFDataRef data;
    struct letter letter;
    bool is_right;
    SInt32 result;
    uint32_t id;

    sending.may_be_late = hops > 0;
    if (hops > 0) { /* two servers that ask one another must not wait for ever */
        send_limit = receive_limit = 0.05;
        sending.has_send_limit = sending.has_receive_limit = true;
    }
    id = history_send(&sending);
    data = make_data(id, some_size(), hops, some_size());
    result = CFMessagePortSendRequest(remote, (SInt32)id, data, send_limit, receive_limit, sending.is_one_way ? NULL : mode,
                                      sending.is_one_way ? NULL : &reply);
    turns_give_up();
    is_right = read_data(reply, &letter) && letter.id == id;
    history_result(id, result, is_right);
    if (reply) {
        CFRelease(reply);
    }
    CFRelease(data);
}

static void send_some(int name, uint64_t count, uint32_t hops)
{
    uint64_t ends = history_ends(name);
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, name_strings[name]);

    for (uint64_t i = 0; remote && i < count; i++) {
        send_one(remote, name, hops, ends);
    }
    if (remote && by_chance(8)) {
        history_cut(name, true); /* other threads of the process have the same object, or get it while this goes on */
        CFMessagePortInvalidate(remote);
        history_cut(name, false);
    }
    if (remote) {
        CFRelease(remote);
    }
}

/* ---- receiving ---- */

static CFDataRef handle(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    struct server *server = info;
    struct letter letter;

    if (!read_data(data, &letter) || letter.id != (uint32_t)message_id) {
        scheduler_fail("message %d came damaged", (int)message_id);
    }
    history_handle(letter.id, server->name);
    if (server->nesting < hops_max && by_chance(8)) {
        server->nesting++;
        if (by_chance(2)) {
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, (double)any(3000) / 1e6, by_chance(2));
        } else if (letter.hops < hops_max) {
            send_some((int)any((uint64_t)plan.names), 1, letter.hops + 1);
        }
        server->nesting--;
        if (is_quitting) { /* the run inside has been told, not the one around this */
            CFRunLoopStop(CFRunLoopGetCurrent());
        }
    }
    if (plan.restarts && by_chance(16) && CFMessagePortIsValid(port)) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
    return letter.reply_size > 0 ? make_data(letter.id, letter.reply_size, 0, 0) : NULL;
}

/* Until told to stop, or for some time. */
static void run_server(struct server *server)
{
    if (plan.restarts) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, (double)any(100000) / 1e6, false);
        return;
    }
    while (!is_quitting) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, for_ever, by_chance(2));
    }
    (void)server;
}

static void serve_once(struct server *server)
{
    CFMessagePortContext context = {.info = server};
    Boolean is_another = false;
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, name_strings[server->name], handle, &context, &is_another);
    CFRunLoopSourceRef source;

    if (!port) {
        history_refused(server->name);
        scheduler_note("waits for the name");
        sleep_for(pause_ns);
        return;
    }
    history_own(server->name);
    scheduler_note("serves");
    source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    if (source) {
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
        run_server(server);
        while (is_quitting && CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true) == kCFRunLoopRunHandledSource) {
        }
        CFRelease(source);
    }
    history_disown(server->name);
    CFMessagePortInvalidate(port);
    CFRelease(port);
}

static bool janitor_has_told(void *unused)
{
    (void)unused;
    return has_told;
}

/* Keeps the loop from finishing. */
static void nothing(void *info)
{
    (void)info;
}

static void serve(void *info)
{
    struct server *server = info;
    CFRunLoopSourceContext context = {.info = server, .perform = nothing};
    CFRunLoopSourceRef keeper = CFRunLoopSourceCreate(NULL, 0, &context);

    server->loop = image_loop();
    CFRunLoopAddSource(server->loop, keeper, kCFRunLoopDefaultMode);
    while (!is_quitting) {
        serve_once(server);
    }
    (void)scheduler_wait(janitor_has_told, NULL, never_ns);
    CFRunLoopSourceInvalidate(keeper);
    CFRelease(keeper);
}

/* ---- clients and janitors ---- */

static void be_client(void *info)
{
    int tries = 0;

    (void)info;
    (void)image_loop();
    for (int done = 0; done < plan.steps && tries < tries_max; tries++) {
        int name = (int)any((uint64_t)plan.names);
        CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, name_strings[name]);

        if (!remote) {
            scheduler_note("waits for a server");
            sleep_for(pause_ns);
            continue;
        }
        scheduler_note("sends");
        send_some(name, 1 + any(plan.is_busy ? busy_row : row), 0);
        CFRelease(remote);
        done++;
    }
    history_client_ends();
    scheduler_note("has sent all");
}

/* Fewer times than what would cost the process its channels. */
static void be_hostile(void *info)
{
    (void)info;
    for (uint64_t left = 1 + any(attacks_max); left > 0 && !is_quitting; left--) {
        scheduler_note("attacks");
        hostile_attack(name_strings[any((uint64_t)plan.names)]);
        sleep_for((int64_t)any(10 * (uint64_t)pause_ns));
    }
}

static void quit(void *info)
{
    (void)info;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static void be_janitor(void *info)
{
    (void)info;
    (void)scheduler_wait(history_is_over, NULL, never_ns);
    is_quitting = true;
    for (int i = 0; i < names_max; i++) {
        CFRunLoopRef loop = servers[i].loop;

        if (loop) {
            CRLRunLoopPerformFunction(loop, kCFRunLoopDefaultMode, quit, NULL, NULL);
            CFRunLoopWakeUp(loop);
        }
    }
    has_told = true;
}

void ports_start(int process)
{
    name_strings[0] = CFSTR("first");
    name_strings[1] = CFSTR("second/name");
    for (int i = 0; i < plan.names; i++) {
        servers[i].name = i;
        if (i % plan.processes == process || (plan.processes > 1 && scheduler_random(random_work, 2) == 0)) {
            (void)scheduler_spawn(process, serve, &servers[i]);
        }
    }
    for (int i = 0; i < plan.threads; i++) {
        history_client_begins(process);
        (void)scheduler_spawn(process, be_client, NULL);
    }
    (void)scheduler_spawn(process, be_janitor, NULL);
    if (plan.has_hostile && process == 0) {
        (void)scheduler_spawn(process, be_hostile, NULL);
    }
}
