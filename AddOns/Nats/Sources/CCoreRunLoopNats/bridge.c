/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls, and what the parts of a bridge share; see bridge.h. */
#include "bridge.h"

#include <bsd/stdlib.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configuration.h"
#include "exporting.h"
#include "importing.h"
#include "kept_name.h"

enum { text_max = 512 };

static const int64_t error_interval_ns = 1000000000;

/* ---- the life ---- */

struct bridge_life *bridge_life_retain(struct bridge_life *life)
{
    (void)atomic_fetch_add(&life->references, 1);
    return life;
}

void bridge_life_release(struct bridge_life *life)
{
    if (atomic_fetch_sub(&life->references, 1) == 1) {
        free(life);
    }
}

/* ---- telling ---- */

static void tell_text(struct CRLNatsBridge *bridge, CRLNatsEvent event, const char *name, const char *text)
{
    if (bridge->callback) {
        bridge->callback(bridge, event, name, text, bridge->info);
    } else if (event < 0) {
        (void)fprintf(stderr, "CoreRunLoop: bridge: %s\n", text);
    }
}

/* A text is a line, whatever peers and servers have put into it. */
static void make_line(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7F) {
            *text = '?';
        }
    }
}

void bridge_tell(struct CRLNatsBridge *bridge, CRLNatsEvent event, const char *name, const char *format, ...)
{
    size_t kind = event < 0 ? (size_t)-event : 0;
    int64_t now_ns = bridge_now_ns();
    char text[text_max];
    va_list arguments;
    size_t length;

    if (kind > 0 && bridge->told_ns[kind] != 0 && now_ns - bridge->told_ns[kind] < error_interval_ns) {
        bridge->untold[kind]++;
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    make_line(text);
    length = strlen(text);
    if (bridge->untold[kind] > 0) {
        (void)snprintf(text + length, sizeof text - length, " (and %llu more)", (unsigned long long)bridge->untold[kind]);
    }
    bridge->untold[kind] = 0;
    bridge->told_ns[kind] = now_ns;
    tell_text(bridge, event, name, text);
}

/* ---- frames ---- */

bool bridge_publish(struct CRLNatsBridge *bridge, const char *subject, const char *reply, const struct bridge_frame *frame)
{
    struct bridge_frame own = *frame;
    uint8_t head[bridge_frame_size];

    own.sender = bridge->sender;
    bridge_frame_encode(&own, head);
    return connection_publish(bridge->connection, subject, reply, head, sizeof head, frame->data, frame->length);
}

/* Returns what is wrong with the name of a machine that a frame has as its data, or NULL. */
static const char *machine_fault(const struct bridge_frame *frame)
{
    char machine[machine_name_max + 1]; /* longer data was refused */

    (void)snprintf(machine, sizeof machine, "%.*s", (int)frame->length, (const char *)frame->data);
    return strlen(machine) < frame->length ? "has a zero in it" : name_fault(machine, machine_name_max);
}

bool bridge_decode(struct CRLNatsBridge *bridge, natsMsg *message, const char *what, struct bridge_frame *ret_frame)
{
    const uint8_t *bytes = (const uint8_t *)natsMsg_GetData(message);
    enum bridge_frame_error error = bridge_frame_decode(bytes, (size_t)natsMsg_GetDataLength(message), ret_frame);
    const char *fault = NULL;

    if (error != bridge_frame_ok) {
        bridge_tell(bridge, kCRLNatsPeerMisbehaves, what, "%s: a message was dropped: %s", what, bridge_frame_error_text(error));
    } else if (ret_frame->type == bridge_here || ret_frame->type == bridge_bye) {
        fault = machine_fault(ret_frame);
    }
    if (fault) {
        bridge_tell(bridge, kCRLNatsPeerMisbehaves, what, "%s: a message was dropped: its machine's name %s", what, fault);
    }
    return error == bridge_frame_ok && !fault;
}

void bridge_make_inbox(const struct CRLNatsBridge *bridge, uint64_t number, char ret_subject[subject_max])
{
    (void)snprintf(ret_subject, subject_max, "%s.%llx", bridge->inbox, (unsigned long long)number);
}

uint64_t bridge_ask(struct CRLNatsBridge *bridge, const struct question *question, server_answered answered, void *info)
{
    struct awaited *awaited = connection_is_ready(bridge->connection) ? awaited_add(&bridge->awaited) : NULL;
    struct message_fields fields = {question->id, question->is_first};
    struct bridge_frame frame = {.data = NULL};
    uint8_t head[bridge_frame_size];
    char inbox[subject_max];

    if (!awaited) {
        return 0;
    }
    awaited->answered = answered;
    awaited->info = info;
    awaited->heard_ns = bridge_now_ns();
    bridge_make_inbox(bridge, awaited->number, inbox);
    if (question->frame) {
        frame = *question->frame;
        frame.sender = frame.sender ? frame.sender : bridge->sender;
        bridge_frame_encode(&frame, head);
    } else {
        frame.data = (const uint8_t *)question->text;
        frame.length = strlen(question->text);
    }
    if (!connection_publish_with_fields(bridge->connection, question->subject, inbox, &fields, head, question->frame ? sizeof head : 0,
                                        frame.data, frame.length)) {
        awaited_remove(&bridge->awaited, awaited);
        return 0;
    }
    return awaited->number;
}

void bridge_forget(struct CRLNatsBridge *bridge, uint64_t number)
{
    struct awaited *awaited = awaited_find(&bridge->awaited, number);

    if (awaited) {
        awaited_remove(&bridge->awaited, awaited);
    }
}

/* What the server was asked is over; the text may be NULL. */
static void end_question(struct CRLNatsBridge *bridge, struct awaited *awaited, const char *text, size_t length)
{
    server_answered answered = awaited->answered;
    void *info = awaited->info;

    awaited_remove(&bridge->awaited, awaited);
    answered(info, text, length);
}

/* ---- what comes back ---- */

/* Returns the number at the end of an inbox's subject, or 0. */
static uint64_t number_of(const char *subject)
{
    const char *dot = strrchr(subject, '.');
    char *end;
    uint64_t number = dot ? strtoull(dot + 1, &end, 16) : 0;

    return dot && dot[1] != '\0' && *end == '\0' ? number : 0;
}

static void answer_came(void *info, natsMsg *message)
{
    struct CRLNatsBridge *bridge = info;
    struct awaited *awaited = awaited_find(&bridge->awaited, number_of(natsMsg_GetSubject(message)));
    struct bridge_frame frame;

    if (!awaited) {
        return; /* it comes too late, or from somebody who makes numbers up */
    }
    if (awaited->answered) {
        bool is_none = natsMsg_IsNoResponders(message);

        end_question(bridge, awaited, is_none ? NULL : natsMsg_GetData(message), is_none ? 0 : (size_t)natsMsg_GetDataLength(message));
    } else if (natsMsg_IsNoResponders(message)) {
        importing_take_nobody(bridge, awaited);
    } else if (bridge_decode(bridge, message, "an answer", &frame)) {
        if (frame.number == awaited->number) {
            importing_take_answer(bridge, awaited, &frame);
        } else {
            bridge_tell(bridge, kCRLNatsPeerMisbehaves, "an answer", "an answer was dropped: it has another number than its subject");
        }
    }
}

/* ---- what the connection tells ---- */

static void begin_service(struct CRLNatsBridge *bridge)
{
    bridge->streams_are_asked_for = false; /* an answer may have been lost, and the server's store, too */
    bridge->streams_made = 0;
    kept_streams_make(bridge);
    for (struct imported_name *imported = bridge->imported; imported; imported = importing_next(imported)) {
        importing_ask_who(imported);
    }
    for (struct exported_name *exported = bridge->exported; exported; exported = exporting_next(exported)) {
        exporting_begin_anew(exported);
        exporting_tick(exported, bridge_now_ns(), true);
    }
}

static void let_in_again(struct CRLNatsBridge *bridge)
{
    if (bridge->is_holding_back) {
        bridge->is_holding_back = false;
        for (struct imported_name *imported = bridge->imported; imported; imported = importing_next(imported)) {
            importing_let_in(imported);
        }
    }
}

static void connection_tells(void *info, enum connection_event event, const char *text)
{
    struct CRLNatsBridge *bridge = info;

    switch (event) {
    case connection_is_up:
        bridge_tell(bridge, kCRLNatsConnected, NULL, "connected to the server");
        begin_service(bridge);
        break;
    case connection_is_lost:
        bridge_tell(bridge, kCRLNatsDisconnected, NULL, "the connection to the server is lost, and is made again");
        bridge->is_holding_back = true;
        let_in_again(bridge); /* none takes messages now */
        break;
    case connection_has_failed:
        bridge_tell(bridge, kCRLNatsCannotConnect, NULL, "the server cannot be reached: %s", text);
        break;
    case connection_is_refused:
        bridge_tell(bridge, kCRLNatsRefused, NULL, "the server wants other credentials: %s", text);
        break;
    case connection_has_moved:
        let_in_again(bridge);
        break;
    case connection_complains:
        bridge_tell(bridge, kCRLNatsServerComplains, NULL, "the server complains: %s", text);
        break;
    }
}

/* ---- ticks ---- */

/* Ends what nobody has given a sign of for too long. */
static void sweep_awaited(struct CRLNatsBridge *bridge, int64_t now_ns)
{
    for (size_t i = 0; i < awaited_max && bridge->awaited.count > 0; i++) {
        struct awaited *awaited = &bridge->awaited.places[i];

        if (awaited->number == 0 || now_ns - awaited->heard_ns <= silence_max_ns) {
            continue;
        }
        if (awaited->answered) {
            end_question(bridge, awaited, NULL, 0);
        } else {
            importing_take_silence(bridge, awaited);
        }
    }
}

static void tick(CFRunLoopTimerRef timer, void *info)
{
    struct CRLNatsBridge *bridge = info;
    int64_t now_ns = bridge_now_ns();
    bool says_here = now_ns - bridge->said_here_ns >= here_ns;

    (void)timer;
    bridge->said_here_ns = says_here ? now_ns : bridge->said_here_ns;
    if (!connection_is_ready(bridge->connection)) {
        says_here = false;
    }
    for (struct exported_name *exported = bridge->exported; exported; exported = exporting_next(exported)) {
        exporting_tick(exported, now_ns, says_here);
    }
    for (struct imported_name *imported = bridge->imported; imported; imported = importing_next(imported)) {
        importing_tick(imported, now_ns);
    }
    kept_streams_make(bridge);
    sweep_awaited(bridge, now_ns);
}

/* ---- creation ---- */

static void make_inbox_name(struct CRLNatsBridge *bridge)
{
    unsigned long long secret[2];

    arc4random_buf(secret, sizeof secret);
    do {
        arc4random_buf(&bridge->sender, sizeof bridge->sender);
    } while (bridge->sender == 0);
    (void)snprintf(bridge->inbox, sizeof bridge->inbox, "_INBOX.crl%016llx%016llx", secret[0], secret[1]);
}

static bool begin_parts(struct CRLNatsBridge *bridge)
{
    CFRunLoopTimerContext context = {.info = bridge};
    char inboxes[inbox_max + 2];

    (void)snprintf(inboxes, sizeof inboxes, "%s.*", bridge->inbox);
    bridge->inbox_subscription = connection_subscribe(bridge->connection, inboxes, NULL, answer_came, bridge);
    bridge->messages = CRLMessageSenderCreate();
    bridge->timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), (double)tick_ns / 1e9, 0, 0, tick, &context);
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
    make_inbox_name(bridge);
    if (!bridge->life || !configuration_follow(bridge, configuration, connection_tells) || !begin_parts(bridge)) {
        CRLNatsBridgeInvalidate(bridge);
        return NULL;
    }
    return bridge;
}

/* ---- names ---- */

static bool is_known(const struct CRLNatsBridge *bridge, const char *local_name)
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

/* Returns false, and tells, if a name cannot be used. `others` are more names that have to be right. */
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
    if (!fault && is_known(bridge, local_name)) {
        fault = "is exported or imported already";
    }
    if (fault) {
        bridge->told_ns[-kCRLNatsNameUnusable] = 0; /* each call that fails says why */
        bridge_tell(bridge, kCRLNatsNameUnusable, wrong, "the name '%.200s' %s", wrong, fault);
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
    if (bridge->connection) {
        connection_destroy(bridge->connection);
    }
    if (bridge->life) {
        bridge->life->bridge = NULL;
        bridge_life_release(bridge->life);
    }
    free(bridge);
}
