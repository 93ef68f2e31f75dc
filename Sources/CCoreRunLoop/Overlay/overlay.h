/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that CoreRunLoopShims, and by it the Swift overlay, may know of this library beside the public headers and Support.
 *
 * Loops, modes, timers and ports are opaque here: the layouts behind these functions may change without a change outside this folder.
 * Everything may be called on any thread, unless its comment says otherwise, and takes the locks that it needs itself. Instants are
 * nanoseconds of CLOCK_BOOTTIME, which goes on while the system is suspended; deadlines are nanoseconds of CLOCK_MONOTONIC. INT64_MAX never
 * comes. Wall times are nanoseconds since 1970.
 */
#ifndef CRL_OVERLAY_OVERLAY_H
#define CRL_OVERLAY_OVERLAY_H

#include "Overlay/link_names.h"

#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFMessagePort.h"
#include "CoreFoundation/CFRunLoop.h"
#include "CoreFoundation/CFStream.h"
#include "Loop/Run/companion_calls.h"
#include "Port/Names/port_names.h"
#include "Runtime/Object/owner_class.h"

/* ---- loops ---- */

/* Returns whether the calling thread is the loop's. False for NULL. */
bool overlay_loop_is_current(CFRunLoopRef loop);

/* Returns whether something is in the loop, which has never run, neither by itself nor in a host's loop. */
bool overlay_waits_for_first_run(CFRunLoopRef loop);

/*
 * Returns whether a run of the loop in `mode` would find nothing to wait for. A mode that does not exist is empty (rule 25). On the loop's
 * own thread, its companion's items count as well.
 */
bool overlay_mode_is_empty(CFRunLoopRef loop, CFStringRef mode);

/* Returns whether `mode` is one of the loop's common modes. */
bool overlay_mode_is_common(CFRunLoopRef loop, CFStringRef mode);

/* Returns a reference to the name of the common mode with this index, the default mode first; NULL if there are fewer. */
CFStringRef overlay_copy_common_mode(CFRunLoopRef loop, CFIndex index);

/*
 * Runs the calling thread's loop like CFRunLoopRunInMode, but until a deadline. 0 makes one pass that does not sleep; INT64_MAX sets no
 * limit.
 */
CFRunLoopRunResult overlay_run_current_until(CFStringRef mode, int64_t deadline_ns, bool returns_after_source);

/* ---- the companion ---- */

/* Sets the loop that shares the waits of this library's loops, or ends the sharing with NULL. The structure stays. */
void overlay_set_companion(const struct companion *companion);

/* The calling thread has a companion from now on; with `is_main` the main thread. */
void overlay_companion_appears(bool is_main);

/* Returns the calling thread's loop if it has one already, or NULL. */
CFRunLoopRef overlay_loop_if_any(void);

/* Stops the innermost run of the loop. Returns false if no run is under way. */
bool overlay_stop_run(CFRunLoopRef loop);

/* ---- objects ---- */

/*
 * Leaves the reference count of a new object, which only its creator knows, to `owner`. Then neither outlives the other. One reference of
 * the object belongs to the owner itself and keeps nobody alive; the owner is retained for each other one.
 */
void overlay_give_to_owner(void *object, void *owner, const struct object_owner_class *owner_class);

/* Takes the count back when the owner's has come to 0. The owner's own reference is then an ordinary reference to the object. */
void overlay_take_from_owner(void *object);

/* ---- instants and wall times ---- */

int64_t overlay_monotonic_ns(void);
int64_t overlay_elapsed_ns(void);
int64_t overlay_wall_ns(void);

/* Returns the instant of a date; never earlier than now. Not-a-number never comes. */
int64_t overlay_instant_of_date(CFAbsoluteTime date);

/* Returns the instant of a wall time between 1970 and the latest date, OVERLAY_LATEST_DATE; never earlier than now. */
int64_t overlay_instant_of_wall(int64_t since_1970_ns);

CFAbsoluteTime overlay_date_of_instant(int64_t instant_ns);

/* Stores the wall time of an instant, as far as it can be foreseen. False for an instant that never comes. */
bool overlay_wall_of_instant(int64_t instant_ns, int64_t *ret_since_1970_ns);

/* The latest date, in seconds since 2001, to which later ones are clamped (rule 113). */
#define OVERLAY_LATEST_DATE 4039289856.0

/* ---- timers ---- */

/* When a timer fires next: its date as the program gave it, and the instant. */
struct overlay_timer_date {
    bool exists;
    CFAbsoluteTime date;
    int64_t instant_ns;
};

/* Returns the next date of a timer; during its callback, the date that has just fired. None for an invalid timer. */
struct overlay_timer_date overlay_timer_date(CFRunLoopTimerRef timer);

/* Returns the date of the timer of a mode that fires next. None for a mode without timers. */
struct overlay_timer_date overlay_next_timer_date(CFRunLoopRef loop, CFStringRef mode);

/* Returns the instant at which a timer fires next; during its callback, the instant that has just come. */
int64_t overlay_timer_instant(CFRunLoopTimerRef timer);

/* The timer fires when the wall clock shows its date, also if somebody sets the clock. Called before it is in a loop. */
void overlay_timer_follow_wall(CFRunLoopTimerRef timer);

/* Moves a timer to a date, whose instant is `instant_ns`. */
void overlay_timer_set_date(CFRunLoopTimerRef timer, CFAbsoluteTime date, int64_t instant_ns);

/* ---- message ports ---- */

/*
 * Creates data for one message or one reply, which takes over the object itself instead of copying it. The creator shows the data to nobody
 * else. NULL when there is no memory.
 */
CFDataRef overlay_data_to_give(const void *bytes, uint64_t length) CF_RETURNS_RETAINED;

/*
 * Makes the callbacks of a local port that begin from now on get `receiver` in the place of the context's info, until the port is invalid.
 * Takes over a reference to it; the context's `release` gives it back after the last callback that got it, or at once if the port is
 * already invalid. False, with nothing changed, when there is no memory.
 */
bool overlay_port_set_receiver(CFMessagePortRef port, void *receiver);

/* Why a request has no answer, beside the results of CFMessagePortSendRequest. */
enum overlay_status { overlay_answered = 0, overlay_unhandled = 1, overlay_malformed = 2, overlay_failed = 3 };

/*
 * CFMessagePortSendRequest with one deadline for the whole call; one that has passed makes one try. Without a `ret_status` no
 * reply is wanted. With a status, of enum overlay_status, `ret_reply` gets a text that says why there is no answer. A receiver with an
 * older library answers an unhandled message with an empty reply.
 */
int32_t overlay_port_send(CFMessagePortRef remote, int32_t number, CFDataRef data, int64_t deadline_ns, uint32_t *ret_status,
                          CFDataRef *ret_reply);

/*
 * As CFMessagePortSetInvalidationCallBack for a remote port, but no loop begins to watch for its owner's end: without a watch the call that
 * finds the end calls `callout`. A watch that there is stays.
 */
void overlay_port_set_invalidation_callback(CFMessagePortRef remote, CFMessagePortInvalidationCallBack callout);

/*
 * Makes messages of a local port go to `callout`, which must be set before the port has a source and then stays. It may say what comes of
 * the message, which is valid during the call.
 */
struct received_message;
typedef CFDataRef (*overlay_callout)(CFMessagePortRef port, int32_t number, CFDataRef data, void *info, struct received_message *message);
void overlay_port_set_callout(CFMessagePortRef port, overlay_callout callout);
/* What the callout returns is a text that says why there is no answer. */
void overlay_message_set_status(struct received_message *message, uint32_t status);

/* Returns the process that has sent the message, as the kernel says; 0 if it does not, as for other PID namespaces. */
pid_t overlay_message_process(const struct received_message *message);

/*
 * The reply comes later; what the callout returns is not sent. NULL if there is no memory. overlay_deferred_answer has to follow once, on
 * any thread, and gives the deferred reply up. `asker_left` is called once on any thread, perhaps at once, if nobody waits for the answer
 * any more; `release` gives the info back when neither can use it any more.
 */
struct deferred_reply;
struct deferred_reply *overlay_message_defer(struct received_message *message);
void overlay_deferred_watch(struct deferred_reply *deferred, void (*asker_left)(void *info), void *info, void (*release)(void *info));
/* When the asker waits no more; 0 if that is not known. */
int64_t overlay_deferred_deadline(const struct deferred_reply *deferred);
void overlay_deferred_answer(struct deferred_reply *deferred, uint32_t status, CFDataRef data);
/* Askers in other processes, and asynchronous ones, are noticed by this loop when they leave. False without memory or descriptors. */
bool overlay_port_listen_for_askers(CFMessagePortRef port, CFRunLoopRef loop);

/*
 * Requests that block nobody (Port/Async/async_request.h): the calling thread's loop serves them in its default mode. NULL if there is
 * no memory.
 */
struct async_requests;
struct async_requests *overlay_requests_create(void);
/* Ends all requests, on the thread of the loop. Nobody may send any more. */
void overlay_requests_destroy(struct async_requests *requests);
/* A result beside those of CFMessagePortSendRequest: the request was cancelled. */
enum { overlay_request_cancelled = 1 };
/*
 * Makes a request, which overlay_request_send hands over once; then `ended` is called once with its info, on the thread of the loop. The
 * caller has a reference of its own. NULL if there is no memory.
 */
struct async_request;
struct async_request *overlay_request_create(CFMessagePortRef remote, int32_t number, CFDataRef data, int64_t deadline_ns,
                                             void (*ended)(void *info, int32_t result, uint32_t status, CFDataRef reply));
void overlay_request_send(struct async_requests *requests, struct async_request *request, void *info);
/* Ends a request if it is not over. One that is not handed over yet ends when it is. Any thread. */
void overlay_request_cancel(struct async_request *request);
void overlay_request_release(struct async_request *request);

/* ---- streams ---- */

/*
 * As CFWriteStreamWrite, but never waits, and any thread may call it beside another that uses the stream. -EAGAIN: there is no room, of
 * which the client is told. -EBUSY: another thread uses the stream, or only CFWriteStreamWrite can tell. After a write that took all bytes,
 * the client is not told of room again.
 */
CFIndex overlay_stream_write_now(CFWriteStreamRef stream, const UInt8 *bytes, CFIndex size);

/* ---- clocks, for tests ---- */

/* Clocks in the place of the kernel's. The functions are called on any thread, and in signal handlers. */
struct overlay_clock {
    int64_t (*monotonic_ns)(void);
    int64_t (*elapsed_ns)(void);
    int64_t (*wall_ns)(void);
    /* The monotonic and the wall clock as of the kernel's last tick: the monotonic one is returned. */
    int64_t (*tick_ns)(int64_t *ret_wall_ns);
    /* Returns whether the calling thread's clocks are moved by hand. Its waits with a deadline then look again every millisecond. */
    bool (*is_by_hand)(void);
    /*
     * Returns whether a wait of the calling thread takes no time: it finds what is ready, or `skip_to` moves the clocks to its deadline.
     * Only asked where the clocks are moved by hand.
     */
    bool (*skips_waits)(void);
    void (*skip_to)(int64_t deadline_ns);
};

/*
 * Replaces the clocks of the whole process, once and for good, and stores the functions of the kernel's clocks in `ret_kernel`, whose
 * last three are NULL. The new functions are called only after the store. Threads with the kernel's clocks must see what they saw before.
 */
void overlay_replace_clock(const struct overlay_clock *clock, struct overlay_clock *ret_kernel);

/* Returns true if the calling thread's clocks are moved by hand. */
bool overlay_clock_is_by_hand(void);

#endif
