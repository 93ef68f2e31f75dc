/* SPDX-License-Identifier: Apache-2.0 */
/* Message ports of this library: the server runs its loop, the client waits in its own. */
#include <CRLRunLoop.h>
#include <CoreFoundation/CoreFoundation.h>

#include "messages.h"

static CFMessagePortRef remote;

static CFStringRef copy_name(const struct place *place)
{
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("benchmark.%s"), place->name);
}

static CFDataRef give_back(CFMessagePortRef port, SInt32 message, CFDataRef data, void *info)
{
    (void)port, (void)message, (void)info;
    return data ? CFRetain(data) : NULL;
}

static CFDataRef note(CFMessagePortRef port, SInt32 message, CFDataRef data, void *info)
{
    (void)port, (void)message, (void)info;
    was_told(data ? (size_t)CFDataGetLength(data) : 0);
    return NULL;
}

static void serve(const struct place *place)
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, copy_name(place), place->is_one_way ? note : give_back, NULL, NULL);

    if (!port) {
        give_up("the port cannot be made");
    }
    CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(NULL, port, 0), kCFRunLoopDefaultMode);
    serving();
    CFRunLoopRun();
}

static bool open_port(const struct place *place)
{
    remote = CFMessagePortCreateRemote(NULL, copy_name(place));
    return remote != NULL;
}

static CFDataRef data_of(const void *bytes, size_t size)
{
    return size > 0 ? CFDataCreateWithBytesNoCopy(NULL, bytes, (CFIndex)size, kCFAllocatorNull) : NULL;
}

static bool tell(const void *message, size_t size)
{
    CFDataRef data = data_of(message, size);
    SInt32 result = CFMessagePortSendRequest(remote, 1, data, 10, 0, NULL, NULL);

    if (data) {
        CFRelease(data);
    }
    return result == kCFMessagePortSuccess;
}

static bool exchange(const void *request, size_t size)
{
    CFDataRef data = data_of(request, size);
    CFDataRef reply = NULL;
    SInt32 result = CFMessagePortSendRequest(remote, 1, data, 10, 10, kCFRunLoopDefaultMode, &reply);
    bool is_same = result == kCFMessagePortSuccess && (reply ? (size_t)CFDataGetLength(reply) : 0) == size;

    if (data) {
        CFRelease(data);
    }
    if (reply) {
        CFRelease(reply);
    }
    return is_same;
}

/* The same with loops that stay awake for a while before they sleep. */
static void stay_awake(void)
{
    CRLRunLoopSetBusyWait(CFRunLoopGetCurrent(), 0.00005);
}

static void serve_awake(const struct place *place)
{
    stay_awake();
    serve(place);
}

static bool open_awake(const struct place *place)
{
    stay_awake();
    return open_port(place);
}

const struct peer awake_port_peer = {
    .name = "ports-awake", .what = "the same, waiting awake", .serve = serve_awake, .open = open_awake, .exchange = exchange, .tell = tell};
const struct peer port_peer = {
    .name = "ports", .what = "CFMessagePort of this library", .serve = serve, .open = open_port, .exchange = exchange, .tell = tell};
