/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CFMessagePort with bytes in the place of CFData. A callback's result and an out-parameter carry references that Swift would not count.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "CoreFoundation/CFData.h"
#include "CoreRunLoopShims.h"
#include "Overlay/overlay.h"

struct shim_reply {
    CFDataRef data;
};

static _Atomic(shim_receive) receive_function;

void shim_reply_set(struct shim_reply *reply, const void *bytes, intptr_t length)
{
    if (reply->data) {
        CFRelease(reply->data);
    }
    reply->data = overlay_data_to_give(bytes, (uint64_t)length);
}

static CFDataRef receive(CFMessagePortRef port, SInt32 number, CFDataRef data, void *callee)
{
    struct shim_reply reply = {NULL};

    (void)port;
    atomic_load(&receive_function)(callee, number, CFDataGetBytePtr(data), CFDataGetLength(data), &reply);
    return reply.data;
}

CFMessagePortRef shim_message_port_create(CFStringRef name, shim_receive function, void *info, void (*release)(const void *reference))
{
    CFMessagePortContext context = {.info = info, .release = release};
    Boolean is_known = false;
    CFMessagePortRef port;

    atomic_store(&receive_function, function); /* the same value every time */
    port = CFMessagePortCreateLocal(NULL, name, receive, &context, &is_known);
    if (port && is_known) {
        CFRelease(port);
        return NULL;
    }
    return port;
}

void shim_message_port_call(CFMessagePortRef port, void *callee)
{
    if (!overlay_port_set_receiver(port, callee)) {
        abort();
    }
}

int32_t shim_message_port_send(CFMessagePortRef port, int32_t number, const void *bytes, intptr_t length, double send_limit,
                               double answer_limit, struct shim_answer *ret_answer)
{
    CFDataRef data = overlay_data_to_give(bytes, (uint64_t)length);
    CFDataRef answer = NULL;
    int32_t status;

    if (!data) {
        return kCFMessagePortTransportError;
    }
    /* Nobody adds anything to this mode, so the wait serves nothing but the answer. */
    status = CFMessagePortSendRequest(port, number, data, send_limit, answer_limit, ret_answer ? CFSTR("CoreRunLoop.reply") : NULL,
                                      ret_answer ? &answer : NULL);
    CFRelease(data);
    if (answer && ret_answer) {
        *ret_answer = (struct shim_answer){CFDataGetBytePtr(answer), CFDataGetLength(answer), answer};
    }
    return status;
}

void shim_answer_drop(const struct shim_answer *answer)
{
    if (answer->data) {
        CFRelease(answer->data);
    }
}
