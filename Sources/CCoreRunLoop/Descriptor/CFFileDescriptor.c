/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CFFileDescriptor: a descriptor, a callback, and the kinds of readiness that are armed. The library never reads or writes the descriptor.
 *
 * Threads: any. The item lock guards the fields that change, but for the state. The source is made when the program first asks for it. It
 * holds a reference on this object, which knows the source only weakly.
 *
 * The state is one word, so that a callout takes no lock:
 *
 *   arm, disarm     sets or clears kinds in `armed`, if the object is valid
 *   a callout       begins by one update that moves the ready kinds out of `armed` and adds one to the calls; ends by subtracting one
 *   invalidation    clears valid, armed and deferred; the same update says which callouts are under way
 *
 * The loops read in the same word which kinds are armed. A callout that arms its own kinds again needs no more than an update.
 *
 * Always true: only a valid object has armed or deferred kinds; no kind is both armed and deferred; the descriptor is at least 0 exactly
 * while the object is valid.
 */
#include "CoreFoundation/CFFileDescriptor.h"

#include "Kernel/kernel.h"
#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/context_info.h"
#include "Loop/Core/shown.h"
#include "Loop/Core/thread_loop.h"
#include "Loop/Source/descriptor_source.h"
#include "Loop/Source/weak_source.h"
#include "Loop/Run/thread_registry.h"
#include "Loop/Trace/trace.h"
#include "Loop/Watch/watch.h"
#include "Runtime/Object/object.h"
#include "Support/barrier.h"
#include "Support/fault.h"
#include "Support/lock.h"
#include "Support/locked_read.h"

/* Fields without a guard are constant after creation, or atomic. The fields that a callout needs come first, in few cache lines. */
struct __CFFileDescriptor {
    struct object object;
    CFFileDescriptorCallBack callout;
    _Atomic uint32_t state; /* of enum state */
    int descriptor GUARDED_BY(the_item_lock); /* -1 once invalid */
    /*
     * The loop of the latest callout, or NULL. It tells whether the only callout is the calling thread's own. NULL counts as another
     * thread's loop, which is always safe: the info is then released a little later, by the end of the callout.
     */
    _Atomic(CFRunLoopRef) called_on;
    /* Callouts are counted in the state and read the info without the lock: it stays as long as a callout is under way. */
    struct context_info info GUARDED_BY(the_item_lock);
    CFFileDescriptorContext context; /* without the info */
    bool closes;
    bool is_valid GUARDED_BY(the_item_lock); /* changes together with state_valid */
    struct weak_source source;
};

enum state {
    state_armed = descriptor_wanted, /* kinds to be told of */
    state_deferred = descriptor_rearm_deferred, /* kinds that a callout has taken, and for which the loops still watch */
    state_valid = descriptor_interest_end,
    state_releases_late = state_valid << 1, /* the last callout that is under way releases the info */
    state_call = state_valid << 2, /* adds one callout under way: there are several only if the source is in several loops */
};

ACQUIRES(the_item_lock) static void lock_descriptor(CFFileDescriptorRef f)
{
    lock_take(item_lock(f));
}

RELEASES(the_item_lock) static void unlock_descriptor(CFFileDescriptorRef f)
{
    lock_drop(item_lock(f));
}

/* Checks what always holds of the state word, in builds for tests. */
static inline void check_state(uint32_t state)
{
    (void)state;
    invariant((state & state_valid) || !(state & (state_armed | state_deferred)));
    invariant(!(state & state_armed & (state >> descriptor_rearm_deferred_shift)));
    invariant(!(state & state_releases_late) || !(state & state_valid)); /* only an invalidation leaves the info to a callout */
}

/* Checks what always holds of the fields, in builds for tests. */
REQUIRES(the_item_lock) static inline void check_fields(CFFileDescriptorRef f)
{
    invariant_held(item_lock(f));
    invariant((f->descriptor >= 0) == f->is_valid);
    invariant(f->is_valid == ((atomic_load_explicit(&f->state, memory_order_relaxed) & state_valid) != 0));
    invariant(!f->is_valid || !f->info.is_released);
    (void)f;
}

static uint32_t armed_kinds(CFFileDescriptorRef f)
{
    return atomic_load_explicit(&f->state, memory_order_seq_cst) & state_armed;
}

/* ---- the object ---- */

/* Calls the context's release function, if there is one. */
EXCLUDES(the_item_lock) static void release_info(CFFileDescriptorRef f, void *info)
{
    invariant_not_held(item_lock(f)); /* the program's code */
    if (f->context.release) {
        f->context.release(info);
    }
}

/* Nothing else refers to the object any more, not even a source, which holds a reference: the lock is not needed (NOT_CHECKED). */
NOT_CHECKED static void finalize(CFTypeRef object)
{
    CFFileDescriptorRef f = (CFFileDescriptorRef)(uintptr_t)object;
    void *info;

    invariant(!f->source.source);
    check_state(atomic_load_explicit(&f->state, memory_order_relaxed));

    if (context_info_finish(&f->info, &info)) { /* an object that was never invalidated ends like an invalidated one */
        release_info(f, info);
    }
    if (f->is_valid && f->closes) {
        (void)kernel.close(f->descriptor);
    }
}

/* The last callout is over, and the object was invalidated meanwhile: the info is released now. Rare, and so not inlined. */
static __attribute__((noinline)) void release_info_late(CFFileDescriptorRef f)
{
    bool releases;
    void *info;

    lock_descriptor(f);
    invariant(!f->is_valid);
    releases = context_info_retire(&f->info, &info); /* false if a description is under way: then that releases the info */
    unlock_descriptor(f);
    if (releases) {
        release_info(f, info);
    }
}

/* The program's description of its info. NULL if there is no function for that, or the program has got its info back. */
EXCLUDES(the_item_lock)
static CFStringRef copy_info_description(CFFileDescriptorRef f)
{
    CFStringRef text = NULL;
    void *info;

    if (f->context.copyDescription && context_info_begin_use(&f->info, item_lock(f), &info)) {
        text = f->context.copyDescription(info);
        if (context_info_end_use(&f->info, item_lock(f), &info)) {
            release_info(f, info);
        }
    }
    return text;
}

static CFStringRef copy_description(CFTypeRef object)
{
    static const struct shown_bit kinds[] = {{kCFFileDescriptorReadCallBack, "read"},
                                             {kCFFileDescriptorWriteCallBack, "write"},
                                             {kCRLFileDescriptorPriorityCallBack, "priority"},
                                             {0, NULL}};
    CFFileDescriptorRef f = (CFFileDescriptorRef)(uintptr_t)object;
    CFStringRef context = copy_info_description(f);
    struct shown shown[3];
    CFStringRef text;
    bool is_valid;
    int descriptor;
    const void *info;

    lock_descriptor(f);
    is_valid = f->is_valid;
    descriptor = f->descriptor;
    info = f->info.info;
    unlock_descriptor(f);
    text = CFStringCreateWithFormat(NULL, NULL,
                                    CFSTR("<CFFileDescriptor %p>{valid = %s, descriptor = %s, enabled = %s, callout = %s, info = %p%@%@}"),
                                    object, shown_bool(is_valid), shown_descriptor(&shown[0], descriptor),
                                    shown_bits(&shown[1], kinds, armed_kinds(f)), shown_callout(&shown[2], (void (*)(void))f->callout),
                                    info, context ? CFSTR(", context = ") : CFSTR(""), context ? context : CFSTR(""));
    object_release_if_any(context);
    return text;
}

static const struct object_class file_descriptor_class = {
    .type_id = object_type_file_descriptor,
    .name = "CFFileDescriptor",
    .finalize = finalize,
    .copy_description = copy_description,
};

/* Stops the program if `f` is NULL or no file descriptor object. */
static void require_descriptor(CFFileDescriptorRef f, const char *function)
{
    object_check(f, &file_descriptor_class, function, "file descriptor");
}

CFTypeID CFFileDescriptorGetTypeID(void)
{
    return object_type_file_descriptor;
}

/* The object is known to this thread only until it is returned, and needs no lock (NOT_CHECKED). */
NOT_CHECKED CFFileDescriptorRef CFFileDescriptorCreate(CFAllocatorRef allocator, CFFileDescriptorNativeDescriptor fd,
                                                       Boolean closeOnInvalidate, CFFileDescriptorCallBack callout,
                                                       const CFFileDescriptorContext *context)
{
    CFFileDescriptorRef f;

    if (!callout || fd < 0 || !kernel.descriptor_is_open(fd)) {
        return NULL; /* a callback is needed, and a descriptor that is open (rule 277) */
    }
    thread_registry_prepare(); /* its mark frees the locks of items in a child that ran no handlers of fork */
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
    require_descriptor(f, "CFFileDescriptorGetNativeDescriptor");
    return locked_read_int(item_lock(f), &f->descriptor);
}

void CFFileDescriptorGetContext(CFFileDescriptorRef f, CFFileDescriptorContext *context)
{
    require_descriptor(f, "CFFileDescriptorGetContext");
    if (!context) {
        fault_stop("CFFileDescriptorGetContext", "the context is NULL");
    }
    lock_descriptor(f);
    check_fields(f);
    *context = f->context;
    context->info = f->info.info;
    unlock_descriptor(f);
    context->version = 0;
}

Boolean CFFileDescriptorIsValid(CFFileDescriptorRef f)
{
    require_descriptor(f, "CFFileDescriptorIsValid");
    /* Acquire: after the answer "no" the caller also sees what the invalidating thread did before. */
    return (atomic_load_explicit(&f->state, memory_order_acquire) & state_valid) != 0;
}

/* ---- arming ---- */

_Static_assert((int)kCFFileDescriptorReadCallBack == (int)kernel_readable && (int)kCFFileDescriptorWriteCallBack == (int)kernel_writable &&
                   (int)kCRLFileDescriptorPriorityCallBack == (int)kernel_priority,
               "the kinds that the program arms have the bits of the kernel's readiness");

/* Other bits are ignored. */
static uint32_t readiness_of_kinds(CFOptionFlags kinds)
{
    return (uint32_t)kinds & state_armed;
}

/*
 * Has the source's loops look at the state after a change of the armed kinds. Two threads may change them at once. Each of them has the
 * loops look at the word as it is by then, so that the last look sees both changes.
 */
EXCLUDES(the_item_lock)
static __attribute__((noinline)) void tell_source(CFFileDescriptorRef f, void (*tell)(CFRunLoopSourceRef source))
{
    CFRunLoopSourceRef source;

    barrier_after_update();
    /* Looked up after the update: a source that takes its place meanwhile joins its loop with the kinds that are armed by then. */
    source = descriptor_source_performing(f); /* in its callback, which is the common case, the source needs neither lock nor reference */
    if (source) {
        tell(source);
        return;
    }
    lock_descriptor(f);
    source = weak_source_retain(&f->source);
    unlock_descriptor(f);
    if (source) {
        tell(source);
        object_release(source);
    }
}

void CFFileDescriptorEnableCallBacks(CFFileDescriptorRef f, CFOptionFlags callBackTypes)
{
    uint32_t added = readiness_of_kinds(callBackTypes);
    uint32_t old;

    require_descriptor(f, "CFFileDescriptorEnableCallBacks");
    old = atomic_load_explicit(&f->state, memory_order_relaxed);
    do {
        check_state(old);
        if (!(old & state_valid)) {
            return;
        }
        /* A deferred kind is still watched. One update moves it from the deferred ones to the armed ones, and no loop has to be told. */
    } while (!atomic_compare_exchange_weak_explicit(&f->state, &old, (old | added) & ~(added << descriptor_rearm_deferred_shift),
                                                    memory_order_seq_cst, memory_order_relaxed));
    if (added & ~(old | old >> descriptor_rearm_deferred_shift)) {
        tell_source(f, descriptor_source_interest_raised);
    }
}

void CFFileDescriptorDisableCallBacks(CFFileDescriptorRef f, CFOptionFlags callBackTypes)
{
    uint32_t removed = readiness_of_kinds(callBackTypes);
    uint32_t old;

    require_descriptor(f, "CFFileDescriptorDisableCallBacks");
    old = atomic_fetch_and_explicit(&f->state, ~removed, memory_order_seq_cst);
    check_state(old & ~removed);
    if (old & removed) {
        tell_source(f, descriptor_source_interest_lowered);
    }
}

/* ---- delivery ---- */

/*
 * Begins a callout by taking the kinds that are armed and ready. An error or a hang-up counts as all kinds (rule 284). Returns the kinds.
 * 0: there is nothing to tell, and no callout has begun.
 */
static uint32_t begin_call(CFFileDescriptorRef f, uint32_t ready)
{
    uint32_t old = atomic_load_explicit(&f->state, memory_order_relaxed);
    uint32_t disarmed;
    uint32_t fired;

    if (ready & kernel_failed) {
        ready |= descriptor_wanted;
    }
    do {
        fired = ready & old & state_armed;
        if (!(old & state_valid) || !fired) {
            return 0;
        }
        disarmed = old & ~fired; /* before the callback, which may arm them again (rule 278) */
        /* Most callbacks do so. The loop therefore keeps watching until the end of the callout, which saves calls of the kernel. */
        disarmed |= ready & watch_still_installed ? fired << descriptor_rearm_deferred_shift : 0;
        check_state(disarmed + state_call);
        invariant(disarmed <= UINT32_MAX - state_call); /* the count of callouts has not run over */
    } while (!atomic_compare_exchange_weak_explicit(&f->state, &old, disarmed + state_call, memory_order_seq_cst, memory_order_relaxed));
    invariant((fired & ~(uint32_t)state_armed) == 0 && (fired & ~old) == 0); /* only kinds that were asked for */
    atomic_store_explicit(&f->called_on, thread_loop_if_any(), memory_order_relaxed);
    return fired;
}

/* Ends a callout. Returns the state just before that, whose armed kinds are those that the callback has armed. */
static uint32_t end_call(CFFileDescriptorRef f)
{
    uint32_t old;

    if (thread_loop_is_current(atomic_load_explicit(&f->called_on, memory_order_relaxed))) { /* else a later callout is on another loop */
        atomic_store_explicit(&f->called_on, NULL, memory_order_relaxed);
    }
    old = atomic_fetch_sub_explicit(&f->state, state_call, memory_order_seq_cst);
    check_state(old);
    invariant(old / state_call >= 1);
    if ((old & state_releases_late) && old / state_call == 1) {
        release_info_late(f);
    }
    return old;
}

/* A clean-up: the callback did not return. The callout ends as if it had returned without arming anything. */
static void end_abandoned_call(const void *object)
{
    CFFileDescriptorRef f = (CFFileDescriptorRef)(uintptr_t)object;

    (void)end_call(f);
    tell_source(f, descriptor_source_interest_lowered);
}

/*
 * The callback of the run loop source, on the loop's thread. The pass holds the source, and the source holds the object. The info is read
 * without the lock (NOT_CHECKED): the callout that begin_call has counted keeps it.
 */
NOT_CHECKED static void perform_descriptor(void *object, CFRunLoopSourceRef source, uint32_t ready)
{
    CFFileDescriptorRef f = object;
    uint32_t fired = begin_call(f, ready);
    CFRunLoopRef loop = thread_loop_if_any();
    uint32_t mark;

    if (!fired) {
        return;
    }
    invariant_not_held(item_lock(f));
    mark = cleanup_push(loop, end_abandoned_call, f);
    trace_callout_begin(trace_descriptor, f, (void (*)(void))f->callout);
    trace_note_descriptor(fired, f, item_lock(f), &f->descriptor);
    f->callout(f, fired, f->info.info);
    trace_callout_end(trace_descriptor, f);
    cleanup_pop(loop, mark);
    if (fired & ~end_call(f)) { /* a kind was not armed again: the loops stop watching for it */
        descriptor_source_interest_lowered(source);
    }
}

/* ---- the source ---- */

static void forget_source(void *object, CFRunLoopSourceRef source)
{
    CFFileDescriptorRef f = object;

    weak_source_forget(f, &f->source, source);
}

static CFRunLoopSourceRef make_source(CFAllocatorRef allocator, const void *owner, CFIndex order)
{
    CFFileDescriptorRef f = (CFFileDescriptorRef)(uintptr_t)owner;
    const struct descriptor_source_context context = {.interest = &f->state, .forget = forget_source, .perform = perform_descriptor};

    return descriptor_source_create_of(f, allocator, order, locked_read_int(item_lock(f), &f->descriptor), context); /* -1: just ended */
}

CFRunLoopSourceRef CFFileDescriptorCreateRunLoopSource(CFAllocatorRef allocator, CFFileDescriptorRef f, CFIndex order)
{
    require_descriptor(f, "CFFileDescriptorCreateRunLoopSource");
    return weak_source_get_or_make(f, &f->source, &f->is_valid, make_source, allocator, order);
}

/* ---- the end ---- */

/*
 * Makes the state invalid. True if no callout needs the info any more: there is none, or only the caller's own. Otherwise the last callout
 * to end releases it.
 */
REQUIRES(the_item_lock) static bool make_state_invalid(CFFileDescriptorRef f)
{
    uint32_t old = atomic_load_explicit(&f->state, memory_order_relaxed);
    bool releases;
    uint32_t new;

    invariant_held(item_lock(f)); /* so that is_valid changes together with the state */
    do {
        uint32_t calls = old / state_call;

        releases = calls == 0 || (calls == 1 && thread_loop_is_current(atomic_load_explicit(&f->called_on, memory_order_relaxed)));
        new = (old & ~(uint32_t)(state_valid | state_armed | state_deferred)) | (releases ? 0u : state_releases_late);
        invariant(old & state_valid); /* only once */
        check_state(new);
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

    require_descriptor(f, "CFFileDescriptorInvalidate");
    object_retain(f); /* the source's reference may be the last one */
    lock_descriptor(f);
    check_fields(f);
    was_valid = f->is_valid;
    if (was_valid) {
        f->is_valid = false;
        releases = make_state_invalid(f);
        source = weak_source_retain(&f->source);
        f->source.source = NULL;
        descriptor = f->descriptor;
        f->descriptor = -1;
        releases = releases && context_info_retire(&f->info, &info);
    }
    unlock_descriptor(f);
    if (source) {
        CFRunLoopSourceInvalidate(source);
        object_release(source);
    }
    if (releases) {
        release_info(f, info);
    }
    if (was_valid && f->closes) { /* last: a loop must not watch a number that another file may have by then */
        (void)kernel.close(descriptor);
    }
    object_release(f);
}
