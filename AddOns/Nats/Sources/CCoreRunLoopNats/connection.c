/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to a server; see connection.h.
 *
 * cnats calls back on its own threads, and its calls that connect and close wait for the server. So each attempt to connect, and each
 * close, runs on a thread that ends with it, and what comes of it is noted for the loop. Those threads hold references. Only the last one
 * frees the connection.
 */
#include "connection_parts.h"

#include <bsd/stdlib.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop_adapter.h"

enum { connect_timeout_ms = 5000, ping_interval_ms = 2000, pings_out_max = 2, wait_first_ms = 50, wait_last_ms = 5000 };

/* ---- life ---- */

static _Atomic int connections_alive;

int connections_left(void)
{
    return atomic_load(&connections_alive);
}

static void release_connection(struct connection *connection)
{
    if (atomic_fetch_sub(&connection->references, 1) == 1) {
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

static struct connection *retain_connection(struct connection *connection)
{
    (void)atomic_fetch_add(&connection->references, 1);
    return connection;
}

/* ---- threads ---- */

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

static void *close_once(void *info)
{
    natsConnection_Destroy(info);
    nats_ReleaseThreadMemory();
    return NULL;
}

static void give_up(natsConnection *nats)
{
    if (nats && !start_thread(close_once, nats)) {
        natsConnection_Destroy(nats);
    }
}

/* ---- what cnats's threads tell the loop's ---- */

static void tell_loop(struct connection *connection)
{
    CFRunLoopSourceSignal(connection->source);
    CFRunLoopWakeUp(connection->loop);
}

/* cnats has no error to tell of a connection that begin_with gave up. */
static void note_end(struct news *news, natsStatus status, const char *text)
{
    text = status == NATS_OK ? "there is no memory for the connection" : text;
    news->is_refusal = status == NATS_CONNECTION_AUTH_FAILED || status == NATS_NOT_PERMITTED;
    (void)snprintf(news->end, sizeof news->end, "%s", text && *text ? text : natsStatus_GetText(status));
}

/*
 * Notes an event for the loop's thread; `nats` is of the kind it_connected, status and text are of those that have one. It takes no memory,
 * so none is lost. What has happened twice before the loop came to it is told once.
 */
static void note(struct connection *connection, enum event event, natsConnection *nats, natsStatus status, const char *text)
{
    struct news *news = &connection->news;
    bool is_over;

    (void)pthread_mutex_lock(&connection->lock);
    is_over = connection->is_over;
    news->pending |= 1U << event;
    if (event == it_connected && !is_over) {
        news->nats = nats;
    } else if (event == it_was_lost) {
        news->pending &= ~(1U << it_came_back);
    } else if (event == it_failed || event == it_closed) {
        note_end(news, status, text);
    } else if (event == it_complains) {
        (void)snprintf(news->complaint, sizeof news->complaint, "%s", text && *text ? text : natsStatus_GetText(status));
    }
    (void)pthread_mutex_unlock(&connection->lock);
    if (is_over) {
        give_up(nats);
    } else {
        tell_loop(connection);
    }
}

/* Takes the event that came first. Of a connection that has not come yet nothing is taken but its end. */
static bool take_news(struct connection *connection, enum event *ret_event, struct news *ret_news)
{
    unsigned known = connection->nats ? ~0U : 1U << it_connected | 1U << it_complains | 1U << it_closed | 1U << it_failed;
    struct news *news = &connection->news;
    bool result;

    (void)pthread_mutex_lock(&connection->lock);
    result = (news->pending & known) != 0;
    if (result) {
        *ret_event = (enum event)__builtin_ctz(news->pending & known);
        *ret_news = *news;
        news->pending &= ~(1U << *ret_event);
        if (*ret_event == it_closed) {
            news->pending &= ~(1U << it_was_lost | 1U << it_came_back);
        }
    }
    (void)pthread_mutex_unlock(&connection->lock);
    return result;
}

static void disconnected(natsConnection *nats, void *info)
{
    (void)nats;
    note(info, it_was_lost, NULL, NATS_OK, NULL);
}

static void reconnected(natsConnection *nats, void *info)
{
    (void)nats;
    note(info, it_came_back, NULL, NATS_OK, NULL);
}

static void closed(natsConnection *nats, void *info)
{
    const char *text = NULL;
    natsStatus status = natsConnection_GetLastError(nats, &text);

    note(info, it_closed, NULL, status, text);
    release_connection(info); /* this is cnats's last call */
}

static void complained(natsConnection *nats, natsSubscription *subscription, natsStatus status, void *info)
{
    const char *text = NULL;

    (void)subscription;
    (void)natsConnection_GetLastError(nats, &text);
    note(info, it_complains, NULL, status, text);
}

/* Twice as long each time, with a part left to chance, so that many clients of a server do not come at once. */
static int64_t wait_ms(int tries)
{
    int64_t most = wait_last_ms;

    if (tries < 7) {
        most = (int64_t)wait_first_ms << tries;
    }
    return most / 2 + (int64_t)arc4random_uniform((uint32_t)(most / 2 + 1));
}

static int64_t reconnect_delay(natsConnection *nats, int attempts, void *info)
{
    (void)nats;
    (void)info;
    return wait_ms(attempts);
}

/* ---- connecting, on a thread of its own ---- */

static void *connect_once(void *info)
{
    struct connection *connection = info;
    natsConnection *nats = NULL;
    natsStatus status;

    (void)retain_connection(connection); /* until cnats has called `closed` */
    status = natsConnection_Connect(&nats, connection->options);
    if (status == NATS_OK) {
        note(connection, it_connected, nats, status, NULL);
    } else {
        natsStatus last;

        note(connection, it_failed, NULL, status, nats_GetLastError(&last));
        release_connection(connection);
    }
    release_connection(connection);
    nats_ReleaseThreadMemory();
    return NULL;
}

static void retry_later(struct connection *connection)
{
    double wait_s = (double)wait_ms(atomic_fetch_add(&connection->tries, 1)) / 1000;

    CFRunLoopTimerSetNextFireDate(connection->retry, CFAbsoluteTimeGetCurrent() + wait_s);
}

static void try_to_connect(struct connection *connection)
{
    if (!start_thread(connect_once, retain_connection(connection))) {
        release_connection(connection);
        retry_later(connection);
    }
}

static void retry_fires(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    try_to_connect(info);
}

/* ---- what the events do ---- */

static void set_up(struct connection *connection, bool is_up)
{
    connection->is_up = is_up;
    if (is_up) {
        atomic_store(&connection->tries, 0);
    }
    connection->told(connection->info, is_up ? connection_is_up : connection_is_lost, "");
}

static void begin_with(struct connection *connection, natsConnection *nats)
{
    if (natsConnection_IsClosed(nats)) { /* already, and the event has come and gone */
        give_up(nats);
        return;
    }
    if (!loop_adapter_enter(connection->adapter, nats)) {
        give_up(nats); /* the event that it is closed makes another one */
        return;
    }
    connection->nats = nats;
    subscriptions_begin(connection);
    set_up(connection, true);
}

static void tell_end(struct connection *connection, const struct news *news)
{
    connection->told(connection->info, news->is_refusal ? connection_is_refused : connection_has_failed, news->end);
    retry_later(connection);
}

/* cnats has given up: after it was refused twice, for instance. */
static void begin_anew(struct connection *connection, const struct news *news)
{
    subscriptions_end(connection);
    loop_adapter_leave(connection->adapter);
    give_up(connection->nats);
    connection->nats = NULL;
    connection->is_up = false;
    tell_end(connection, news);
}

static void handle_event(struct connection *connection, enum event event, const struct news *news)
{
    switch (event) {
    case it_connected:
        begin_with(connection, news->nats);
        break;
    case it_complains:
        connection->told(connection->info, connection_complains, news->complaint);
        break;
    case it_was_lost:
        if (connection->is_up) {
            set_up(connection, false);
        }
        break;
    case it_came_back:
        set_up(connection, true);
        break;
    case it_closed:
        begin_anew(connection, news);
        break;
    case it_failed:
        tell_end(connection, news);
        break;
    }
}

/* One by one, as a handler may run the loop, which then goes on with the next. */
static void handle_news(void *info)
{
    struct connection *connection = info;
    enum event event;
    struct news news;

    while (take_news(connection, &event, &news)) {
        handle_event(connection, event, &news);
    }
    loop_adapter_flush(connection->adapter); /* this run may end before the loop sleeps */
}

/* ---- beginning and end ---- */

static natsStatus follow_security(natsOptions *options, const struct connection_settings *settings)
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

static natsStatus follow_settings(struct connection *connection, const struct connection_settings *settings)
{
    natsOptions *options = connection->options;
    natsStatus status = natsOptions_SetServers(options, (const char **)(uintptr_t)settings->servers, settings->server_count);

    if (status == NATS_OK) {
        status = follow_security(options, settings);
    }
    if (status == NATS_OK) {
        status = loop_adapter_set(connection->adapter, options);
    }
    /* These fail for numbers that are out of range only. */
    (void)natsOptions_SetName(options, settings->name);
    (void)natsOptions_SetTimeout(options, connect_timeout_ms);
    (void)natsOptions_SetMaxReconnect(options, -1);
    (void)natsOptions_SetCustomReconnectDelay(options, reconnect_delay, NULL);
    (void)natsOptions_SetReconnectBufSize(options, 0); /* nothing is kept over a lost connection: what it would overtake may be lost */
    (void)natsOptions_SetPingInterval(options, ping_interval_ms);
    (void)natsOptions_SetMaxPingsOut(options, pings_out_max);
    (void)natsOptions_SetSendAsap(options, true);
    (void)natsOptions_SetNoEcho(options, true);
    (void)natsOptions_SetDisconnectedCB(options, disconnected, connection);
    (void)natsOptions_SetReconnectedCB(options, reconnected, connection);
    (void)natsOptions_SetClosedCB(options, closed, connection);
    (void)natsOptions_SetErrorHandler(options, complained, connection);
    return status;
}

static bool make_parts(struct connection *connection)
{
    CFRunLoopTimerContext context = {.info = connection};
    CFRunLoopSourceContext source_context = {.info = connection, .perform = handle_news};

    connection->adapter = loop_adapter_create(connection->loop, subscriptions_take_messages, connection);
    connection->source = CFRunLoopSourceCreate(NULL, 0, &source_context);
    connection->retry = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 1e9, 1e9, 0, 0, retry_fires, &context);
    if (!connection->adapter || !connection->source || !connection->retry || natsOptions_Create(&connection->options) != NATS_OK) {
        return false;
    }
    CFRunLoopAddTimer(connection->loop, connection->retry, kCFRunLoopDefaultMode);
    CFRunLoopAddSource(connection->loop, connection->source, kCFRunLoopDefaultMode);
    return CFRunLoopContainsTimer(connection->loop, connection->retry, kCFRunLoopDefaultMode) &&
           CFRunLoopContainsSource(connection->loop, connection->source, kCFRunLoopDefaultMode);
}

static void end_parts(struct connection *connection)
{
    if (connection->retry) {
        CFRunLoopTimerInvalidate(connection->retry);
        CFRelease(connection->retry);
    }
    if (connection->source) {
        CFRunLoopSourceInvalidate(connection->source);
    }
    subscriptions_free(connection);
}

struct connection *connection_create(const struct connection_settings *settings, connection_told told, void *info,
                                     char *ret_text, size_t text_size)
{
    struct connection *connection = calloc(1, sizeof *connection);
    natsStatus status = NATS_NO_MEMORY;

    if (connection) {
        atomic_init(&connection->references, 1);
        (void)pthread_mutex_init(&connection->lock, NULL);
        (void)atomic_fetch_add(&connections_alive, 1);
        connection->loop = (CFRunLoopRef)(uintptr_t)CFRetain(CFRunLoopGetCurrent());
        connection->told = told;
        connection->info = info;
        status = make_parts(connection) ? follow_settings(connection, settings) : NATS_NO_MEMORY;
    }
    if (status == NATS_OK) {
        try_to_connect(connection);
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

void connection_destroy(struct connection *connection)
{
    natsConnection *unseen; /* it was connected, and the loop has not come to it */

    (void)pthread_mutex_lock(&connection->lock);
    connection->is_over = true;
    unseen = connection->news.pending & 1U << it_connected ? connection->news.nats : NULL;
    (void)pthread_mutex_unlock(&connection->lock);
    give_up(unseen);
    loop_adapter_flush(connection->adapter);
    end_parts(connection);
    loop_adapter_end(connection->adapter);
    give_up(connection->nats);
    connection->nats = NULL;
    release_connection(connection);
}
