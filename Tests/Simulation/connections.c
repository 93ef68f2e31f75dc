/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random program of several threads, each with a loop and a listening CFSocket, that connect to one another and send.
 *
 * Bytes of a connection follow from their place, so that a hole, a repetition or another connection's byte shows where it is read. Ends are
 * invalidated at any time, by their own thread, also in their callbacks, and by others. In the end all loops run until everything has
 * arrived: each connect callback once, each byte that was sent to an end that is still valid, and one end for each connection whose other
 * side has gone.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CoreFoundation.h"
#include "files.h"
#include "image.h"
#include "plan.h"
#include "scheduler.h"
#include "tables.h"

enum { actors_max = 4, ends_max = 256, chunk_max = 200, first_port = 1000, nesting_max = 3 };

static const int64_t patience_ns = INT64_C(100) * 1000000000;

struct actor {
    int number;
    CFRunLoopRef loop;
    CFSocketRef listener; /* NULL: no descriptor was left for it */
    int nesting;
};

/* One side of a connection. */
struct end {
    struct actor *actor;
    CFSocketRef socket;
    int connection; /* the same at the other end; 0: not known yet */
    bool is_client;
    bool is_in_background; /* its connect callback is owed */
    bool is_refused; /* nobody listened, or the connection could not be begun */
    bool asked_to_write; /* who enables Write is told, even of a connection that was refused */
    int connects, ends; /* callbacks */
    uint32_t sent, received;
    bool is_invalid; /* its own thread has invalidated it */
    bool is_given_up; /* somebody has begun to */
    int held; /* references of the context */
};

static struct actor actors[actors_max];
static struct end *ends[ends_max];
static int end_count, ready_count, done_count, left_count;
static bool is_over; /* for all at once: what one still did would be another's to settle */

static uint64_t any(uint64_t below)
{
    return scheduler_random(random_work, below);
}

static bool by_chance(uint64_t one_in)
{
    return any(one_in) == 0;
}

/* ---- ends ---- */

static unsigned char byte_at(const struct end *sender, uint32_t place)
{
    return (unsigned char)((unsigned)sender->connection * 31 + (sender->is_client ? 7 : 0) + place);
}

static struct end *other_of(const struct end *end)
{
    for (int i = 0; end->connection > 0 && i < end_count; i++) {
        if (ends[i] != end && ends[i]->connection == end->connection) {
            return ends[i];
        }
    }
    return NULL;
}

static struct end *make_end(struct actor *actor, bool is_client)
{
    struct end *end = calloc(1, sizeof *end);

    if (!end || end_count == ends_max) {
        scheduler_fail("the simulation has no room for another connection");
    }
    end->actor = actor;
    end->is_client = is_client;
    ends[end_count++] = end;
    return end;
}

static const void *hold(const void *info)
{
    ((struct end *)(uintptr_t)info)->held++;
    return info;
}

static void let_go(const void *info)
{
    ((struct end *)(uintptr_t)info)->held--;
}

static void give_up(struct end *end, const struct actor *by)
{
    scheduler_trace("actor %d gives up connection %d of actor %d", by->number, end->connection, end->actor->number);
    end->is_given_up = true;
    CFSocketInvalidate(end->socket);
    end->is_invalid |= by == end->actor;
}

static void do_something(struct actor *actor);

/* A callback may do what it likes, on its own thread's loop. */
static void misbehave(struct end *end)
{
    struct actor *actor = end->actor;

    if (by_chance(12)) {
        give_up(end, actor);
    }
    if (actor->nesting < nesting_max && by_chance(6)) {
        actor->nesting++;
        do_something(actor);
        actor->nesting--;
    }
}

static void take_data(struct end *end, CFDataRef data)
{
    const struct end sender = {.connection = end->connection, .is_client = !end->is_client};
    const UInt8 *bytes = CFDataGetBytePtr(data);

    if (CFDataGetLength(data) == 0) {
        if (++end->ends > 1) {
            scheduler_fail("the end of connection %d was told twice", end->connection);
        }
        return;
    }
    if (end->ends > 0) {
        scheduler_fail("there is data behind the end of connection %d", end->connection);
    }
    for (CFIndex i = 0; i < CFDataGetLength(data); i++) {
        if (bytes[i] != byte_at(&sender, end->received++)) {
            scheduler_fail("byte %u of connection %d is wrong", end->received - 1, end->connection);
        }
    }
}

static void event(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    struct end *end = info;

    (void)socket, (void)address;
    if (CFRunLoopGetCurrent() != end->actor->loop) {
        scheduler_fail("a callback of connection %d on another's thread", end->connection);
    }
    if (end->is_invalid) {
        scheduler_fail("a callback of connection %d after its invalidation", end->connection);
    }
    if (type == kCFSocketConnectCallBack) {
        if (++end->connects > 1) {
            scheduler_fail("connection %d was told twice that it is connected", end->connection);
        }
        end->is_refused = data != NULL;
    } else if (type == kCFSocketDataCallBack) {
        take_data(end, data);
    } else if (type == kCFSocketWriteCallBack && end->is_refused && !end->asked_to_write) {
        scheduler_fail("connection %d was refused and can be written to", end->connection);
    }
    misbehave(end);
}

/* ---- making connections ---- */

static CFDataRef address_of(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    address.sin_port = htons((uint16_t)port);
    return CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);
}

static void add(const struct end *end)
{
    CFRunLoopSourceRef source = CFSocketCreateRunLoopSource(NULL, end->socket, (CFIndex)any(3));

    if (source) { /* NULL: another thread has invalidated it already */
        CFRunLoopAddSource(end->actor->loop, source, by_chance(2) ? kCFRunLoopDefaultMode : kCFRunLoopCommonModes);
        CFRelease(source);
    }
}

static void accept_one(CFSocketRef listener, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    struct end *end = make_end(info, false);
    CFSocketContext context = {.info = end, .retain = hold, .release = let_go};
    CFSocketNativeHandle native = *(const CFSocketNativeHandle *)data;
    CFOptionFlags types = kCFSocketDataCallBack;

    (void)listener, (void)type, (void)address;
    end->connection = stream_connection(native);
    types |= by_chance(2) ? kCFSocketWriteCallBack : 0;
    end->socket = CFSocketCreateWithNative(NULL, native, types, event, &context);
    if (end->connection == 0 || !end->socket) {
        scheduler_fail("what was accepted is no connection");
    }
    scheduler_trace("actor %d accepts connection %d", end->actor->number, end->connection);
    add(end);
    misbehave(end);
}

static void connect_to(struct actor *actor, int port)
{
    struct end *end = make_end(actor, true);
    CFSocketContext context = {.info = end, .retain = hold, .release = let_go};
    CFOptionFlags types = kCFSocketConnectCallBack | kCFSocketDataCallBack | (by_chance(2) ? kCFSocketWriteCallBack : 0);
    bool waits = by_chance(3);
    CFDataRef address;
    CFSocketError error;

    end->socket = CFSocketCreate(NULL, PF_INET, SOCK_STREAM, 0, types, event, &context);
    if (!end->socket) {
        end->is_given_up = true; /* there was no descriptor */
        return;
    }
    if (by_chance(2)) {
        add(end);
        types = 0;
    }
    address = address_of(port);
    error = CFSocketConnectToAddress(end->socket, address, waits ? 0.01 : -1);
    CFRelease(address);
    end->connection = stream_connection(CFSocketGetNative(end->socket));
    end->is_in_background = !waits && error == kCFSocketSuccess;
    end->is_refused = error == kCFSocketError;
    scheduler_trace("actor %d connects to %d: connection %d, %d", actor->number, port, end->connection, (int)error);
    if (types) {
        add(end);
    }
}

/* ---- what an actor does ---- */

static struct end *some_end(const struct actor *actor)
{
    struct end *end = end_count > 0 ? ends[any((uint64_t)end_count)] : NULL;

    return end && end->socket && end->actor == actor ? end : NULL;
}

static void send_some(struct end *end)
{
    UInt8 bytes[chunk_max];
    CFIndex size = 1 + (CFIndex)any(chunk_max);
    CFDataRef data;

    for (CFIndex i = 0; i < size; i++) {
        bytes[i] = byte_at(end, end->sent + (uint32_t)i);
    }
    data = CFDataCreate(NULL, bytes, size);
    if (CFSocketSendData(end->socket, NULL, data, 0.002) == kCFSocketSuccess) {
        end->sent += (uint32_t)size;
    }
    CFRelease(data);
}

/* Reading stays on: what has been sent is to arrive. */
static void change_interest(struct end *end)
{
    CFSocketDisableCallBacks(end->socket, kCFSocketDataCallBack | kCFSocketWriteCallBack);
    if (by_chance(2)) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, (double)any(2000) / 1e6, true);
    }
    CFSocketEnableCallBacks(end->socket, kCFSocketDataCallBack);
    if (by_chance(2)) {
        end->asked_to_write = true;
        CFSocketEnableCallBacks(end->socket, kCFSocketWriteCallBack);
    }
}

static void do_something(struct actor *actor)
{
    struct end *end = some_end(actor);
    uint64_t choice = any(10);

    if (choice < 2) {
        connect_to(actor, first_port + (int)any((uint64_t)plan.threads + (by_chance(4) ? 1 : 0)));
    } else if (choice == 2 && end_count > 0) {
        struct end *any_end = ends[any((uint64_t)end_count)];

        if (any_end->socket) {
            give_up(any_end, actor);
        }
    } else if (choice < 7 && end) {
        send_some(end);
    } else if (choice == 7 && end) {
        change_interest(end);
    } else {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, (double)any(4000) / 1e6, by_chance(2));
    }
}

/* ---- the end ---- */

/* Nothing more can come to this end. */
static bool is_settled(const struct end *end)
{
    const struct end *other = other_of(end);

    if (end->is_given_up || (end->is_refused && !end->is_in_background)) {
        return true;
    }
    if (end->is_in_background && end->connects == 0) {
        return false;
    }
    if (end->connection == 0 || !other) {
        return end->is_refused || end->ends > 0; /* else it is still to be accepted */
    }
    if (other->sent != end->received) {
        return false;
    }
    return !other->is_given_up || end->ends == 1;
}

static bool all_are_settled(void)
{
    for (int i = 0; i < end_count; i++) {
        if (!is_settled(ends[i])) {
            return false;
        }
    }
    return true;
}

/* As far as its own side goes; it may be waiting to be accepted. */
static bool is_connected(const struct end *end)
{
    return end->is_client && end->connection > 0 && (!end->is_in_background || end->connects > 0);
}

/*
 * Where descriptors are few, those of connections that have all they wanted are needed for others. If there is neither such a one nor a
 * descriptor, all may belong to connections that wait to be accepted, which takes a descriptor.
 */
static void make_room(const struct actor *actor)
{
    struct end *waiting = NULL;

    for (int i = 0; i < end_count; i++) {
        if (ends[i]->actor == actor && !ends[i]->is_given_up) {
            if (is_settled(ends[i])) {
                give_up(ends[i], actor);
                return;
            }
            waiting = is_connected(ends[i]) && !other_of(ends[i]) ? ends[i] : waiting;
        }
    }
    if (waiting && !descriptor_is_left()) {
        give_up(waiting, actor);
    }
}

static void await_rest(struct actor *actor)
{
    int64_t begin_ns = scheduler_now_ns();
    int64_t room_ns = begin_ns + simulated_second_ns;

    actor->nesting = nesting_max; /* callbacks begin nothing more */
    while (!is_over) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.02, true);
        if (scheduler_now_ns() > room_ns) {
            make_room(actor);
            room_ns = scheduler_now_ns() + simulated_second_ns / 4;
        }
        is_over |= done_count == plan.threads && all_are_settled();
        for (int i = 0; i < end_count && !is_over && scheduler_now_ns() - begin_ns > patience_ns; i++) {
            if (!is_settled(ends[i])) {
                scheduler_fail("connection %d of actor %d does not settle: %d connects, %u of %u bytes, %d ends", ends[i]->connection,
                               ends[i]->actor->number, ends[i]->connects, ends[i]->received,
                               other_of(ends[i]) ? other_of(ends[i])->sent : 0, ends[i]->ends);
            }
        }
    }
}

static void release_all(void)
{
    for (int i = 0; i < end_count; i++) {
        if (ends[i]->socket) {
            CFSocketInvalidate(ends[i]->socket);
            CFRelease(ends[i]->socket);
        }
        if (ends[i]->held != 0) {
            scheduler_fail("the context of connection %d is held %d times after its end", ends[i]->connection, ends[i]->held);
        }
        free(ends[i]);
    }
}

static void listen_at(struct actor *actor)
{
    CFSocketContext context = {.info = actor};
    CFDataRef address = address_of(first_port + actor->number);
    CFRunLoopSourceRef source;

    tables_spare(true);
    actor->listener = CFSocketCreate(NULL, PF_INET, SOCK_STREAM, 0, kCFSocketAcceptCallBack, accept_one, &context);
    if (!actor->listener || CFSocketSetAddress(actor->listener, address) != kCFSocketSuccess) {
        scheduler_fail("actor %d cannot listen", actor->number);
    }
    tables_spare(false);
    source = CFSocketCreateRunLoopSource(NULL, actor->listener, 0);
    CFRunLoopAddSource(actor->loop, source, kCFRunLoopDefaultMode);
    CFRelease(source);
    CFRelease(address);
}

static bool all_are_ready(void *unused)
{
    (void)unused;
    return ready_count == plan.threads;
}

static bool all_have_left(void *unused)
{
    (void)unused;
    return left_count == plan.threads;
}

static void act(void *info)
{
    struct actor *actor = info;

    actor->loop = image_loop();
    listen_at(actor);
    ready_count++;
    (void)scheduler_wait(all_are_ready, NULL, never_ns);
    for (int i = 0; i < plan.steps; i++) {
        do_something(actor);
    }
    done_count++;
    scheduler_note("waits for the rest");
    await_rest(actor);
    left_count++;
    (void)scheduler_wait(all_have_left, NULL, never_ns);
    CFSocketInvalidate(actor->listener);
    CFRelease(actor->listener);
    if (actor->number == 0) {
        release_all();
    }
}

void connections_start(int process)
{
    for (int i = 0; i < plan.threads; i++) {
        actors[i].number = i;
        (void)scheduler_spawn(process, act, &actors[i]);
    }
}
