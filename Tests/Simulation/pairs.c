/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random program of several threads, each with a loop, that move bytes through CFReadStream and CFWriteStream.
 *
 * Bytes follow from their place. Readers are slow, writes are taken in part, streams are closed, released or shut for writing at any time,
 * by their own thread, also in their callbacks, and by others; they leave their loops and come back. Each event is checked where it comes.
 * In the end all loops run until each reader that is left has all bytes that were written to it, and was told of an end or an error if the
 * writer has gone.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "CFNetwork/CFNetwork.h"
#include "files.h"
#include "image.h"
#include "names.h"
#include "plan.h"
#include "scheduler.h"
#include "tables.h"

enum { actors_max = 4, sides_max = 256, chunk_max = 500, bound_size_max = 300, first_port = 1000, nesting_max = 3 };
enum {
    event_open = kCFStreamEventOpenCompleted,
    event_bytes = kCFStreamEventHasBytesAvailable,
    event_room = kCFStreamEventCanAcceptBytes,
    event_error = kCFStreamEventErrorOccurred,
    event_end = kCFStreamEventEndEncountered,
    events_all = 31,
};

static const int64_t patience_ns = INT64_C(100) * 1000000000;

struct actor {
    int number;
    CFRunLoopRef loop;
    CFSocketRef listener;
    int nesting;
};

/* A stream of a side. Its own thread is the one whose loop it is scheduled on. */
struct tap {
    struct side *side;
    struct actor *actor;
    CFTypeRef stream; /* a reference; NULL: none was made, or it was released */
    CFRunLoopMode mode;
    int users; /* calls under way on other threads than its own */
    bool is_reader;
    bool is_shared; /* others read or write as well, so that a callback has to ask first */
    bool is_hidden; /* its own thread has taken it out of its loop */
    bool is_closing; /* somebody has begun to close or release it */
    bool is_closed; /* its own thread has */
    bool is_busy; /* a thread reads or writes */
    CFOptionFlags once; /* events that have come, of those that come once */
    CFOptionFlags lasting; /* bytes or room, told since the last call that reads or writes */
    bool is_due; /* as `lasting`, but cleared before such a call: the event may come again before another thread returns from it */
    int held; /* references of the client's info */
};

/* One end of a connection, or both ends of a bound pair. */
struct side {
    int connection; /* the same at the other end; 0: not known, or a bound pair */
    bool is_bound, is_client;
    bool is_shut; /* for writing */
    struct tap reader, writer;
    uint32_t begun, sent; /* by its writer; `begun` is more than `sent` during a call */
    uint32_t received; /* by its reader */
    uint32_t asked; /* the size of a read that is under way */
};

static struct actor actors[actors_max];
static struct side *sides[sides_max];
static int side_count, ready_count, done_count, left_count;
static bool is_over; /* for all at once: what one still did would be another's to settle */

static uint64_t any(uint64_t below)
{
    return scheduler_random(random_work, below);
}

static bool by_chance(uint64_t one_in)
{
    return any(one_in) == 0;
}

/* ---- sides ---- */

static struct side *other_of(struct side *side)
{
    if (side->is_bound) {
        return side;
    }
    for (int i = 0; side->connection > 0 && i < side_count; i++) {
        if (sides[i] != side && sides[i]->connection == side->connection) {
            return sides[i];
        }
    }
    return NULL;
}

static bool is_sent_by_client(const struct side *reading)
{
    return reading->is_bound || !reading->is_client;
}

static UInt8 byte_at(int connection, bool is_of_client, uint32_t place)
{
    return (UInt8)((unsigned)connection * 31 + (is_of_client ? 7 : 0) + place + place / 251);
}

/* Both streams of a socket's side are closed, or are being closed: the other side loses its connection. */
static bool has_gone(const struct side *side)
{
    return side->reader.is_closing && side->writer.is_closing;
}

static bool ends_writing(const struct side *side)
{
    return side->is_bound ? side->writer.is_closing : side->is_shut || has_gone(side);
}

/* ---- calls on a stream of either type ---- */

static CFReadStreamRef reader_of(const struct tap *tap)
{
    return (CFReadStreamRef)(uintptr_t)tap->stream;
}

static CFWriteStreamRef writer_of(const struct tap *tap)
{
    return (CFWriteStreamRef)(uintptr_t)tap->stream;
}

static const char *name_of(const struct tap *tap)
{
    return tap->is_reader ? "reader" : "writer";
}

static bool is_usable(const struct tap *tap)
{
    return tap->stream && !tap->is_closing;
}

/* The number of the socket behind a stream, or -1. Asking takes the stream for itself, as reading does. */
static int native_of(struct tap *tap)
{
    CFDataRef data;
    int descriptor = -1;

    if (tap->is_busy || !tap->stream) {
        return -1;
    }
    tap->is_busy = true;
    tap->users++;
    data = tap->is_reader ? CFReadStreamCopyProperty(reader_of(tap), kCFStreamPropertySocketNativeHandle)
                          : CFWriteStreamCopyProperty(writer_of(tap), kCFStreamPropertySocketNativeHandle);
    tap->users--;
    tap->is_busy = false;
    if (data) {
        memcpy(&descriptor, CFDataGetBytePtr(data), sizeof descriptor);
        CFRelease(data);
    }
    return descriptor;
}

static void learn_connection(struct tap *tap)
{
    if (!tap->side->is_bound && tap->side->connection == 0) {
        int native = native_of(tap);

        tap->side->connection = native < 0 ? 0 : stream_connection(native);
    }
}

static bool is_known(const struct side *side)
{
    return side->is_bound || side->connection > 0;
}

static void schedule(struct tap *tap)
{
    scheduler_trace("the %s of connection %d joins its loop", name_of(tap), tap->side->connection);
    tap->is_hidden = false;
    if (tap->is_reader) {
        CFReadStreamScheduleWithRunLoop(reader_of(tap), tap->actor->loop, tap->mode);
    } else {
        CFWriteStreamScheduleWithRunLoop(writer_of(tap), tap->actor->loop, tap->mode);
    }
}

static void hide(struct tap *tap)
{
    if (tap->is_reader) {
        CFReadStreamUnscheduleFromRunLoop(reader_of(tap), tap->actor->loop, tap->mode);
    } else {
        CFWriteStreamUnscheduleFromRunLoop(writer_of(tap), tap->actor->loop, tap->mode);
    }
    tap->is_hidden = true;
    scheduler_trace("the %s of connection %d leaves its loop", name_of(tap), tap->side->connection);
}

static void give_up(struct tap *tap, const struct actor *by)
{
    const struct side *side = tap->side;
    bool is_own = tap->actor == by;
    /* Only then no other thread is telling it of a change of its pair: it would have a reference meanwhile. */
    bool may_release = is_own && side->reader.actor == side->writer.actor && side->reader.users + side->writer.users == 0;

    scheduler_trace("actor %d closes the %s of connection %d", by->number, name_of(tap), tap->side->connection);
    tap->is_closing = true;
    if (may_release && by_chance(3)) {
        CFTypeRef stream = tap->stream;

        tap->stream = NULL;
        tap->is_closed = true;
        CFRelease(stream); /* the last release closes as well */
        return;
    }
    tap->users++;
    if (tap->is_reader) {
        CFReadStreamClose(reader_of(tap));
    } else {
        CFWriteStreamClose(writer_of(tap));
    }
    tap->users--;
    tap->is_closed |= is_own;
}

/* ---- what may be told ---- */

static void check_failure(struct tap *tap)
{
    struct side *other = other_of(tap->side);
    bool was_open = tap->once & event_open;

    if (tap->side->is_bound) {
        if (tap->is_reader || !tap->side->reader.is_closing) {
            scheduler_fail("the %s of a bound pair fails", name_of(tap));
        }
    } else if (was_open && other && !has_gone(other) && !(tap->side->is_shut && !tap->is_reader) && tables_resource_faults() == 0) {
        scheduler_fail("the %s of connection %d fails without a reason", name_of(tap), tap->side->connection);
    }
}

/* A read that is under way on another thread may have taken the last bytes: the end is told before that thread has them. */
static void check_end(struct tap *tap)
{
    struct side *side = tap->side;
    struct side *other = other_of(side);
    int native;

    if (!tap->is_reader || !other) {
        return; /* who has not been told its number yet, has gone without a byte */
    }
    if (!ends_writing(other) || side->received + side->asked < other->sent || side->received > other->begun) {
        scheduler_fail("connection %d ends with %u of %u bytes", side->connection, side->received, other->sent);
    }
    native = side->is_bound ? -1 : native_of(tap);
    if (native >= 0 && !tap->is_closing && stream_was_torn(native)) {
        scheduler_fail("connection %d was torn off, and looks like an end", side->connection);
    }
}

static void check_event(struct tap *tap, CFOptionFlags type)
{
    bool is_lasting = type == event_bytes || type == event_room;

    if (CFRunLoopGetCurrent() != tap->actor->loop || tap->is_closed || tap->is_hidden) {
        scheduler_fail("event %lu of the %s of connection %d: %s", type, name_of(tap), tap->side->connection,
                       tap->is_closed ? "it is closed" : tap->is_hidden ? "it is in no loop" : "on another's thread");
    }
    if ((tap->once & type) || (tap->once & (event_error | event_end)) || (type != event_open && type != event_error && !tap->once)) {
        scheduler_fail("event %lu of connection %d behind the events %lu", type, tap->side->connection, tap->once);
    }
    if (is_lasting && (tap->lasting & type) && !tap->is_shared) { /* another thread may come between the event and its callback */
        scheduler_fail("event %lu of connection %d is told twice", type, tap->side->connection);
    }
    if (is_lasting) {
        tap->lasting |= type;
        tap->is_due = true;
        return;
    }
    tap->once |= type;
    if (type == event_error) {
        check_failure(tap);
    } else if (type == event_end) {
        check_end(tap);
    }
}

/* ---- bytes ---- */

static void check_bytes(struct side *side, const UInt8 *bytes, CFIndex count)
{
    const struct side *other = other_of(side);

    for (CFIndex i = 0; i < count; i++) {
        if (bytes[i] != byte_at(side->connection, is_sent_by_client(side), side->received++)) {
            scheduler_fail("byte %u of connection %d is wrong", side->received - 1, side->connection);
        }
    }
    if (other && side->received > other->begun) {
        scheduler_fail("connection %d has %u bytes of %u", side->connection, side->received, other->begun);
    }
}

/* A call is refused while another thread uses the stream, if only to look whether there is something to tell. */
static bool was_refused(struct tap *tap, CFIndex count)
{
    CFStreamStatus status = kCFStreamStatusNotOpen;

    if (count < 0 && !tap->is_closing) {
        status = tap->is_reader ? CFReadStreamGetStatus(reader_of(tap)) : CFWriteStreamGetStatus(writer_of(tap));
    }
    tap->is_due |= status == kCFStreamStatusOpen;
    if (status == kCFStreamStatusOpen && !tap->is_shared && !tap->is_closing) {
        scheduler_fail("the %s of connection %d refuses a call", name_of(tap), tap->side->connection);
    }
    return status == kCFStreamStatusOpen;
}

static void read_once(struct tap *tap)
{
    UInt8 bytes[chunk_max];
    CFIndex size = 1 + (CFIndex)any(chunk_max);
    CFIndex count;

    tap->is_due = false;
    tap->side->asked = (uint32_t)size;
    count = CFReadStreamRead(reader_of(tap), bytes, size);
    tap->side->asked = 0;
    check_bytes(tap->side, bytes, count);
    if (!was_refused(tap, count)) {
        tap->lasting = 0;
    }
    if (count == 0) {
        check_end(tap);
    }
}

static void write_once(struct tap *tap)
{
    struct side *side = tap->side;
    UInt8 bytes[chunk_max];
    CFIndex size = 1 + (CFIndex)any(chunk_max);
    CFIndex count;

    for (CFIndex i = 0; i < size; i++) {
        bytes[i] = byte_at(side->connection, side->is_bound || side->is_client, side->sent + (uint32_t)i);
    }
    side->begun = side->sent + (uint32_t)size;
    tap->is_due = false;
    count = CFWriteStreamWrite(writer_of(tap), bytes, size);
    if (count == 0 || count > size) {
        scheduler_fail("a write of %ld bytes took %ld", size, count);
    }
    side->sent += count > 0 ? (uint32_t)count : 0;
    side->begun = side->sent;
    if (!was_refused(tap, count)) {
        tap->lasting = 0;
    }
}

/* Reads or writes once. `asks`: only if that does not wait. */
static void move_some(struct tap *tap, bool asks)
{
    learn_connection(tap);
    if (tap->is_busy || !is_usable(tap) || !is_known(tap->side) || (!tap->is_reader && tap->side->is_shut)) {
        return;
    }
    tap->is_busy = true;
    tap->users++;
    if (tap->is_reader && (!asks || CFReadStreamHasBytesAvailable(reader_of(tap)))) {
        read_once(tap);
    } else if (!tap->is_reader && (!asks || CFWriteStreamCanAcceptBytes(writer_of(tap)))) {
        write_once(tap);
    }
    tap->users--;
    tap->is_busy = false;
}

/* What was sent still arrives; then the other side is told of an end. */
static void shut(struct side *side)
{
    int native = side->is_bound ? -1 : native_of(&side->writer);

    if (native >= 0 && !side->writer.is_busy && is_usable(&side->reader) && is_usable(&side->writer)) {
        side->is_shut = true;
        stream_shut(native);
        scheduler_trace("connection %d is shut for writing", side->connection);
    }
}

/* ---- callbacks ---- */

static void do_something(struct actor *actor);

/* A callback may do what it likes, on its own thread's loop. */
static void misbehave(struct tap *tap)
{
    struct actor *actor = tap->actor;

    if (by_chance(12) && is_usable(tap)) {
        give_up(tap, actor);
    } else if (by_chance(8) && is_usable(tap)) {
        hide(tap);
    }
    if (actor->nesting < nesting_max && by_chance(6)) {
        actor->nesting++;
        do_something(actor);
        actor->nesting--;
    }
}

static void event(struct tap *tap, CFOptionFlags type)
{
    bool is_slow = tap->actor->nesting < nesting_max && by_chance(3);

    learn_connection(tap);
    scheduler_trace("event %lu of the %s of connection %d", type, name_of(tap), tap->side->connection);
    check_event(tap, type);
    if ((type == event_bytes && !is_slow) || (type == event_room && is_slow)) {
        move_some(tap, tap->is_shared);
    }
    if (tap->actor->nesting < nesting_max) {
        misbehave(tap);
    }
}

static void reader_event(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    (void)stream;
    event(info, type);
}

static void writer_event(CFWriteStreamRef stream, CFStreamEventType type, void *info)
{
    (void)stream;
    event(info, type);
}

static void *hold(void *info)
{
    ((struct tap *)info)->held++;
    return info;
}

static void let_go(void *info)
{
    ((struct tap *)info)->held--;
}

/* ---- making them ---- */

static struct side *make_side(struct actor *actor)
{
    struct side *side = calloc(1, sizeof *side);

    if (!side) {
        scheduler_fail("the simulation has no memory");
    }
    side->reader = (struct tap){.side = side, .actor = actor, .is_reader = true};
    side->writer = (struct tap){.side = side, .actor = by_chance(4) ? &actors[any((uint64_t)plan.threads)] : actor};
    return side;
}

static void watch(struct tap *tap)
{
    CFStreamClientContext context = {.info = tap, .retain = hold, .release = let_go};

    tap->is_shared = by_chance(4);
    tap->mode = by_chance(2) ? kCFRunLoopDefaultMode : kCFRunLoopCommonModes;
    if (tap->is_reader) {
        (void)CFReadStreamSetClient(reader_of(tap), events_all, reader_event, &context);
    } else {
        (void)CFWriteStreamSetClient(writer_of(tap), events_all, writer_event, &context);
    }
}

static void open_stream(struct tap *tap)
{
    if (tap->is_reader) {
        (void)CFReadStreamOpen(reader_of(tap));
    } else {
        (void)CFWriteStreamOpen(writer_of(tap));
    }
}

/* Opens the streams of a side, each scheduled before or after that. Others may use them then. */
static void begin(struct side *side, CFReadStreamRef reader, CFWriteStreamRef writer)
{
    struct tap *taps[2] = {&side->reader, &side->writer};
    int first = (int)any(2);

    side->reader.stream = reader;
    side->writer.stream = writer;
    if (!reader || !writer || side_count == sides_max) {
        scheduler_fail("a pair cannot be made");
    }
    side->reader.users++;
    side->writer.users++;
    for (int i = 0; i < 2; i++) {
        struct tap *tap = taps[i ^ first];
        bool is_early = by_chance(2);

        watch(tap);
        if (is_early) {
            schedule(tap);
        }
        open_stream(tap);
        learn_connection(tap);
        if (!is_early) {
            schedule(tap);
        }
    }
    side->reader.users--;
    side->writer.users--;
    sides[side_count++] = side;
}

static void accept_one(CFSocketRef listener, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    CFSocketNativeHandle native = *(const CFSocketNativeHandle *)data;
    struct side *side = make_side(info);
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    (void)listener, (void)type, (void)address;
    side->connection = stream_connection(native);
    CFStreamCreatePairWithSocket(NULL, native, &reader, &writer);
    (void)CFReadStreamSetProperty(reader, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue);
    begin(side, reader, writer);
}

static void limit(CFReadStreamRef reader, double seconds)
{
    CFNumberRef number = CFNumberCreate(NULL, kCFNumberDoubleType, &seconds);

    (void)CFReadStreamSetProperty(reader, kCRLStreamPropertyOpeningTimeout, number);
    CFRelease(number);
}

static void connect_to(struct actor *actor, UInt32 port)
{
    struct side *side = make_side(actor);
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    side->is_client = true;
    CFStreamCreatePairWithSocketToHost(NULL, by_chance(2) ? CFSTR("127.0.0.1") : CFSTR("host.example"), port, &reader, &writer);
    if (by_chance(3)) {
        limit(reader, (double)any(10000) / 1e3);
    }
    begin(side, reader, writer);
    scheduler_trace("actor %d connects to %u: connection %d", actor->number, (unsigned)port, side->connection);
}

static void bind_pair(struct actor *actor)
{
    struct side *side = make_side(actor);
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    side->is_bound = true;
    CFStreamCreateBoundPair(NULL, &reader, &writer, 1 + (CFIndex)any(bound_size_max));
    begin(side, reader, writer);
}

/* ---- what an actor does ---- */

static struct tap *some_tap(void)
{
    struct side *side = side_count > 0 ? sides[any((uint64_t)side_count)] : NULL;
    struct tap *tap = side && by_chance(2) ? &side->reader : side ? &side->writer : NULL;

    return tap && is_usable(tap) ? tap : NULL;
}

static void use(struct actor *actor, struct tap *tap)
{
    bool is_own = tap->actor == actor;
    uint64_t choice = any(12);

    if (choice < 8 && (is_own || tap->is_shared)) {
        move_some(tap, true);
    } else if (choice == 8) {
        give_up(tap, actor);
    } else if (choice == 9 && (is_own || tap->is_shared)) {
        shut(tap->side);
    } else if (is_own && tap->is_hidden) {
        schedule(tap);
    } else if (is_own) {
        hide(tap);
    }
}

static void do_something(struct actor *actor)
{
    struct tap *tap = some_tap();
    uint64_t choice = any(10);

    if (choice == 0) {
        connect_to(actor, first_port + (UInt32)any((uint64_t)plan.threads + (by_chance(4) ? 1 : 0)));
    } else if (choice == 1) {
        bind_pair(actor);
    } else if (choice < 7 && tap) {
        use(actor, tap);
    } else {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, (double)any(4000) / 1e6, by_chance(2));
    }
}

/* ---- the end ---- */

static bool reader_is_settled(struct side *side)
{
    const struct tap *tap = &side->reader;
    struct side *other = other_of(side);

    if (tap->is_closing || (tap->once & (event_error | event_end))) {
        return !(tap->once & event_end) || tap->is_closing || !other || side->received == other->sent;
    }
    return other && (tap->once & event_open) && side->received == other->sent && !ends_writing(other);
}

/* What is sent to it may stay where it is, and leave no room: a reader that has failed reads no more, closed or not. */
static bool reads_no_more(const struct tap *tap)
{
    return tap->is_closing || (tap->once & event_error);
}

/* It is open, and was told that there is room where there is. */
static bool writer_is_settled(struct side *side)
{
    const struct tap *tap = &side->writer;
    const struct side *other = other_of(side);

    if (tap->is_closing || (tap->once & event_error)) {
        return true;
    }
    if (!other && !side->is_client && (reads_no_more(&side->reader) || (side->reader.once & event_end))) {
        return true; /* its client has lost a race, or gave up before it knew the connection */
    }
    return other && (tap->once & event_open) && (tap->is_due || reads_no_more(&other->reader) || side->is_shut);
}

static bool is_settled(struct side *side)
{
    return reader_is_settled(side) && writer_is_settled(side);
}

static bool all_are_settled(void)
{
    for (int i = 0; i < side_count; i++) {
        if (!is_settled(sides[i])) {
            return false;
        }
    }
    return true;
}

/*
 * Where descriptors are few, those of connections that have all they wanted are needed for others. If there is neither such a one nor a
 * descriptor, all may belong to connections that wait to be accepted, which takes a descriptor.
 */
static void make_room(const struct actor *actor)
{
    struct side *chosen = NULL;

    for (int i = 0; i < side_count && !chosen; i++) {
        if (!sides[i]->is_bound && !has_gone(sides[i]) && is_settled(sides[i])) {
            chosen = sides[i];
        }
    }
    for (int i = 0; i < side_count && !chosen && !descriptor_is_left(); i++) {
        chosen = !has_gone(sides[i]) && !other_of(sides[i]) ? sides[i] : NULL;
    }
    if (chosen && !chosen->reader.is_closing) {
        give_up(&chosen->reader, actor);
    }
    if (chosen && !chosen->writer.is_closing) {
        give_up(&chosen->writer, actor);
    }
}

/* Has a tap of this actor tell all it has to: in its loop, with nothing told that was not read. */
static void catch_up(struct actor *actor, struct tap *tap)
{
    if (tap->actor != actor || !is_usable(tap)) {
        return;
    }
    if (tap->is_hidden) {
        schedule(tap);
    }
    if (tap->is_reader && tap->is_due) {
        move_some(tap, tap->is_shared);
    }
}

static void complain(struct side *side)
{
    const struct side *other = other_of(side);

    if (!is_settled(side)) {
        scheduler_fail("connection %d does not settle: %u of %u bytes; the reader of actor %d was told %lu and %lu, the writer of %d "
                       "%lu and %lu%s%s",
                       side->connection, side->received, other ? other->sent : 0, side->reader.actor->number, side->reader.once,
                       side->reader.lasting, side->writer.actor->number, side->writer.once, side->writer.lasting,
                       side->is_bound ? "; a bound pair" : "", other ? "" : "; there is no other side");
    }
}

static void await_rest(struct actor *actor)
{
    int64_t begin_ns = scheduler_now_ns();
    int64_t room_ns = begin_ns + simulated_second_ns;

    actor->nesting = nesting_max; /* callbacks begin nothing more */
    while (!is_over) {
        for (int i = 0; i < side_count; i++) {
            catch_up(actor, &sides[i]->reader);
            catch_up(actor, &sides[i]->writer);
        }
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.02, true);
        if (scheduler_now_ns() > room_ns) {
            make_room(actor);
            room_ns = scheduler_now_ns() + simulated_second_ns / 4;
        }
        is_over |= done_count == plan.threads && all_are_settled();
        for (int i = 0; i < side_count && !is_over && scheduler_now_ns() - begin_ns > patience_ns; i++) {
            complain(sides[i]);
        }
    }
}

static void release_tap(struct tap *tap)
{
    if (tap->stream) {
        CFRelease(tap->stream);
    }
    if (tap->held != 0) {
        scheduler_fail("the client of a %s of connection %d is held %d times after its end", name_of(tap), tap->side->connection,
                       tap->held);
    }
}

static void release_all(void)
{
    for (int i = 0; i < side_count; i++) {
        release_tap(&sides[i]->reader);
        release_tap(&sides[i]->writer);
        free(sides[i]);
    }
}

static void listen_at(struct actor *actor)
{
    struct sockaddr_in internet = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CFSocketContext context = {.info = actor};
    CFRunLoopSourceRef source;
    CFDataRef address;

    internet.sin_port = htons((uint16_t)(first_port + actor->number));
    address = CFDataCreate(NULL, (const UInt8 *)&internet, sizeof internet);
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

void pairs_start(int process)
{
    names_install((struct names_terms){first_port, plan.threads});
    for (int i = 0; i < plan.threads; i++) {
        actors[i].number = i;
        (void)scheduler_spawn(process, act, &actors[i]);
    }
}
