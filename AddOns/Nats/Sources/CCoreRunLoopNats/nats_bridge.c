/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls of a bridge (CRLNats.h), and what comes to it from its connection and its timer. Used by the bridge's thread.
 */
#include <bsd/stdlib.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Support/invariant.h"
#include "bridge_link.h"
#include "configuration.h"
#include "exporting.h"
#include "importing.h"
#include "kept_name.h"

/* ---- answers ---- */

/* Removes a question and calls back with the answer; `text` may be NULL. */
static void end_server_question(struct CRLNatsBridge *bridge, struct pending_answer *pending, const char *text, size_t length)
{
    server_answer_callback answered = pending->answered;
    void *info = pending->info;

    invariant(!pending->name && !pending->reply);
    pending_answers_remove(&bridge->pending, pending); /* first: the callee may ask again, or run the loop */
    answered(info, text, length);
}

/* Returns the number at the end of an inbox's subject, or 0. */
static uint64_t inbox_number(const char *subject)
{
    const char *dot = strrchr(subject, '.');
    char *end;
    uint64_t number = dot ? strtoull(dot + 1, &end, 16) : 0;

    return dot && dot[1] != '\0' && *end == '\0' ? number : 0;
}

static void on_answer(void *info, natsMsg *message)
{
    struct CRLNatsBridge *bridge = info;
    struct pending_answer *pending = pending_answers_find(&bridge->pending, inbox_number(natsMsg_GetSubject(message)));
    struct bridge_frame frame;

    if (!pending) {
        return; /* too late, or with an invented number */
    }
    if (pending->answered) {
        bool is_none = natsMsg_IsNoResponders(message);

        end_server_question(bridge, pending, is_none ? NULL : natsMsg_GetData(message),
                            is_none ? 0 : (size_t)natsMsg_GetDataLength(message));
    } else if (natsMsg_IsNoResponders(message)) {
        importing_fail_unreachable(bridge, pending);
    } else if (bridge_decode(bridge, message, "an answer", &frame)) {
        if (frame.number == pending->number) {
            importing_take_answer(bridge, pending, &frame);
        } else {
            bridge_tell(bridge, kCRLNatsPeerMisbehaves, "an answer", "an answer was dropped: it has another number than its subject");
        }
    }
}

/* ---- the connection ---- */

static void begin_service(struct CRLNatsBridge *bridge)
{
    bridge->has_asked_for_streams = false; /* the answer may be lost, and this server may not have what the last one had */
    bridge->streams_made = 0;
    kept_streams_request(bridge);
    for (struct imported_name *imported = bridge->imported; imported; imported = importing_next(imported)) {
        importing_handle_connected(imported);
    }
    for (struct exported_name *exported = bridge->exported; exported; exported = exporting_next(exported)) {
        exporting_handle_connected(exported);
        exporting_tick(exported, bridge_now_ns(), true);
    }
}

static void resume_paused_ports(struct CRLNatsBridge *bridge)
{
    if (bridge->has_paused_ports) {
        bridge->has_paused_ports = false;
        for (struct imported_name *imported = bridge->imported; imported; imported = importing_next(imported)) {
            importing_update_intake(imported);
        }
    }
}

static void on_connection_event(void *info, enum nats_connection_event event, const char *text)
{
    struct CRLNatsBridge *bridge = info;

    switch (event) {
    case nats_connection_is_up:
        invariant(nats_connection_is_ready(bridge->connection));
        bridge_tell(bridge, kCRLNatsConnected, NULL, "connected to the server");
        begin_service(bridge);
        break;
    case nats_connection_is_lost:
        invariant(!nats_connection_is_ready(bridge->connection));
        bridge_tell(bridge, kCRLNatsDisconnected, NULL, "the connection to the server is lost, and is made again");
        bridge->has_paused_ports = true;
        resume_paused_ports(bridge); /* pauses all of them */
        break;
    case nats_connection_has_failed:
        bridge_tell(bridge, kCRLNatsCannotConnect, NULL, "the server cannot be reached: %s", text);
        break;
    case nats_connection_is_refused:
        bridge_tell(bridge, kCRLNatsRefused, NULL, "the server wants other credentials: %s", text);
        break;
    case nats_connection_has_progressed:
        resume_paused_ports(bridge);
        break;
    case nats_connection_complains:
        bridge_tell(bridge, kCRLNatsServerComplains, NULL, "the server complains: %s", text);
        break;
    }
}

/* ---- ticks ---- */

/* Ends every entry whose answer, or report of work, has not come for too long. */
static void sweep_pending(struct CRLNatsBridge *bridge, int64_t now_ns)
{
    for (size_t i = 0; i < pending_answers_max && bridge->pending.count > 0; i++) {
        struct pending_answer *pending = &bridge->pending.places[i];

        if (pending->number == 0 || now_ns - pending->heard_ns <= silence_max_ns) {
            continue;
        }
        if (pending->answered) {
            end_server_question(bridge, pending, NULL, 0);
        } else {
            importing_fail_silent(bridge, pending);
        }
    }
}

static void on_tick_timer(CFRunLoopTimerRef timer, void *info)
{
    struct CRLNatsBridge *bridge = info;
    int64_t now_ns = bridge_now_ns();
    bool announces = now_ns - bridge->announced_ns >= announce_interval_ns;

    (void)timer;
    invariant(bridge->life->bridge == bridge);
    bridge->announced_ns = announces ? now_ns : bridge->announced_ns;
    if (!nats_connection_is_ready(bridge->connection)) {
        announces = false;
    }
    for (struct exported_name *exported = bridge->exported; exported; exported = exporting_next(exported)) {
        exporting_tick(exported, now_ns, announces);
    }
    for (struct imported_name *imported = bridge->imported; imported; imported = importing_next(imported)) {
        importing_tick(imported, now_ns);
    }
    kept_streams_request(bridge);
    sweep_pending(bridge, now_ns);
}

/* ---- creation ---- */

static void choose_sender_and_inbox(struct CRLNatsBridge *bridge)
{
    unsigned long long secret[2];

    arc4random_buf(secret, sizeof secret);
    do {
        arc4random_buf(&bridge->sender, sizeof bridge->sender);
    } while (bridge->sender == 0);
    (void)snprintf(bridge->inbox, sizeof bridge->inbox, "_INBOX.crl%016llx%016llx", secret[0], secret[1]);
}

static bool create_parts(struct CRLNatsBridge *bridge)
{
    CFRunLoopTimerContext context = {.info = bridge};
    char inboxes[inbox_max + 2];

    (void)snprintf(inboxes, sizeof inboxes, "%s.*", bridge->inbox);
    bridge->inbox_subscription = nats_connection_subscribe(bridge->connection, inboxes, NULL, on_answer, bridge);
    bridge->messages = CRLMessageSenderCreate();
    bridge->timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), (double)tick_interval_ns / 1e9, 0, 0, on_tick_timer, &context);
    if (!bridge->inbox_subscription || !bridge->messages || !bridge->timer) {
        return false;
    }
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), bridge->timer, kCFRunLoopDefaultMode);
    return CFRunLoopContainsTimer(CFRunLoopGetCurrent(), bridge->timer, kCFRunLoopDefaultMode);
}

CRLNatsBridgeRef CRLNatsBridgeCreate(const CRLNatsConfiguration *configuration)
{
    struct CRLNatsBridge *bridge = calloc(1, sizeof *bridge);

    if (!bridge) {
        return NULL;
    }
    bridge->life = calloc(1, sizeof *bridge->life);
    if (bridge->life) {
        atomic_init(&bridge->life->references, 1);
        bridge->life->bridge = bridge;
    }
    bridge->is_durable = configuration->durable;
    bridge->callback = configuration->callback;
    bridge->info = configuration->info;
    choose_sender_and_inbox(bridge);
    if (!bridge->life || !configuration_apply(bridge, configuration, on_connection_event) || !create_parts(bridge)) {
        CRLNatsBridgeInvalidate(bridge);
        return NULL;
    }
    return bridge;
}

/* ---- names ---- */

static bool is_name_known(const struct CRLNatsBridge *bridge, const char *local_name)
{
    for (const struct exported_name *exported = bridge->exported; exported; exported = exporting_next(exported)) {
        if (strcmp(exporting_name(exported), local_name) == 0) {
            return true;
        }
    }
    for (const struct imported_name *imported = bridge->imported; imported; imported = importing_next(imported)) {
        if (strcmp(importing_local_name(imported), local_name) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns false, and tells why, if one of the names cannot be used. `machine` may be NULL. */
static bool check_names(struct CRLNatsBridge *bridge, const char *name, const char *machine, const char *local_name)
{
    const char *fault = name_fault(name, port_name_max);
    const char *wrong = name;

    if (!fault && machine) {
        fault = name_fault(machine, machine_name_max);
        wrong = machine;
    }
    if (!fault) {
        fault = name_fault(local_name, port_name_max);
        wrong = local_name;
    }
    if (!fault && is_name_known(bridge, local_name)) {
        fault = "is exported or imported already";
    }
    if (fault) {
        bridge_tell_always(bridge, kCRLNatsNameUnusable, wrong, "the name '%.200s' %s", wrong, fault);
    }
    return !fault;
}

Boolean CRLNatsBridgeExport(CRLNatsBridgeRef bridge, const char *name, Boolean shares)
{
    return check_names(bridge, name, NULL, name) && exporting_create(bridge, name, shares);
}

Boolean CRLNatsBridgeImport(CRLNatsBridgeRef bridge, const char *name, const char *machine, const char *localName)
{
    char own[port_name_max + machine_name_max + 2];

    if (!localName && machine) {
        (void)snprintf(own, sizeof own, "%.*s@%.*s", port_name_max, name, machine_name_max, machine);
        localName = own;
    }
    localName = localName ? localName : name;
    return check_names(bridge, name, machine, localName) && importing_create(bridge, name, machine, localName);
}

/* ---- the end ---- */

static void end_names(struct CRLNatsBridge *bridge)
{
    while (bridge->imported) {
        struct imported_name *imported = bridge->imported;

        bridge->imported = importing_next(imported);
        importing_destroy(imported);
    }
    while (bridge->exported) {
        struct exported_name *exported = bridge->exported;

        bridge->exported = exporting_next(exported);
        exporting_destroy(exported);
    }
}

static bool awaits_answers_for_names(const struct CRLNatsBridge *bridge)
{
    for (size_t i = 0; i < pending_answers_max; i++) {
        if (bridge->pending.places[i].name) {
            return true;
        }
    }
    return false;
}

void CRLNatsBridgeInvalidate(CRLNatsBridgeRef bridge)
{
    if (bridge->timer) {
        CFRunLoopTimerInvalidate(bridge->timer);
        CFRelease(bridge->timer);
    }
    if (bridge->messages) {
        CRLMessageSenderDestroy(bridge->messages);
    }
    end_names(bridge);
    invariant(!awaits_answers_for_names(bridge)); /* nobody waits for a reply that never comes */
    if (bridge->connection) {
        nats_connection_destroy(bridge->connection);
    }
    if (bridge->life) {
        bridge->life->bridge = NULL;
        bridge_life_release(bridge->life);
    }
    free(bridge);
}
