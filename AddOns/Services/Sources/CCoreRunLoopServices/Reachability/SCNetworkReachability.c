/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on reachability but those that schedule (reach_schedule.c), and the object: see reach_target.h. Any thread. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "File/notify_kernel.h"
#include "Reachability/reach_target.h"
#include "Reachability/route_look.h"
#include "Support/invariant.h"
#include "service_object.h"

static _Atomic CFTypeID target_type;

/* ---- the object ---- */

static void close_if_open(int descriptor)
{
    if (descriptor >= 0) {
        (void)notify_kernel.close(descriptor);
    }
}

/* Nobody else has the target any more (NOT_CHECKED). */
NOT_CHECKED static void finalize(CFTypeRef object)
{
    reach_target_ref target = reach_target(object);

    invariant(!reach_is_ours(target) || (!target->source && !target->queue_source && !target->host)); /* a child leaves them alone */
    close_if_open(target->changes);
    close_if_open(target->alarm);
    close_if_open(target->set);
    if (target->addresses) {
        CFRelease(target->addresses);
    }
    if (target->name) {
        CFRelease(target->name);
    }
    reach_listener_release(target->listener);
    service_lock_destroy(&target->lock);
}

static struct reach_listener *copy_listener(reach_target_ref target)
{
    struct reach_listener *listener;

    if (!reach_is_ours(target)) {
        return NULL;
    }
    service_lock_take(&target->lock);
    listener = target->listener;
    if (listener) {
        atomic_fetch_add_explicit(&listener->references, 1, memory_order_relaxed);
    }
    service_lock_drop(&target->lock);
    return listener;
}

static CFStringRef copy_description(CFTypeRef object)
{
    reach_target_ref target = reach_target(object);
    struct reach_listener *listener = copy_listener(target);
    CFStringRef context = listener && listener->context.copyDescription ? listener->context.copyDescription(listener->context.info) : NULL;
    CFStringRef text = CFStringCreateWithFormat(NULL, NULL, CFSTR("<SCNetworkReachability %p>{name = %@, context = %@}"), object,
                                                target->name ? target->name : CFSTR("(an address)"), context ? context : CFSTR("none"));

    if (context) {
        CFRelease(context);
    }
    reach_listener_release(listener);
    return text;
}

CFTypeID SCNetworkReachabilityGetTypeID(void)
{
    static const CRLTypeFunctions functions = {.name = "SCNetworkReachability", .finalize = finalize, .copyDescription = copy_description};

    return service_type(&target_type, &functions);
}

/* ---- making ---- */

/* Takes the name over. */
static SCNetworkReachabilityRef make_target(CFAllocatorRef allocator, const union route_end *local, const union route_end *remote,
                                            CFStringRef name)
{
    reach_target_ref target = CRLTypeCreateObject(allocator, SCNetworkReachabilityGetTypeID(), sizeof *target);

    if (!target) {
        if (name) {
            CFRelease(name);
        }
        (void)sc_status_leave(kSCStatusFailed);
        return NULL;
    }
    target->local = *local;
    target->remote = *remote;
    target->name = name;
    target->process = getpid();
    target->set = target->alarm = target->changes = -1;
    service_lock_init(&target->lock);
    return target;
}

SCNetworkReachabilityRef SCNetworkReachabilityCreateWithAddress(CFAllocatorRef allocator, const struct sockaddr *address)
{
    return SCNetworkReachabilityCreateWithAddressPair(allocator, NULL, address);
}

SCNetworkReachabilityRef SCNetworkReachabilityCreateWithAddressPair(CFAllocatorRef allocator, const struct sockaddr *localAddress,
                                                                    const struct sockaddr *remoteAddress)
{
    union route_end local = {.any = {.sa_family = AF_UNSPEC}};
    union route_end remote = {.any = {.sa_family = AF_UNSPEC}};
    bool is_valid = (localAddress || remoteAddress) && (!localAddress || route_end_make(&local, localAddress)) &&
                    (!remoteAddress || route_end_make(&remote, remoteAddress)) &&
                    (!localAddress || !remoteAddress || local.any.sa_family == remote.any.sa_family);

    if (!is_valid) {
        (void)sc_status_leave(kSCStatusInvalidArgument);
        return NULL;
    }
    return make_target(allocator, &local, &remote, NULL);
}

SCNetworkReachabilityRef SCNetworkReachabilityCreateWithName(CFAllocatorRef allocator, const char *nodename)
{
    static const union route_end none = {.any = {.sa_family = AF_UNSPEC}};
    CFStringRef name = nodename && nodename[0] != '\0' ? CFStringCreateWithCString(allocator, nodename, kCFStringEncodingUTF8) : NULL;

    if (!name) {
        (void)sc_status_leave(kSCStatusInvalidArgument);
        return NULL;
    }
    return make_target(allocator, &none, &none, name);
}

/* ---- flags ---- */

/* The flags of what is scheduled, or of an address. Returns false for a name that has to be asked for. */
static bool look_now(reach_target_ref target, SCNetworkReachabilityFlags *flags, int *ret_result)
{
    bool looks = !target->name;

    if (looks) {
        *ret_result = route_look(&target->local, &target->remote, flags);
    } else if (reach_is_ours(target)) {
        service_lock_take(&target->lock);
        looks = target->source || target->queue_source;
        *ret_result = looks ? reach_look(target, flags) : 0;
        service_lock_drop(&target->lock);
    }
    return looks;
}

static int ask_now(reach_target_ref target, SCNetworkReachabilityFlags *flags)
{
    CFArrayRef addresses;
    CFStreamError error;
    int result = reach_ask_and_wait(target->name, &addresses, &error) ? route_look_each(addresses, flags) : -ENODATA;

    if (addresses) {
        CFRelease(addresses);
    }
    return result;
}

Boolean SCNetworkReachabilityGetFlags(SCNetworkReachabilityRef target, SCNetworkReachabilityFlags *flags)
{
    reach_target_ref found = reach_target(target);
    int result;

    service_require(target, SCNetworkReachabilityGetTypeID(), "SCNetworkReachabilityGetFlags", "target");
    if (!flags) {
        return sc_status_leave(kSCStatusInvalidArgument);
    }
    *flags = 0;
    if (!look_now(found, flags, &result)) {
        result = ask_now(found, flags);
    }
    if (result < 0) {
        *flags = 0;
    }
    return sc_status_leave(result < 0 ? kSCStatusReachabilityUnknown : kSCStatusOK);
}

/* ---- the callback ---- */

/* Returns NULL if there is no memory. */
static struct reach_listener *make_listener(SCNetworkReachabilityCallBack callout, const SCNetworkReachabilityContext *context)
{
    struct reach_listener *listener = calloc(1, sizeof *listener);

    if (listener) {
        atomic_init(&listener->references, 1);
        listener->callout = callout;
        if (context) {
            listener->context = *context;
            listener->context.info = context->retain ? (void *)(uintptr_t)context->retain(context->info) : context->info;
        }
    }
    return listener;
}

Boolean SCNetworkReachabilitySetCallback(SCNetworkReachabilityRef target, SCNetworkReachabilityCallBack callout,
                                         SCNetworkReachabilityContext *context)
{
    reach_target_ref found = reach_target(target);
    struct reach_listener *listener = NULL;
    struct reach_listener *before;

    service_require(target, SCNetworkReachabilityGetTypeID(), "SCNetworkReachabilitySetCallback", "target");
    if ((context && context->version != 0) || !reach_is_ours(found)) {
        return sc_status_leave(kSCStatusInvalidArgument);
    }
    if (callout) {
        listener = make_listener(callout, context);
        if (!listener) {
            return sc_status_leave(kSCStatusFailed);
        }
    }
    service_lock_take(&found->lock);
    before = found->listener;
    found->listener = listener;
    service_lock_drop(&found->lock);
    reach_listener_release(before);
    return true;
}
