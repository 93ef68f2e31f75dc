/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CFMessagePort with bytes in the place of CFData, whose references a callback's result and an out-parameter would carry past Swift's eyes.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CFData.h"
#include "CoreRunLoopShims.h"

struct shim_reply {
    CFDataRef data;
};

static _Atomic(shim_receive) receive_function;

void shim_reply_set(struct shim_reply *reply, const uint8_t *bytes, intptr_t length)
{
    if (reply->data) {
        CFRelease(reply->data);
    }
    reply->data = CFDataCreate(NULL, bytes, length);
}

static CFDataRef receive(CFMessagePortRef port, SInt32 number, CFDataRef data, void *info)
{
    struct shim_reply reply = {NULL};

    (void)port;
    atomic_load(&receive_function)(info, number, CFDataGetBytePtr(data), CFDataGetLength(data), &reply);
    return reply.data;
}

CFMessagePortRef shim_message_port_create(CFStringRef name, shim_receive function, void *info, const void *(*retain)(const void *info),
                                          void (*release)(const void *info))
{
    CFMessagePortContext context = {0, info, retain, release, NULL};
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

int32_t shim_message_port_send(CFMessagePortRef port, int32_t number, const uint8_t *bytes, intptr_t length, double send_limit,
                               double reply_limit, uint8_t **ret_reply, intptr_t *ret_length)
{
    CFDataRef data = CFDataCreate(NULL, bytes, length);
    CFDataRef reply = NULL;
    int32_t status;

    if (!data) {
        return kCFMessagePortTransportError;
    }
    /* A mode that nobody adds to: the wait serves nothing but the reply. */
    status = CFMessagePortSendRequest(port, number, data, send_limit, reply_limit, ret_reply ? CFSTR("CoreRunLoop.reply") : NULL,
                                      ret_reply ? &reply : NULL);
    CFRelease(data);
    if (reply && ret_reply && ret_length) {
        *ret_length = CFDataGetLength(reply);
        *ret_reply = malloc((size_t)*ret_length + 1);
        if (*ret_reply) {
            (void)memcpy(*ret_reply, CFDataGetBytePtr(reply), (size_t)*ret_length);
        } else {
            status = kCFMessagePortTransportError;
        }
        CFRelease(reply);
    }
    return status;
}

void shim_free(void *bytes)
{
    free(bytes);
}
