/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CFFileDescriptor: a descriptor, its callback, and which kinds of readiness are armed. Never reads or writes the descriptor.
 *
 * The item lock (I) guards the fields. The source is made at the first wish, holds a reference on this object, and is known here only
 * weakly.
 */
#include "CoreFoundation/CFFileDescriptor.h"

#include "Kernel/kernel.h"
#include "Loop/descriptor_source.h"
#include "Loop/thread_loop.h"
#include "Loop/weak_source.h"
#include "Runtime/object.h"
#include "Support/fault.h"
#include "Support/lock.h"

static const CFOptionFlags known_kinds = kCFFileDescriptorReadCallBack | kCFFileDescriptorWriteCallBack;

struct __CFFileDescriptor {
    struct object object;
    CFFileDescriptorCallBack callout; /* C */
    CFFileDescriptorContext context; /* C but for the info: I; NULL once released */
    int descriptor; /* I; -1 once invalid */
    bool closes; /* C */
    bool is_valid; /* I */
    bool releases_late; /* I; the last callout that is under way releases the info */
    uint32_t calls; /* I; callouts under way: more than one only if the source is in several loops */
    CFRunLoopRef called_on; /* I; the loop of the latest of them */
    _Atomic uint32_t armed; /* kinds to be told of, as kernel_readiness; written under I */
    struct weak_source source; /* I */
};

static void lock(CFFileDescriptorRef f)
{
    lock_take(item_lock(f));
}

static void unlock(CFFileDescriptorRef f)
{
    lock_drop(item_lock(f));
}

/* ---- the object ---- */

static void release_context(CFFileDescriptorRef f, void *info)
{
    if (f->context.release) {
        f->context.release(info);
    }
}

/* No source is left, for a source holds a reference. */
static void finalize(CFTypeRef object)
{
    CFFileDescriptorRef f = (CFFileDescriptorRef)(uintptr_t)object;

    if (f->is_valid) {
        release_context(f, f->context.info);
        if (f->closes) {
            (void)kernel.close(f->descriptor);
        }
    }
}

static CFStringRef describe(CFTypeRef object)
{
    CFFileDescriptorRef f = (CFFileDescriptorRef)(uintptr_t)object;
    CFStringRef context = f->context.copyDescription ? f->context.copyDescription(f->context.info) : NULL;
    CFStringRef text = CFStringCreateWithFormat(
        NULL, NULL, CFSTR("<CFFileDescriptor %p>{valid = %s, descriptor = %d, armed = %u, callout = %p, info = %p%@%@}"), object,
        f->is_valid ? "Yes" : "No", f->descriptor, (unsigned)atomic_load_explicit(&f->armed, memory_order_relaxed),
        (void *)(uintptr_t)f->callout, f->context.info, context ? CFSTR(", context = ") : CFSTR(""), context ? context : CFSTR(""));

    if (context) {
        CFRelease(context);
    }
    return text;
}

static const struct object_class file_descriptor_class = {
    .type_id = object_type_file_descriptor,
    .name = "CFFileDescriptor",
    .finalize = finalize,
    .copy_description = describe,
};

static void require(CFFileDescriptorRef f, const char *function)
{
    object_check(f, &file_descriptor_class, function, "file descriptor");
}

CFTypeID CFFileDescriptorGetTypeID(void)
{
    return object_type_file_descriptor;
}

CFFileDescriptorRef CFFileDescriptorCreate(CFAllocatorRef allocator, CFFileDescriptorNativeDescriptor fd, Boolean closeOnInvalidate,
                                           CFFileDescriptorCallBack callout, const CFFileDescriptorContext *context)
{
    CFFileDescriptorRef f;

    if (!callout || fd < 0 || !kernel.descriptor_is_open(fd)) {
        return NULL; /* 277 */
    }
    f = object_create(allocator, &file_descriptor_class, sizeof *f);
    if (!f) {
        return NULL;
    }
    if (context) {
        f->context = *context;
        f->context.info = context->retain ? context->retain(context->info) : context->info;
    }
    f->callout = callout;
    f->descriptor = fd;
    f->closes = closeOnInvalidate;
    f->is_valid = true;
    return f;
}

CFFileDescriptorNativeDescriptor CFFileDescriptorGetNativeDescriptor(CFFileDescriptorRef f)
{
    int descriptor;

    require(f, "CFFileDescriptorGetNativeDescriptor");
    lock(f);
    descriptor = f->descriptor;
    unlock(f);
    return descriptor;
}

void CFFileDescriptorGetContext(CFFileDescriptorRef f, CFFileDescriptorContext *context)
{
    require(f, "CFFileDescriptorGetContext");
    if (!context) {
        fault_stop("CFFileDescriptorGetContext", "the context is NULL");
    }
    lock(f);
    *context = f->context;
    unlock(f);
    context->version = 0;
}

Boolean CFFileDescriptorIsValid(CFFileDescriptorRef f)
{
    bool is_valid;

    require(f, "CFFileDescriptorIsValid");
    lock(f);
    is_valid = f->is_valid;
    unlock(f);
    return is_valid;
}

/* ---- arming ---- */

static uint32_t readiness_of(CFOptionFlags kinds)
{
    return (kinds & kCFFileDescriptorReadCallBack ? kernel_readable : 0u) | (kinds & kCFFileDescriptorWriteCallBack ? kernel_writable : 0u);
}

static CFOptionFlags kinds_of(uint32_t readiness)
{
    return (readiness & kernel_readable ? kCFFileDescriptorReadCallBack : 0ul) |
           (readiness & kernel_writable ? kCFFileDescriptorWriteCallBack : 0ul);
}

/* Makes the source's interest what is armed. Two threads may arm and disarm at once: whoever comes last finds the other's change. */
static void tell_source_by(CFFileDescriptorRef f, CFRunLoopSourceRef source, void (*tell)(CFRunLoopSourceRef source, uint32_t interest))
{
    uint32_t armed = atomic_load_explicit(&f->armed, memory_order_acquire);
    uint32_t told;

    do {
        told = armed;
        tell(source, told);
        armed = atomic_load_explicit(&f->armed, memory_order_acquire);
    } while (armed != told);
}

static void tell_source(CFFileDescriptorRef f, CFRunLoopSourceRef source)
{
    tell_source_by(f, source, descriptor_source_set_interest);
}

static void arm(CFFileDescriptorRef f, uint32_t added, uint32_t removed)
{
    CFRunLoopSourceRef source;

    lock(f);
    if (f->is_valid) {
        uint32_t armed = atomic_load_explicit(&f->armed, memory_order_relaxed);

        atomic_store_explicit(&f->armed, (armed | added) & ~removed, memory_order_release);
    }
    source = weak_source_retain(&f->source);
    unlock(f);
    if (source) {
        tell_source(f, source);
        object_release(source);
    }
}

void CFFileDescriptorEnableCallBacks(CFFileDescriptorRef f, CFOptionFlags callBackTypes)
{
    require(f, "CFFileDescriptorEnableCallBacks");
    arm(f, readiness_of(callBackTypes & known_kinds), 0);
}

void CFFileDescriptorDisableCallBacks(CFFileDescriptorRef f, CFOptionFlags callBackTypes)
{
    require(f, "CFFileDescriptorDisableCallBacks");
    arm(f, 0, readiness_of(callBackTypes & known_kinds));
}

/* ---- delivery ---- */

/* Takes what is armed and ready; errors and hang-ups count as both (284). 0: nothing to tell. */
static uint32_t begin_call(CFFileDescriptorRef f, uint32_t ready, void **ret_info)
{
    uint32_t fired;
    uint32_t armed;

    if (ready & kernel_failed) {
        ready |= kernel_readable | kernel_writable;
    }
    lock(f);
    armed = atomic_load_explicit(&f->armed, memory_order_relaxed);
    fired = f->is_valid ? ready & armed : 0;
    atomic_store_explicit(&f->armed, armed & ~fired, memory_order_release); /* before the callout (278) */
    if (fired) {
        f->calls++;
        f->called_on = thread_loop_current();
        *ret_info = f->context.info;
    }
    unlock(f);
    return fired;
}

static void end_call(CFFileDescriptorRef f)
{
    void *info = NULL;
    bool releases;

    lock(f);
    f->calls--;
    releases = f->releases_late && f->calls == 0;
    if (releases) {
        f->releases_late = false;
        info = f->context.info;
        f->context.info = NULL;
    }
    unlock(f);
    if (releases) {
        release_context(f, info);
    }
}

/* The pass holds the source, which holds the object until it is freed itself. */
static void perform(void *object, CFRunLoopSourceRef source, uint32_t ready)
{
    CFFileDescriptorRef f = object;
    void *info = NULL;
    uint32_t fired = begin_call(f, ready, &info);

    if (!fired) {
        return;
    }
    tell_source_by(f, source, descriptor_source_put_off); /* most callbacks arm it again */
    f->callout(f, kinds_of(fired), info);
    if (fired & ~atomic_load_explicit(&f->armed, memory_order_acquire)) {
        descriptor_source_settle(source);
    }
    end_call(f);
}

/* ---- the source ---- */

static void forget(void *object, CFRunLoopSourceRef source)
{
    CFFileDescriptorRef f = object;

    weak_source_forget(f, &f->source, source);
}

static CFStringRef describe_source(const void *object)
{
    return CFCopyDescription(object);
}

static CFRunLoopSourceRef make_source(CFAllocatorRef allocator, CFFileDescriptorRef f, int descriptor, CFIndex order)
{
    const struct descriptor_source_context context = {
        .info = f, .release = object_release, .forget = forget, .perform = perform, .copy_description = describe_source};
    CFRunLoopSourceRef source;

    object_retain(f);
    source = descriptor_source_create(allocator, order, descriptor, &context);
    if (!source) {
        object_release(f);
    }
    return source;
}

CFRunLoopSourceRef CFFileDescriptorCreateRunLoopSource(CFAllocatorRef allocator, CFFileDescriptorRef f, CFIndex order)
{
    CFRunLoopSourceRef source;
    CFRunLoopSourceRef made;

    require(f, "CFFileDescriptorCreateRunLoopSource");
    source = weak_source_settle(f, &f->source, NULL, &f->is_valid);
    if (source || !CFFileDescriptorIsValid(f)) {
        return source;
    }
    made = make_source(allocator, f, CFFileDescriptorGetNativeDescriptor(f), order);
    if (!made) {
        return NULL;
    }
    source = weak_source_settle(f, &f->source, made, &f->is_valid);
    if (source == made) {
        tell_source(f, made);
    } else {
        CFRunLoopSourceInvalidate(made); /* another thread was faster, or has invalidated the object */
    }
    object_release(made);
    return source;
}

void CFFileDescriptorInvalidate(CFFileDescriptorRef f)
{
    CFRunLoopSourceRef source = NULL;
    void *info = NULL;
    int descriptor = -1;
    bool was_valid;
    bool releases = false;

    require(f, "CFFileDescriptorInvalidate");
    object_retain(f);
    lock(f);
    was_valid = f->is_valid;
    if (was_valid) {
        f->is_valid = false;
        atomic_store_explicit(&f->armed, 0, memory_order_release);
        source = weak_source_retain(&f->source);
        f->source.source = NULL;
        descriptor = f->descriptor;
        f->descriptor = -1;
        /* A callout on another thread still uses the info: the last one to end releases it. */
        releases = f->calls == 0 || (f->calls == 1 && thread_loop_is_current(f->called_on));
        f->releases_late = !releases;
        info = f->context.info;
        if (releases) {
            f->context.info = NULL;
        }
    }
    unlock(f);
    if (source) {
        CFRunLoopSourceInvalidate(source);
        object_release(source);
    }
    if (releases) {
        release_context(f, info);
    }
    if (was_valid && f->closes) {
        (void)kernel.close(descriptor);
    }
    object_release(f);
}
