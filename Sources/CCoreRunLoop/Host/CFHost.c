/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of hosts. */
#include "CFNetwork/CFHost.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "Host/host.h"
#include "Host/host_ask.h"
#include "Host/host_client.h"
#include "Host/host_schedule.h"
#include "Loop/Run/thread_registry.h"
#include "Support/fault.h"

CFTypeID CFHostGetTypeID(void)
{
    return object_type_host;
}

static void check(CFHostRef host, const char *function)
{
    object_check(host, &host_class, function, "host");
}

/* ---- making ---- */

static CFArrayRef array_of(CFAllocatorRef allocator, CFTypeRef value)
{
    CFArrayRef array = value ? CFArrayCreate(allocator, &value, 1, &kCFTypeArrayCallBacks) : NULL;

    object_release_if_any(value);
    return array;
}

CFHostRef CFHostCreateWithName(CFAllocatorRef allocator, CFStringRef hostname)
{
    CFTypeRef known[host_info_count] = {NULL};

    if (!hostname) {
        return NULL;
    }
    object_require(hostname, object_type_string, "CFHostCreateWithName", "name");
    known[kCFHostNames] = array_of(allocator, CFStringCreateCopy(allocator, hostname));
    return known[kCFHostNames] ? host_create(allocator, hostname, known) : NULL;
}

static bool is_address(CFDataRef data)
{
    const struct sockaddr *address = (const struct sockaddr *)(const void *)CFDataGetBytePtr(data);
    CFIndex length = CFDataGetLength(data);
    sa_family_t family;

    if (length < (CFIndex)sizeof address->sa_family) {
        return false;
    }
    memcpy(&family, &address->sa_family, sizeof family);
    return (family == AF_INET && length >= (CFIndex)sizeof(struct sockaddr_in)) ||
           (family == AF_INET6 && length >= (CFIndex)sizeof(struct sockaddr_in6));
}

CFHostRef CFHostCreateWithAddress(CFAllocatorRef allocator, CFDataRef addr)
{
    CFTypeRef known[host_info_count] = {NULL};

    if (!addr) {
        return NULL;
    }
    object_require(addr, object_type_data, "CFHostCreateWithAddress", "address");
    if (!is_address(addr)) {
        return NULL;
    }
    known[kCFHostAddresses] = array_of(allocator, CFDataCreateCopy(allocator, addr));
    return known[kCFHostAddresses] ? host_create(allocator, NULL, known) : NULL;
}

CFHostRef CFHostCreateCopy(CFAllocatorRef alloc, CFHostRef host)
{
    CFTypeRef known[host_info_count];

    check(host, "CFHostCreateCopy");
    host_lock(host);
    for (int info = 0; info < host_info_count; info++) {
        known[info] = host->known[info] ? CFRetain(host->known[info]) : NULL;
    }
    host_unlock(host);
    return host_create(alloc, host->name, known);
}

/* ---- what it knows ---- */

/* Borrowed. */
static CFTypeRef known(CFHostRef host, CFHostInfoType info, Boolean *ret_is_known)
{
    CFTypeRef value;

    host_lock(host);
    value = host->known[info];
    host_unlock(host);
    if (ret_is_known) {
        *ret_is_known = value != NULL;
    }
    return value;
}

CFArrayRef CFHostGetAddressing(CFHostRef theHost, Boolean *hasBeenResolved)
{
    check(theHost, "CFHostGetAddressing");
    return known(theHost, kCFHostAddresses, hasBeenResolved);
}

CFArrayRef CFHostGetNames(CFHostRef theHost, Boolean *hasBeenResolved)
{
    check(theHost, "CFHostGetNames");
    return known(theHost, kCFHostNames, hasBeenResolved);
}

CFDataRef CFHostGetReachability(CFHostRef theHost, Boolean *hasBeenResolved)
{
    check(theHost, "CFHostGetReachability");
    return known(theHost, kCFHostReachability, hasBeenResolved);
}

/* ---- asking ---- */

static bool has_client(CFHostRef host)
{
    bool answer;

    host_lock(host);
    answer = host->client;
    host_unlock(host);
    return answer;
}

Boolean CFHostStartInfoResolution(CFHostRef theHost, CFHostInfoType info, CFStreamError *error)
{
    CFStreamError reason = {kCFStreamErrorDomainPOSIX, EINVAL};
    bool is_known_or_begun = false;

    check(theHost, "CFHostStartInfoResolution");
    if (info >= kCFHostAddresses && info < host_info_count) {
        object_retain(theHost); /* another thread, or a callback, may release it meanwhile */
        is_known_or_begun = has_client(theHost) ? host_ask(theHost, info, &reason) : host_ask_and_wait(theHost, info, &reason);
        object_release(theHost);
    }
    if (error) {
        *error = reason;
    }
    return is_known_or_begun;
}

void CFHostCancelInfoResolution(CFHostRef theHost, CFHostInfoType info)
{
    check(theHost, "CFHostCancelInfoResolution");
    host_cancel(theHost, info);
}

Boolean CFHostSetClient(CFHostRef theHost, CFHostClientCallBack clientCB, CFHostClientContext *clientContext)
{
    check(theHost, "CFHostSetClient");
    return host_client_set(theHost, clientCB, clientContext);
}

/* ---- loops ---- */

void CFHostScheduleWithRunLoop(CFHostRef theHost, CFRunLoopRef runLoop, CFStringRef runLoopMode)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    check(theHost, "CFHostScheduleWithRunLoop");
    object_require(runLoop, object_type_run_loop, "CFHostScheduleWithRunLoop", "loop");
    object_require(runLoopMode, object_type_string, "CFHostScheduleWithRunLoop", "mode");
    if (!host_schedule_add(theHost, runLoop, runLoopMode)) {
        fault_log_once(&logged, "CFHost: no memory to schedule a host; its client is told nothing until it is scheduled again");
    }
}

void CFHostUnscheduleFromRunLoop(CFHostRef theHost, CFRunLoopRef runLoop, CFStringRef runLoopMode)
{
    check(theHost, "CFHostUnscheduleFromRunLoop");
    object_require(runLoop, object_type_run_loop, "CFHostUnscheduleFromRunLoop", "loop");
    object_require(runLoopMode, object_type_string, "CFHostUnscheduleFromRunLoop", "mode");
    host_schedule_remove(theHost, runLoop, runLoopMode);
}
