/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous queries of PostgreSQL in a run loop: a CFSocket tells when libpq's socket has something, one connection listens, another
 * one notifies.
 *
 * usage: postgres CONNECTION-STRING
 * Connects both without blocking, queries, sends three notifications and waits for them; ends with 0 when they came in order.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { notifications = 3 };

struct session {
    const char *name;
    PGconn *connection;
    CFSocketRef socket;
    bool is_connected;
    const char *next; /* a query to send when the one under way is through */
    void (*begin)(struct session *session); /* once it is connected */
    void (*answered)(struct session *session, PGresult *result);
};

static const char *connection_string;
static struct session listener;
static struct session notifier;
static int heard;
static bool has_sum;
static bool has_failed;

static void fail(const struct session *session, const char *what)
{
    (void)fprintf(stderr, "postgres: %s: %s: %s", session->name, what, PQerrorMessage(session->connection));
    has_failed = true;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

/* ---- the conversation ---- */

static void send_query(struct session *session, const char *text)
{
    if (!PQsendQuery(session->connection, text)) {
        fail(session, "cannot send");
    } else if (PQflush(session->connection) > 0) {
        CFSocketEnableCallBacks(session->socket, kCFSocketWriteCallBack);
    }
}

static void listen_begin(struct session *session)
{
    send_query(session, "LISTEN corerunloop");
}

static void connect_session(struct session *session);

static void listen_answered(struct session *session, PGresult *result)
{
    (void)session;
    (void)printf("listening: %s\n", PQcmdStatus(result));
    connect_session(&notifier); /* somebody hears it now */
}

static void notify_begin(struct session *session)
{
    send_query(session, "SELECT sum(n) FROM generate_series(1, 100000) AS n");
}

static void notify_answered(struct session *session, PGresult *result)
{
    if (PQresultStatus(result) == PGRES_TUPLES_OK) {
        (void)printf("sum: %s\n", PQgetvalue(result, 0, 0));
        has_sum = strcmp(PQgetvalue(result, 0, 0), "5000050000") == 0;
        session->next = "NOTIFY corerunloop, '1'; NOTIFY corerunloop, '2'; NOTIFY corerunloop, '3'";
    }
}

static void hear(const PGnotify *notification)
{
    (void)printf("notified: %s %s\n", notification->relname, notification->extra);
    heard++;
    has_failed |= atoi(notification->extra) != heard;
    if (heard == notifications) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
}

/* ---- the sockets ---- */

static void look_for_results(struct session *session)
{
    while (!PQisBusy(session->connection)) {
        PGresult *result = PQgetResult(session->connection);

        if (!result) {
            if (session->next) {
                send_query(session, session->next);
                session->next = NULL;
            }
            return;
        }
        if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
            fail(session, "query");
        } else {
            session->answered(session, result);
        }
        PQclear(result);
    }
}

static void receive(struct session *session)
{
    PGnotify *notification;

    if (!PQconsumeInput(session->connection)) {
        fail(session, "lost");
        return;
    }
    look_for_results(session);
    while ((notification = PQnotifies(session->connection))) {
        hear(notification);
        PQfreemem(notification);
    }
}

static void go_on_connecting(struct session *session);

static void socket_called(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    struct session *session = info;

    (void)socket, (void)address, (void)data;
    if (!session->is_connected) {
        go_on_connecting(session);
    } else if (type == kCFSocketReadCallBack) {
        receive(session);
    } else if (PQflush(session->connection) > 0) {
        CFSocketEnableCallBacks(session->socket, kCFSocketWriteCallBack);
    }
}

static void unwatch(struct session *session)
{
    if (session->socket) {
        CFSocketInvalidate(session->socket);
        CFRelease(session->socket);
        session->socket = NULL;
    }
}

static void watch(struct session *session)
{
    CFSocketContext context = {0, session, NULL, NULL, NULL};
    CFRunLoopSourceRef source;

    session->socket = CFSocketCreateWithNative(NULL, PQsocket(session->connection), kCFSocketReadCallBack | kCFSocketWriteCallBack,
                                               socket_called, &context);
    CFSocketSetSocketFlags(session->socket, kCFSocketAutomaticallyReenableReadCallBack); /* libpq closes it */
    source = CFSocketCreateRunLoopSource(NULL, session->socket, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    CFRelease(source);
}

/* libpq says which readiness it waits for next. Each step may close the socket and open another one, under the same number even. */
static void go_on_connecting(struct session *session)
{
    PostgresPollingStatusType status;

    unwatch(session);
    status = PQconnectPoll(session->connection);
    if (status == PGRES_POLLING_FAILED) {
        fail(session, "cannot connect");
        return;
    }
    watch(session);
    if (status == PGRES_POLLING_OK) {
        session->is_connected = true;
        (void)PQsetnonblocking(session->connection, 1);
        (void)printf("%s: connected\n", session->name);
        session->begin(session);
    } else {
        CFSocketDisableCallBacks(session->socket, status == PGRES_POLLING_READING ? kCFSocketWriteCallBack : kCFSocketReadCallBack);
    }
}

static void connect_session(struct session *session)
{
    session->connection = PQconnectStart(connection_string);
    if (!session->connection || PQstatus(session->connection) == CONNECTION_BAD) {
        fail(session, "cannot connect");
        return;
    }
    watch(session);
    CFSocketDisableCallBacks(session->socket, kCFSocketReadCallBack); /* a connection begins with writing */
}

int main(int count, char **arguments)
{
    if (count != 2) {
        (void)fprintf(stderr, "usage: postgres CONNECTION-STRING\n");
        return EXIT_FAILURE;
    }
    connection_string = arguments[1];
    listener = (struct session){.name = "listener", .begin = listen_begin, .answered = listen_answered};
    notifier = (struct session){.name = "notifier", .begin = notify_begin, .answered = notify_answered};
    connect_session(&listener);
    if (!has_failed) {
        CFRunLoopRun();
    }
    unwatch(&listener);
    unwatch(&notifier);
    PQfinish(listener.connection);
    PQfinish(notifier.connection);
    return !has_failed && has_sum && heard == notifications ? EXIT_SUCCESS : EXIT_FAILURE;
}
