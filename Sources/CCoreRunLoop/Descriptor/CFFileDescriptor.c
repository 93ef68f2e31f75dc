/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CFFileDescriptor: a descriptor, its callback, and which kinds of readiness are armed. Never reads or writes the descriptor.
 *
 * The item lock (I) guards the fields but for the state. The source is made at the first wish, holds a reference on this object, and is
 * known here only weakly.
 *
 * The state is one word, so that a callout takes no lock: it is begun by an update that finds the object valid and takes what is armed, and
 * whoever makes it invalid learns by the same word what callouts are under way. The loops read there what is armed, too, so that arming in
 * the callout what it was called for is one more update.
 */
#include "CoreFoundation/CFFileDescriptor.h"

#include "Kernel/kernel.h"
#include "Loop/descriptor_source.h"
#include "Loop/held.h"
#include "Loop/info_hold.h"
#include "Loop/thread_loop.h"
#include "Loop/watch.h"
#include "Loop/weak_source.h"
#include "Runtime/object.h"
#include "Support/barrier.h"
#include "Support/fault.h"
#include "Support/lock.h"

/* What a callout needs comes first, so that it is in as few cache lines as can be. */
struct __CFFileDescriptor {
    struct object object;
    CFFileDescriptorCallBack callout; /* C */
    _Atomic uint32_t state;
    int descriptor; /* I; -1 once invalid */
    _Atomic(CFRunLoopRef) called_on; /* the loop of the latest callout; NULL is as good as any other loop than one's own */
    struct info_hold info; /* I; callouts are counted in the state, and have begun when they read it without the lock */
    CFFileDescriptorContext context; /* C; without the info */
    bool closes; /* C */
    bool is_valid; /* I; the state's bit goes with it */
    struct weak_source source; /* I */
};

enum state {
    state_armed = descriptor_wanted, /* kinds to be told of */
    state_put_off = descriptor_put_off, /* kinds that were taken by a callout, and for which the loops still watch */
    state_valid = 1 << 8,
    state_releases_late = 1 << 9, /* the last callout that is under way gives up the info */
    state_call = 1 << 10, /* a callout under way: more than one only if the source is in several loops */
};

static void lock(CFFileDescriptorRef f)
{
    lock_take(item_lock(f));
}

static void unlock(CFFileDescriptorRef f)
{
    lock_drop(item_lock(f));
}

static uint32_t armed(CFFileDescriptorRef f)
{
    return atomic_load_explicit(&f->state, memory_order_seq_cst) & state_armed;
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

    void *info;

    if (info_hold_finish(&f->info, &info)) {
        release_context(f, info);
    }
    if (f->is_valid && f->closes) {
        (void)kernel.close(f->descriptor);
    }
}

/* The last callout is over, and the object was made invalid meanwhile. */
static __attribute__((noinline)) void release_late(CFFileDescriptorRef f)
{
    bool releases;
    void *info;

    lock(f);
    releases = info_hold_give_up(&f->info, &info);
    unlock(f);
    if (releases) {
        release_context(f, info);
    }
}

static CFStringRef describe_info(CFFileDescriptorRef f)
{
    CFStringRef text = NULL;
    void *info;

    if (f->context.copyDescription && info_hold_begin_use(&f->info, item_lock(f), &info)) {
        text = f->context.copyDescription(info);
        if (info_hold_end_use(&f->info, item_lock(f), &info)) {
            release_context(f, info);
        }
    }
    return text;
}

static CFStringRef describe(CFTypeRef object)
{
    CFFileDescriptorRef f = (CFFileDescriptorRef)(uintptr_t)object;
    CFStringRef context = describe_info(f);
    CFStringRef text;
    bool is_valid;
    int descriptor;
    const void *info;

    lock(f);
    is_valid = f->is_valid;
    descriptor = f->descriptor;
    info = f->info.info;
    unlock(f);
    text = CFStringCreateWithFormat(
        NULL, NULL, CFSTR("<CFFileDescriptor %p>{valid = %s, descriptor = %d, armed = %u, callout = %p, info = %p%@%@}"), object,
        is_valid ? "Yes" : "No", descriptor, (unsigned)armed(f), (void *)(uintptr_t)f->callout, info,
        context ? CFSTR(", context = ") : CFSTR(""), context ? context : CFSTR(""));

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
        f->context.info = NULL;
        f->info.info = context->retain ? context->retain(context->info) : context->info;
    }
    f->callout = callout;
    f->descriptor = fd;
    f->closes = closeOnInvalidate;
    f->is_valid = true;
    atomic_init(&f->state, state_valid);
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
    context->info = f->info.info;
    unlock(f);
    context->version = 0;
}

Boolean CFFileDescriptorIsValid(CFFileDescriptorRef f)
{
    require(f, "CFFileDescriptorIsValid");
    return (atomic_load_explicit(&f->state, memory_order_acquire) & state_valid) != 0;
}

/* ---- arming ---- */

_Static_assert((int)kCFFileDescriptorReadCallBack == (int)kernel_readable && (int)kCFFileDescriptorWriteCallBack == (int)kernel_writable,
               "what the program arms is what the kernel is asked for");

static uint32_t readiness_of(CFOptionFlags kinds)
{
    return (uint32_t)kinds & state_armed;
}

/* After a change of what is armed: two threads may make one at once, and each has the loops look at the word as it is then. */
static __attribute__((noinline)) void tell_source(CFFileDescriptorRef f, void (*tell)(CFRunLoopSourceRef source))
{
    CFRunLoopSourceRef source;

    barrier_after_update();
    source = descriptor_source_performing(f); /* only now: a source that takes its place meanwhile joins a loop with what is armed then */
    if (source) {
        tell(source);
        return;
    }
    lock(f);
    source = weak_source_retain(&f->source);
    unlock(f);
    if (source) {
        tell(source);
        object_release(source);
    }
}

void CFFileDescriptorEnableCallBacks(CFFileDescriptorRef f, CFOptionFlags callBackTypes)
{
    uint32_t added = readiness_of(callBackTypes);
    uint32_t old;

    require(f, "CFFileDescriptorEnableCallBacks");
    old = atomic_load_explicit(&f->state, memory_order_relaxed);
    do {
        if (!(old & state_valid)) {
            return;
        }
    } while (!atomic_compare_exchange_weak_explicit(&f->state, &old, (old | added) & ~(added << descriptor_put_off_shift),
                                                    memory_order_seq_cst, memory_order_relaxed));
    if (added & ~(old | old >> descriptor_put_off_shift)) {
        tell_source(f, descriptor_source_interest_raised);
    }
}

void CFFileDescriptorDisableCallBacks(CFFileDescriptorRef f, CFOptionFlags callBackTypes)
{
    uint32_t removed = readiness_of(callBackTypes);
    uint32_t old;

    require(f, "CFFileDescriptorDisableCallBacks");
    old = atomic_fetch_and_explicit(&f->state, ~removed, memory_order_seq_cst);
    if (old & removed) {
        tell_source(f, descriptor_source_interest_lowered);
    }
}

/* ---- delivery ---- */

/* Takes what is armed and ready; errors and hang-ups count as both (284). 0: nothing to tell. */
static uint32_t begin_call(CFFileDescriptorRef f, uint32_t ready)
{
    uint32_t old = atomic_load_explicit(&f->state, memory_order_relaxed);
    uint32_t disarmed;
    uint32_t fired;

    if (ready & kernel_failed) {
        ready |= kernel_readable | kernel_writable;
    }
    do {
        fired = ready & old & state_armed;
        if (!(old & state_valid) || !fired) {
            return 0;
        }
        disarmed = old & ~fired; /* before the callout (278) */
        disarmed |= ready & watch_stands ? fired << descriptor_put_off_shift : 0; /* most callbacks arm it again */
    } while (!atomic_compare_exchange_weak_explicit(&f->state, &old, disarmed + state_call, memory_order_seq_cst, memory_order_relaxed));
    atomic_store_explicit(&f->called_on, thread_loop_if_any(), memory_order_relaxed);
    return fired;
}

/* Returns the state as it was. */
static uint32_t end_call(CFFileDescriptorRef f)
{
    uint32_t old;

    if (thread_loop_is_current(atomic_load_explicit(&f->called_on, memory_order_relaxed))) {
        atomic_store_explicit(&f->called_on, NULL, memory_order_relaxed);
    }
    old = atomic_fetch_sub_explicit(&f->state, state_call, memory_order_seq_cst);
    if ((old & state_releases_late) && old / state_call == 1) {
        release_late(f);
    }
    return old;
}

/* It does not return: as if it had, without enabling anything. */
static void end_left_call(const void *object)
{
    CFFileDescriptorRef f = (CFFileDescriptorRef)(uintptr_t)object;

    (void)end_call(f);
    tell_source(f, descriptor_source_interest_lowered);
}

/* The pass holds the source, which holds the object until it is freed itself. */
static void perform(void *object, CFRunLoopSourceRef source, uint32_t ready)
{
    CFFileDescriptorRef f = object;
    uint32_t fired = begin_call(f, ready);
    struct activation *run = held_caller();

    if (!fired) {
        return;
    }
    held_in_hand(run, end_left_call, f);
    f->callout(f, fired, f->info.info);
    held_put_down(run);
    if (fired & ~end_call(f)) {
        descriptor_source_interest_lowered(source);
    }
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

static CFRunLoopSourceRef make_source(CFAllocatorRef allocator, CFFileDescriptorRef f, CFIndex order)
{
    struct descriptor_source_context context = {.info = f,
                                                .interest = &f->state,
                                                .release = object_release,
                                                .forget = forget,
                                                .perform = perform,
                                                .copy_description = describe_source};
    CFRunLoopSourceRef source;
    int descriptor;

    lock(f);
    descriptor = f->descriptor;
    context.callers_info = f->info.info;
    unlock(f);
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
    made = make_source(allocator, f, order);
    if (!made) {
        return NULL;
    }
    source = weak_source_settle(f, &f->source, made, &f->is_valid);
    if (source != made) {
        CFRunLoopSourceInvalidate(made); /* another thread was faster, or has invalidated the object */
    }
    object_release(made);
    return source;
}

/* True if no callout needs the info any more: there is none but the caller's own. Else the last one to end releases it. */
static bool end_state(CFFileDescriptorRef f)
{
    uint32_t old = atomic_load_explicit(&f->state, memory_order_relaxed);
    bool releases;
    uint32_t new;

    do {
        uint32_t calls = old / state_call;

        releases = calls == 0 || (calls == 1 && thread_loop_is_current(atomic_load_explicit(&f->called_on, memory_order_relaxed)));
        new = (old & ~(uint32_t)(state_valid | state_armed | state_put_off)) | (releases ? 0u : state_releases_late);
    } while (!atomic_compare_exchange_weak_explicit(&f->state, &old, new, memory_order_seq_cst, memory_order_relaxed));
    return releases;
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
        releases = end_state(f);
        source = weak_source_retain(&f->source);
        f->source.source = NULL;
        descriptor = f->descriptor;
        f->descriptor = -1;
        releases = releases && info_hold_give_up(&f->info, &info);
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
