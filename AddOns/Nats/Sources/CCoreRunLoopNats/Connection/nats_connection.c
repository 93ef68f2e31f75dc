/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a server; see nats_connection.h.
 *
 * cnats calls back on its own threads, and its calls that connect and close wait for the server. So each attempt to connect, and each
 * close, runs on a short-lived thread. These threads note events, under the_pending_events_lock, which the loop's thread handles. All other
 * state that changes belongs to the loop's thread. A thread that connects, and a connection of cnats that is not closed yet, have a
 * reference; the last one frees the memory. An attempt to connect begins only while there is no connection of cnats.
 *
 * cnats connects again, in silence, after a connection that has lived for live_s. One that ends earlier is given up: cnats would ask such a
 * server again at once, as it counts no attempts that succeed. Waits grow until a connection has lived. After the second early end, a new
 * connection counts as up only once it has settled, so that a server that ends each one is told as one that cannot be reached.
 */
#include "Connection/nats_connection_parts.h"

#include <bsd/stdlib.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"
#include "Connection/loop_adapter.h"

enum { connect_timeout_ms = 5000, ping_interval_ms = 2000, pings_out_max = 2, wait_first_ms = 50, wait_last_ms = 5000 };
enum { early_ends_told = 2 };

static const double settle_s = 1;
static const double live_s = (double)wait_last_ms / 1000; /* so connections that live are no more frequent than the longest wait */
static const double never_s = 1e9;

/* ---- life ---- */

static _Atomic int connections_alive;

int nats_connections_left(void)
{
    return atomic_load(&connections_alive);
}

static void release_connection(struct nats_connection *connection)
{
    int before = atomic_fetch_sub(&connection->references, 1);

    invariant(before > 0);
    if (before == 1) {
        invariant(!connection->nats && !connection->subscriptions && connection->visits == 0);
        natsOptions_Destroy(connection->options);
        if (connection->adapter) {
            loop_adapter_release(connection->adapter);
        }
        if (connection->source) {
            CFRelease(connection->source);
        }
        CFRelease(connection->loop);
        (void)pthread_mutex_destroy(&connection->lock);
        free(connection->scratch);
        free(connection);
        (void)atomic_fetch_sub(&connections_alive, 1);
    }
}

static struct nats_connection *retain_connection(struct nats_connection *connection)
{
    int before = atomic_fetch_add(&connection->references, 1);

    invariant(before > 0);
    return connection;
}

/* ---- threads ---- */

static bool is_loops_thread(const struct nats_connection *connection)
{
    return CFRunLoopGetCurrent() == connection->loop;
}

static bool start_thread(void *(*body)(void *info), void *info)
{
    pthread_attr_t attributes;
    pthread_t thread;
    bool result;

    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    result = pthread_create(&thread, &attributes, body, info) == 0;
    (void)pthread_attr_destroy(&attributes);
    return result;
}

static void *close_thread(void *info)
{
    natsConnection_Destroy(info);
    nats_ReleaseThreadMemory();
    return NULL;
}

static void close_in_background(natsConnection *nats)
{
    if (nats && !start_thread(close_thread, nats)) {
        natsConnection_Destroy(nats);
    }
}

/* ---- events: from cnats's threads to the loop's ---- */

/* clang does not know a pthread mutex (NOT_CHECKED), here and in the next. */
ACQUIRES(the_pending_events_lock) NOT_CHECKED static void lock_events(struct nats_connection *connection)
{
    (void)pthread_mutex_lock(&connection->lock);
}

RELEASES(the_pending_events_lock) NOT_CHECKED static void unlock_events(struct nats_connection *connection)
{
    (void)pthread_mutex_unlock(&connection->lock);
}

static void signal_loop(struct nats_connection *connection)
{
    CFRunLoopSourceSignal(connection->source);
    CFRunLoopWakeUp(connection->loop);
}

/* The status is good if this file closed the connection. */
REQUIRES(the_pending_events_lock) static void note_reason(struct pending_events *events, natsStatus status, const char *text)
{
    text = status == NATS_OK ? "the connection has ended early, or there is no memory for it" : text;
    events->is_refusal = status == NATS_CONNECTION_AUTH_FAILED || status == NATS_NOT_PERMITTED;
    (void)snprintf(events->reason, sizeof events->reason, "%s", text && *text ? text : natsStatus_GetText(status));
}

/*
 * Notes an event for the loop's thread; `nats` is of event_connected, status and text are of the events that have a reason. It needs no
 * memory, so that no event is lost. An event that happens twice before the loop's thread handles it is handled once.
 */
REQUIRES(the_pending_events_lock)
static void record_event(struct pending_events *events, enum cnats_event event, natsConnection *nats, natsStatus status, const char *text)
{
    events->bits |= 1U << event;
    if (event == event_connected) {
        events->nats = nats;
    } else if (event == event_lost) {
        events->bits &= ~(1U << event_regained);
    } else if (event == event_failed || event == event_closed) {
        note_reason(events, status, text);
    } else if (event == event_complaint) {
        (void)snprintf(events->complaint, sizeof events->complaint, "%s", text && *text ? text : natsStatus_GetText(status));
    }
}

/* Any thread. After the connection's end nothing is noted, and `nats` is closed. */
EXCLUDES(the_pending_events_lock)
static void note_event(struct nats_connection *connection, enum cnats_event event, natsConnection *nats, natsStatus status,
                       const char *text)
{
    bool has_ended;

    invariant((event == event_connected) == (nats != NULL));
    lock_events(connection);
    has_ended = connection->has_ended;
    if (!has_ended) {
        record_event(&connection->pending, event, nats, status, text);
    }
    unlock_events(connection);
    if (has_ended) {
        close_in_background(nats);
    } else {
        signal_loop(connection);
    }
}

/*
 * Takes the pending event that is handled first. Before event_connected is handled, only it, complaints and the events that end the attempt
 * are taken.
 */
EXCLUDES(the_pending_events_lock)
static bool take_event(struct nats_connection *connection, enum cnats_event *ret_event, struct pending_events *ret_events)
{
    unsigned known = connection->nats ? ~0U : 1U << event_connected | 1U << event_complaint | 1U << event_closed | 1U << event_failed;
    bool result;

    lock_events(connection);
    result = (connection->pending.bits & known) != 0;
    if (result) {
        *ret_event = (enum cnats_event)__builtin_ctz(connection->pending.bits & known);
        *ret_events = connection->pending;
        connection->pending.bits &= ~(1U << *ret_event);
        if (*ret_event == event_closed) {
            connection->pending.bits &= ~(1U << event_lost | 1U << event_regained);
        }
    }
    unlock_events(connection);
    return result;
}

static void on_disconnected(natsConnection *nats, void *info)
{
    (void)nats;
    note_event(info, event_lost, NULL, NATS_OK, NULL);
}

static void on_reconnected(natsConnection *nats, void *info)
{
    struct nats_connection *connection = info;

    (void)nats;
    atomic_store(&connection->is_young, true);
    note_event(connection, event_regained, NULL, NATS_OK, NULL);
}

static void on_closed(natsConnection *nats, void *info)
{
    const char *text = NULL;
    natsStatus status = natsConnection_GetLastError(nats, &text);

    note_event(info, event_closed, NULL, status, text);
    release_connection(info); /* this is cnats's last call; the reference is that of connect_thread */
}

static void on_complaint(natsConnection *nats, natsSubscription *subscription, natsStatus status, void *info)
{
    const char *text = NULL;

    (void)subscription;
    (void)natsConnection_GetLastError(nats, &text);
    note_event(info, event_complaint, NULL, status, text);
}

/* Twice as long after each try, and partly random, so that the clients of a server do not all reconnect at once. */
static int64_t backoff_ms(int tries)
{
    int64_t most = wait_last_ms;

    if (tries < 7) {
        most = (int64_t)wait_first_ms << tries;
    }
    return most / 2 + (int64_t)arc4random_uniform((uint32_t)(most / 2 + 1));
}

/* The loop gives up a connection that ends early. A loop whose thread is busy meanwhile gets the longest wait for that. */
static int64_t on_reconnect_delay(natsConnection *nats, int attempts, void *info)
{
    struct nats_connection *connection = info;

    (void)nats;
    return backoff_ms(atomic_load(&connection->is_young) ? INT_MAX : attempts);
}

/* ---- connecting, on a thread of its own ---- */

static void *connect_thread(void *info)
{
    struct nats_connection *connection = info;
    natsConnection *nats = NULL;
    natsStatus status;

    (void)retain_connection(connection); /* until cnats calls on_closed */
    status = natsConnection_Connect(&nats, connection->options);
    if (status == NATS_OK) {
        note_event(connection, event_connected, nats, status, NULL);
    } else {
        natsStatus last;

        note_event(connection, event_failed, NULL, status, nats_GetLastError(&last));
        release_connection(connection);
    }
    release_connection(connection);
    nats_ReleaseThreadMemory();
    return NULL;
}

static void set_timer(struct nats_connection *connection, double wait_s)
{
    CFRunLoopTimerSetNextFireDate(connection->timer, CFAbsoluteTimeGetCurrent() + wait_s);
}

static void schedule_retry(struct nats_connection *connection)
{
    set_timer(connection, (double)backoff_ms(connection->tries) / 1000);
    connection->tries += connection->tries < INT_MAX;
}

static void start_attempt(struct nats_connection *connection)
{
    invariant(is_loops_thread(connection) && !connection->nats);
    atomic_store(&connection->is_young, true);
    if (!start_thread(connect_thread, retain_connection(connection))) {
        release_connection(connection);
        schedule_retry(connection);
    }
}

/* ---- handling events ---- */

static void set_is_up(struct nats_connection *connection, bool is_up)
{
    invariant(connection->nats); /* the server may be gone, but cnats has the connection */
    connection->is_up = is_up;
    connection->has_lived = false;
    set_timer(connection, is_up ? live_s : never_s);
    connection->callback(connection->info, is_up ? nats_connection_is_up : nats_connection_is_lost, "");
}

static void begin_service(struct nats_connection *connection)
{
    natsConnection *nats = connection->nats;

    subscriptions_begin(connection);
    if (connection->nats == nats) { /* the program may have been told of a complaint, and have run the loop until the connection closed */
        set_is_up(connection, true);
    }
}

/* A connection that is closed already, or that the loop has no memory to serve, is given up: event_closed makes the next attempt. */
static void adopt_connection(struct nats_connection *connection, natsConnection *nats)
{
    invariant(!connection->nats && !connection->is_up);
    if (natsConnection_IsClosed(nats) || !loop_adapter_enter(connection->adapter, nats)) {
        close_in_background(nats);
        return;
    }
    connection->nats = nats;
    if (connection->early_ends < early_ends_told) {
        begin_service(connection);
    } else {
        set_timer(connection, settle_s);
    }
}

/* There is no connection of cnats any more; what it was is closed. */
static void drop_connection(struct nats_connection *connection)
{
    subscriptions_end(connection);
    loop_adapter_leave(connection->adapter);
    close_in_background(connection->nats);
    connection->nats = NULL;
    connection->is_up = false;
    set_timer(connection, never_s);
}

static void handle_loss(struct nats_connection *connection)
{
    bool was_up = connection->is_up;

    if (connection->has_lived) {
        set_is_up(connection, false);
    } else if (was_up || connection->early_ends >= early_ends_told) { /* otherwise cnats is connecting again after one that lived */
        connection->early_ends += connection->early_ends < early_ends_told;
        drop_connection(connection); /* event_closed makes the next attempt */
        if (was_up) {
            connection->callback(connection->info, nats_connection_is_lost, "");
        }
    }
}

static void on_timer(CFRunLoopTimerRef timer, void *info)
{
    struct nats_connection *connection = info;

    (void)timer;
    if (!connection->nats) {
        start_attempt(connection);
    } else if (!connection->is_up) {
        begin_service(connection); /* it has settled */
    } else {
        connection->has_lived = true;
        atomic_store(&connection->is_young, false);
        connection->early_ends = 0;
        connection->tries = 0;
    }
}

static void report_failure(struct nats_connection *connection, const struct pending_events *events)
{
    connection->callback(connection->info, events->is_refusal ? nats_connection_is_refused : nats_connection_has_failed, events->reason);
    schedule_retry(connection);
}

/* cnats has given the connection up: after it was refused twice, for instance. */
static void discard_connection(struct nats_connection *connection, const struct pending_events *events)
{
    drop_connection(connection);
    report_failure(connection, events);
}

static void handle_event(struct nats_connection *connection, enum cnats_event event, const struct pending_events *events)
{
    switch (event) {
    case event_connected:
        adopt_connection(connection, events->nats);
        break;
    case event_complaint:
        connection->callback(connection->info, nats_connection_complains, events->complaint);
        break;
    case event_lost:
        handle_loss(connection);
        break;
    case event_regained:
        set_is_up(connection, true);
        break;
    case event_closed:
        discard_connection(connection, events);
        break;
    case event_failed:
        report_failure(connection, events);
        break;
    }
}

/* One by one: a callback may run the loop, which then handles the next events. */
static void handle_events(void *info)
{
    struct nats_connection *connection = info;
    enum cnats_event event;
    struct pending_events events;

    invariant(is_loops_thread(connection));
    while (take_event(connection, &event, &events)) {
        handle_event(connection, event, &events);
    }
    loop_adapter_flush(connection->adapter); /* the run may end before the loop sleeps, which would flush */
}

/* ---- creation and end ---- */

static natsStatus apply_security(natsOptions *options, const struct nats_connection_settings *settings)
{
    natsStatus status = NATS_OK;

    if (settings->user) {
        status = natsOptions_SetUserInfo(options, settings->user, settings->password ? settings->password : "");
    }
    if (status == NATS_OK && settings->credentials) {
        status = natsOptions_SetUserCredentialsFromFiles(options, settings->credentials, NULL);
    }
    if (status == NATS_OK && (settings->uses_tls || settings->authorities || settings->certificate)) {
        status = natsOptions_SetSecure(options, true);
    }
    if (status == NATS_OK && settings->authorities) {
        status = natsOptions_LoadCATrustedCertificates(options, settings->authorities);
    }
    if (status == NATS_OK && settings->certificate) {
        status = natsOptions_LoadCertificatesChain(options, settings->certificate, settings->key);
    }
    return status;
}

static natsStatus apply_settings(struct nats_connection *connection, const struct nats_connection_settings *settings)
{
    natsOptions *options = connection->options;
    natsStatus status = natsOptions_SetServers(options, (const char **)(uintptr_t)settings->servers, settings->server_count);

    if (status == NATS_OK) {
        status = apply_security(options, settings);
    }
    if (status == NATS_OK) {
        status = loop_adapter_set(connection->adapter, options);
    }
    /* These fail only for numbers that are out of range. */
    (void)natsOptions_SetName(options, settings->name);
    (void)natsOptions_SetTimeout(options, connect_timeout_ms);
    (void)natsOptions_SetMaxReconnect(options, -1);
    (void)natsOptions_SetCustomReconnectDelay(options, on_reconnect_delay, connection);
    (void)natsOptions_SetReconnectBufSize(options, 0); /* a kept message would overtake earlier ones that were lost */
    (void)natsOptions_SetPingInterval(options, ping_interval_ms);
    (void)natsOptions_SetMaxPingsOut(options, pings_out_max);
    (void)natsOptions_SetSendAsap(options, true);
    (void)natsOptions_SetNoEcho(options, true);
    (void)natsOptions_SetDisconnectedCB(options, on_disconnected, connection);
    (void)natsOptions_SetReconnectedCB(options, on_reconnected, connection);
    (void)natsOptions_SetClosedCB(options, on_closed, connection);
    (void)natsOptions_SetErrorHandler(options, on_complaint, connection);
    return status;
}

static bool create_parts(struct nats_connection *connection)
{
    CFRunLoopTimerContext context = {.info = connection};
    CFRunLoopSourceContext source_context = {.info = connection, .perform = handle_events};

    connection->adapter = loop_adapter_create(connection->loop, subscriptions_take_messages, connection);
    connection->source = CFRunLoopSourceCreate(NULL, 0, &source_context);
    connection->timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + never_s, never_s, 0, 0, on_timer, &context);
    if (!connection->adapter || !connection->source || !connection->timer || natsOptions_Create(&connection->options) != NATS_OK) {
        return false;
    }
    CFRunLoopAddTimer(connection->loop, connection->timer, kCFRunLoopDefaultMode);
    CFRunLoopAddSource(connection->loop, connection->source, kCFRunLoopDefaultMode);
    return CFRunLoopContainsTimer(connection->loop, connection->timer, kCFRunLoopDefaultMode) &&
           CFRunLoopContainsSource(connection->loop, connection->source, kCFRunLoopDefaultMode);
}

static void end_parts(struct nats_connection *connection)
{
    if (connection->timer) {
        CFRunLoopTimerInvalidate(connection->timer);
        CFRelease(connection->timer);
    }
    if (connection->source) {
        CFRunLoopSourceInvalidate(connection->source);
    }
    subscriptions_free(connection);
}

struct nats_connection *nats_connection_create(const struct nats_connection_settings *settings, nats_connection_callback callback,
                                               void *info, char *ret_text, size_t text_size)
{
    struct nats_connection *connection = calloc(1, sizeof *connection);
    natsStatus status = NATS_NO_MEMORY;

    if (connection) {
        atomic_init(&connection->references, 1);
        (void)pthread_mutex_init(&connection->lock, NULL);
        (void)atomic_fetch_add(&connections_alive, 1);
        connection->loop = (CFRunLoopRef)(uintptr_t)CFRetain(CFRunLoopGetCurrent());
        connection->callback = callback;
        connection->info = info;
        status = create_parts(connection) ? apply_settings(connection, settings) : NATS_NO_MEMORY;
    }
    if (status == NATS_OK) {
        start_attempt(connection);
        return connection;
    }
    (void)snprintf(ret_text, text_size, "%s", natsStatus_GetText(status));
    if (connection) {
        end_parts(connection);
        if (connection->adapter) {
            loop_adapter_end(connection->adapter);
        }
        release_connection(connection);
    }
    return NULL;
}

void nats_connection_destroy(struct nats_connection *connection)
{
    natsConnection *unseen; /* of an event_connected that was not handled */

    invariant(is_loops_thread(connection));
    lock_events(connection);
    invariant(!connection->has_ended);
    connection->has_ended = true;
    unseen = connection->pending.bits & 1U << event_connected ? connection->pending.nats : NULL;
    unlock_events(connection);
    close_in_background(unseen);
    loop_adapter_flush(connection->adapter);
    end_parts(connection);
    loop_adapter_end(connection->adapter);
    close_in_background(connection->nats);
    connection->nats = NULL;
    release_connection(connection);
}
