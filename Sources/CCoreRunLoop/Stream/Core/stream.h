/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream object: its fields, its lock, its status, and the calls that move bytes. A read and a write stream have the same structure.
 *
 * What a stream reads from or writes to is its kind: a table of functions, and a structure that begins with `struct stream`. The kinds are
 * in the rooms Kind and Connection, and in add-on libraries.
 *
 * The files of this room, each of which knows those before it: scheduled_modes keeps the modes, stream_client the client, stream_claim who
 * uses the kind; stream_queue and stream_carriers reach loops and queues; stream_events knows what is due; stream_schedule puts a stream
 * into loops or on a queue; stream moves it from status to status; stream_delivery tells the client; stream_object makes and ends streams.
 *
 * Threads: any. The item lock guards the fields, and no lock is held over a call of the kind. A thread claims the stream before it calls
 * the kind, so that the kind's own fields need no lock. A stream that is claimed refuses another claim; nobody waits for one.
 *
 * Always true: a stream that is closed has no source, owes no event, and is in no loop. Its kind is told to close once nobody has claimed
 * the stream any more and nothing watches its descriptor, and only if it was opened.
 */
#ifndef CRL_STREAM_STREAM_H
#define CRL_STREAM_STREAM_H

#include "Stream/link_names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFNumber.h"
#include "CoreFoundation/CFStream.h"
#include "Kernel/kernel.h"
#include "Runtime/Object/object.h"
#include "Stream/Core/scheduled_modes.h"
#include "Support/lock.h"

struct stream;
struct stream_client;
struct stream_link;
struct stream_queue;

/*
 * Tells the client the events that are due, and drops a reference. `ready` has bits of enum kernel_readiness. On the loop's thread, or on
 * one of the dispatch queue's.
 */
typedef void stream_deliver_function(struct stream *s, uint32_t ready);

/*
 * How often the program has read or written since a report of a lasting event was told. A loop fetches many reports at once: the next one
 * can be believed after one transfer, which the told report allowed, and is doubtful after more.
 */
enum stream_transfers { transfer_none, transfer_once, transfer_many };

enum stream_carrier_kind {
    carrier_none, /* the stream is nowhere, or in modes for which its source has not been made yet */
    carrier_signalled_source, /* performed when it is signalled; the stream is in loops, or was last */
    carrier_descriptor_source, /* watches a descriptor, and is posted */
    carrier_queue, /* watches the stream's descriptor, and is posted; the stream is in no loop */
};

/*
 * What carries the events to a thread: see stream_carriers.h. This is one value: whoever changes it takes the old one out and puts the new
 * one in under one hold of the lock. Only `kind` tells what is there.
 */
struct stream_carriers {
    enum stream_carrier_kind kind;
    int descriptor; /* that a source watches; else -1 */
    CFRunLoopSourceRef source; /* a reference, or NULL */
    struct stream_link *link; /* of the source, which owns it */
    struct stream_queue *queue; /* a reference, or NULL */
};

static const struct stream_carriers stream_carriers_none = {.kind = carrier_none, .descriptor = -1};

/* The events that hold as long as reading or writing does not wait. All others come once. */
enum { stream_events_lasting = kCFStreamEventHasBytesAvailable | kCFStreamEventCanAcceptBytes };

/*
 * The functions of a kind. Each is called without a lock, by the thread that has claimed the stream, but for `finalize`. A result below 0
 * is a negative errno. Any pointer may be NULL unless its comment says more.
 */
struct stream_kind {
    size_t size; /* of the structure that begins with struct stream */
    /* Returns 0, a negative errno, or -EINPROGRESS: finish_open then tells the outcome. NULL: finish_open does it all, if there is one. */
    int (*open)(struct stream *s);
    /* As `open`, which has returned -EINPROGRESS. Waits for the outcome if `waits`. Goes on with a handshake on an open stream as well. */
    int (*finish_open)(struct stream *s, bool waits);
    /* At least one byte, or 0 and `*ret_at_end`. May set `*ret_at_end` with the last bytes. Waits. For read streams only. */
    CFIndex (*read)(struct stream *s, UInt8 *bytes, CFIndex size, bool *ret_at_end);
    /* As `read`, without a copy: NULL if it cannot be done. */
    const UInt8 *(*lend)(struct stream *s, CFIndex most, CFIndex *ret_count, bool *ret_at_end);
    /* At least one byte, unless there are none to write. Waits. For write streams only. */
    CFIndex (*write)(struct stream *s, const UInt8 *bytes, CFIndex size);
    /* As `write`, without waiting: -EAGAIN if there is no room, -EBUSY if only `write` can tell. NULL: it always is. */
    CFIndex (*write_now)(struct stream *s, const UInt8 *bytes, CFIndex size);
    /*
     * The events among HasBytes, CanAccept and End that hold now. `ready` has bits of enum kernel_readiness, or is 0: then it asks itself.
     * NULL: the stream's is_ready tells.
     */
    int (*look)(struct stream *s, uint32_t ready);
    void (*forget)(struct stream *s); /* the last reference is gone; before anything is given back */
    void (*close)(struct stream *s); /* called once for a stream whose `open` was called, even if that failed */
    void (*finalize)(struct stream *s); /* gives back what the creation has taken */
    /* The stream has joined or left a mode. Not claimed: any thread. */
    void (*scheduled)(struct stream *s, CFRunLoopRef loop, CFStringRef mode);
    void (*unscheduled)(struct stream *s, CFRunLoopRef loop, CFStringRef mode);
    CFTypeRef (*copy_property)(struct stream *s, CFStringRef name);
    bool (*set_property)(struct stream *s, CFStringRef name, CFTypeRef value);
};

/* Fields without a guard are constant after creation or atomic, or, if the kind sets them, belong to the thread with the claim. */
struct stream {
    struct object object;
    const struct stream_kind *kind;
    stream_deliver_function *deliver;
    bool is_reader; /* else a write stream */
    CFStreamStatus status GUARDED_BY(the_item_lock); /* Reading and Writing are told by is_claimed; see stream_status */
    CFStreamError error GUARDED_BY(the_item_lock);
    bool is_claimed GUARDED_BY(the_item_lock);
    bool is_transferring GUARDED_BY(the_item_lock); /* claimed by a call that reads or writes */
    bool is_opened GUARDED_BY(the_item_lock); /* the kind was told to open, and has not been told to close */
    /* Of enum kernel_readiness: what opening, or later a handshake, waits for; 0: nothing. Set by the kind. */
    _Atomic uint32_t opening_interest;
    bool opens_at_end; /* set by the kind's `open`: there is nothing to read */
    uint8_t owed GUARDED_BY(the_item_lock); /* events that come once and have not been told yet */
    uint8_t told GUARDED_BY(the_item_lock); /* lasting events that were told, with no read or write since */
    /* transfer_once at first and after a lasting event that no report led to: a report may be left. transfer_many after a new file. */
    uint8_t transfers GUARDED_BY(the_item_lock);
    /* Reading, or writing, may not wait, and no report of a descriptor tells that: a kind without one, or bytes that TLS holds back. */
    atomic_bool is_ready;
    atomic_bool is_over; /* a look finds the end or an error, which is looked for whatever was told before */
    _Atomic int descriptor; /* what loops and queues wait for; -1: none, or none yet; written under the item lock */
    CFStreamError refusal; /* set by the kind, while claimed, if an error is no errno; domain 0: none */
    struct stream_client *client GUARDED_BY(the_item_lock); /* a reference, or NULL */
    struct stream_carriers carriers GUARDED_BY(the_item_lock);
    _Atomic uint32_t interest; /* of enum kernel_readiness, for carriers with a descriptor; written under the item lock */
    struct scheduled_modes modes GUARDED_BY(the_item_lock); /* that the stream is in */
    uint32_t deliveries GUARDED_BY(the_item_lock); /* under way; each has a reference */
    uint32_t departures GUARDED_BY(the_item_lock); /* how often the stream has left a mode; wraps */
    uint32_t withdrawals GUARDED_BY(the_item_lock); /* carriers that were taken out, and may watch the descriptor yet; see stream_claim.h */
    bool is_nudged GUARDED_BY(the_item_lock); /* opening may go on, and nobody has looked since */
};

ACQUIRES(the_item_lock) static inline void stream_lock(struct stream *s)
{
    lock_take(item_lock(s));
}

RELEASES(the_item_lock) static inline void stream_unlock(struct stream *s)
{
    lock_drop(item_lock(s));
}

extern const struct object_class stream_read_class;
extern const struct object_class stream_write_class;

static inline bool stream_is_reader(const struct stream *s)
{
    return s->is_reader;
}

/* The lasting event of the stream: bytes to read, or room to write. */
static inline uint8_t stream_lasting_event(const struct stream *s)
{
    return stream_is_reader(s) ? kCFStreamEventHasBytesAvailable : kCFStreamEventCanAcceptBytes;
}

/* Checks what always holds of a stream, in builds for tests. */
#if defined(CRL_TESTING)
REQUIRES(the_item_lock) void stream_check_invariants(const struct stream *s);
#else
#define stream_check_invariants(s) ((void)(s))
#endif

/* Returns a stream that is not open, or NULL if there is no memory. Its kind fills in its own fields, which are zero. */
struct stream *stream_create(CFAllocatorRef allocator, const struct stream_kind *kind, bool is_reader);

/* ---- the public calls, for both types ---- */

EXCLUDES(the_item_lock) CFStreamStatus stream_status(struct stream *s);
EXCLUDES(the_item_lock) CFStreamError stream_error(struct stream *s);
EXCLUDES(the_item_lock) bool stream_open(struct stream *s);
EXCLUDES(the_item_lock) void stream_close(struct stream *s);
/* Whether the lasting event of the stream holds. */
EXCLUDES(the_item_lock) bool stream_is_available(struct stream *s);
EXCLUDES(the_item_lock) CFIndex stream_read(struct stream *s, UInt8 *bytes, CFIndex size);
EXCLUDES(the_item_lock) const UInt8 *stream_lend(struct stream *s, CFIndex most, CFIndex *ret_count);
EXCLUDES(the_item_lock) CFIndex stream_write(struct stream *s, const UInt8 *bytes, CFIndex size);
/*
 * As stream_write, but never waits. -EAGAIN: there is no room; the client is told of it. -EBUSY: nothing was done, as the stream is
 * claimed, or is not open, or its kind cannot. -1: it has failed. After a write that took all bytes, the client is not told of room again.
 */
EXCLUDES(the_item_lock) CFIndex stream_write_now(struct stream *s, const UInt8 *bytes, CFIndex size);
EXCLUDES(the_item_lock) CFTypeRef stream_copy_property(struct stream *s, CFStringRef name);
EXCLUDES(the_item_lock) bool stream_set_property(struct stream *s, CFStringRef name, CFTypeRef value);

/* ---- for stream_delivery ---- */

/* Asks whether a stream that is opening is open by now. */
EXCLUDES(the_item_lock) void stream_go_on_opening(struct stream *s);
/* Asks which events hold; the stream ends or fails if the kind says so. Returns the lasting event if that holds. 0 if it is claimed. */
EXCLUDES(the_item_lock) uint8_t stream_look(struct stream *s, uint32_t ready);

#endif
