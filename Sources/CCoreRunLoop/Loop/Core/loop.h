/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run loop: the structure that the rooms of this layer share, and what guards each field.
 *
 * Who may touch a field stands behind it: GUARDED_BY(the_loop_lock) is checked by scripts/check-guards. "loop's thread" means that only the
 * thread whose loop it is touches the field, and needs no lock. "constant" means that it does not change after creation.
 *
 * Lock order: registry -> loop -> item -> waker pool. No thread holds two loops at once, nor takes a loop's lock while it holds an item's.
 * No lock is held at any callout; at any retain, release, hash, equal or copyDescription of a context; at the disposal of a block; or when
 * a reference is dropped that may be the last.
 *
 * Invariants
 *   (I1) A source's mark is set and one of its bindings leads to this loop => one of three holds. The binding is in the waker's queue. Or
 *        its members are in the pending lists. Or a thread in source_signal or source_add is about to put them there, and wakes the loop
 *        afterwards if the loop may have looked before.
 *   (I2) A mark is taken by exactly one compare-and-swap. Queues and pending lists are hints.
 *   (I3) A binding that leads to a loop holds one reference on its source and one on the loop. A timer or observer in a loop is referenced
 *        once by the loop, and holds no reference on it.
 *   (I4) The work of a pass is proportional to what is signalled, due or ready in its mode.
 *   (I5) While the loop sleeps, `sleep_timers_ns` is no later than the limit of any timer of the mode `waiting`, or RETIME is set.
 */
#ifndef CRL_LOOP_CORE_LOOP_H
#define CRL_LOOP_CORE_LOOP_H

#include "Loop/link_names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "CoreFoundation/CFRunLoop.h"
#include "Loop/Core/mode.h"
#include "Loop/Wake/waker.h"
#include "Runtime/Object/object.h"
#include "Support/hash_table.h"
#include "Support/list.h"
#include "Support/lock.h"

/* What ended a wait. Step 9 of a pass handles one of them. */
enum wake_cause { cause_none, cause_wake_up, cause_timers, cause_source, cause_main_queue };

/* A source whose turn it is: the kernel reported its descriptor, or it is performed alone in step 4. Loop's thread. */
struct ready_source {
    CFRunLoopSourceRef source; /* NULL: none */
    uint32_t ready; /* the kernel's report; 0: the source's callback has declined it. Not used in step 4 */
    bool has_lent_reference; /* it uses loop->lent_reference; otherwise it has a reference of its own */
    uint32_t cleanup; /* what cleanup_push returned: 0, or the place of its clean-up for cleanup_pop */
};

/* One clean-up, and the stack of them; see callout_cleanup.h. Loop's thread. */
struct cleanup {
    void (*function)(const void *object); /* NULL: there is nothing to do */
    const void *object;
};

enum { cleanups_at_first = 8 };

struct cleanup_stack {
    struct cleanup *items; /* first_items, or from malloc */
    uint32_t count;
    uint32_t capacity;
    struct cleanup first_items[cleanups_at_first];
};

static inline void cleanup_stack_init(struct cleanup_stack *stack)
{
    stack->items = stack->first_items;
    stack->count = 0;
    stack->capacity = cleanups_at_first;
}

/* One run of the loop; run.h says where it is stored. Loop's thread; `outer` and `mode` are written with the lock, for others to read. */
struct run {
    struct run *outer; /* the run around it, or NULL */
    struct mode *mode;
    uintptr_t frame; /* constant: the stack address of its function; 0: unknown */
    int64_t deadline_ns; /* kernel_never: no limit */
    bool is_allocated; /* constant */
    bool polls; /* its limit is 0: it makes one pass and does not sleep */
    bool returns_after_source;
    bool has_handled_source; /* in this pass */
    bool is_before_waiting; /* BeforeWaiting was sent, or is being sent, and the loop does not sleep yet */
    bool is_hosted_asleep; /* another loop, the host, has its wait: it sleeps, or is told to go on at once */
    bool took_token; /* a wake-up ended a wait of this run or of a run inside it */
    bool is_owed_token; /* a run inside its BeforeWaiting observers took a wake-up, which is put back before this run sleeps */
    bool skips_main_queue; /* the next look at the main queue (step 5) is left out (rule 181) */
    uint64_t poll_number; /* of a run with a limit of 0, once a source has asked for it (descriptor_source_poll_number) */
    int64_t companion_turn_ns; /* when the companion's last turn or sleep ended; 0: it had none in this run */
    const _Atomic uint32_t *awaited; /* constant: NULL, or a word; with returns_after_source the run ends once it is not 0 */
    uint32_t outer_word; /* the wake word when the run began */
    uint32_t cleanup_base; /* the height of the stack of clean-ups when the run began */
    struct cleanup callout; /* of the observer or the blocks that it calls; without an object there is none */
    CFRunLoopSourceRef performing; /* the descriptor's source in whose callout it is */
    struct ready_source report; /* the source to perform in step 9, found by the wait; or one that is performed alone in step 4 */
};

/* What the rooms below call when something happens to a loop whose waits another loop does (Run/host_wait.c). The lock is held. */
struct host_wait_hooks {
    void (*run_abandoned)(CFRunLoopRef loop, const struct run *run);
    void (*descriptors_lost)(CFRunLoopRef loop); /* the program has closed descriptors of the loop, perhaps also the host's */
};

/*
 * Whoever waits in the place of a loop (Run/companion.c). The functions are called on the loop's thread, with the lock, and drop it
 * meanwhile.
 */
struct waiter {
    enum wake_cause (*wait)(CFRunLoopRef loop, struct run *run); /* step 7 of a pass that sleeps; as wait_for_cause */
    void (*look)(CFRunLoopRef loop, struct run *run); /* the pass does not sleep: the waiter handles what it has ready */
    bool (*is_empty)(CFRunLoopRef loop, CFRunLoopMode mode); /* a run of the mode would have nothing of the waiter's to wait for */
};

struct __CFRunLoop {
    struct object object;
    struct waker *waker; /* constant until the loop is freed */
    struct mode *modes GUARDED_BY(the_loop_lock); /* in the order in which they were made; the default mode comes first */
    struct mode **modes_end GUARDED_BY(the_loop_lock);
    struct hash_table modes_by_name GUARDED_BY(the_loop_lock); /* empty while there are few modes */
    uint32_t mode_count GUARDED_BY(the_loop_lock);
    struct mode *default_mode; /* constant */
    struct mode *common_modes GUARDED_BY(the_loop_lock); /* in the order in which they became common; the default mode comes first */
    struct mode **common_modes_end GUARDED_BY(the_loop_lock);
    struct lock lock; /* in another cache line than `waker`, which threads read that wake the loop */
    bool is_dead GUARDED_BY(the_loop_lock); /* its thread has ended: nothing can be added (rule 175) */
    _Atomic(pthread_t) thread; /* relaxed; 0 until the thread first asks for its loop. Lives as long as the loop is not dead */
    bool is_main; /* constant; but the child of a fork may set it for its only thread */
    bool is_niced GUARDED_BY(the_loop_lock); /* see loop_note_slack */
    bool in_main_queue; /* loop's thread: a block of the main dispatch queue is running (rule 179) */
    struct run *innermost_run; /* loop's thread; written with the lock, for others to read with it */
    struct run first_run; /* the storage of the outermost run, unless that is a hosted one */
    struct cleanup_stack cleanups; /* loop's thread */
    struct mode *waiting GUARDED_BY(the_loop_lock); /* the mode in which the loop sleeps, or NULL */
    int64_t sleep_limit_ns GUARDED_BY(the_loop_lock); /* when the sleep must end at the latest; the kernel may be asked to end it earlier */
    int64_t sleep_timers_ns GUARDED_BY(the_loop_lock); /* the instant of timers (Core/instant.h) that the limit was made with */
    int resume GUARDED_BY(the_loop_lock); /* of kernel.resume_open; -1 until a sleep is long enough to need it (wait_limit_is_far) */
    int64_t wall_distance_ns GUARDED_BY(the_loop_lock); /* instant_distance_ns as of the last timers_follow_wall */
    bool has_wall_timers GUARDED_BY(the_loop_lock); /* the loop has, or has had, timers that follow the wall clock */
    int64_t slack_ns GUARDED_BY(the_loop_lock); /* how late the kernel may end a wait by itself; see loop_note_slack */
    _Atomic(CFTimeInterval) busy_wait_s; /* relaxed; how long a wait stays awake before it sleeps; 0: not at all */
    int64_t coalesce_look_ns; /* loop's thread: when a pass last looked at coalesced sources */
    atomic_bool waits_awake; /* written by the loop's thread: it is in a busy wait */
    uint64_t next_sequence GUARDED_BY(the_loop_lock); /* order of arrival of timers, observers and blocks */
    struct source_set common_sources GUARDED_BY(the_loop_lock);
    struct link common_sources_in_order GUARDED_BY(the_loop_lock); /* the members of the set, in order of joining */
    struct link common_timers GUARDED_BY(the_loop_lock);
    struct link common_observers GUARDED_BY(the_loop_lock);
    struct block_queue common_blocks GUARDED_BY(the_loop_lock);
    struct block_queue listed_blocks GUARDED_BY(the_loop_lock); /* blocks for a list of modes */
    struct block *_Atomic spare_blocks; /* relaxed; written with the lock, looked at without it */
    uint32_t spare_block_count GUARDED_BY(the_loop_lock);
    uint32_t bound_count GUARDED_BY(the_loop_lock); /* bindings that lead to this loop */
    CFRunLoopTimerRef firing; /* timers in callout, innermost first; loop's thread; written with the lock, for others to read with it */
    /* The source of a report that is kept alive by its binding's reference. A thread that unbinds it retains it for the report first. */
    CFRunLoopSourceRef lent_reference GUARDED_BY(the_loop_lock);
    const struct host_wait_hooks *host_wait_hooks; /* loop's thread; set with `host_waits` */
    struct host_wait *host_waits; /* loop's thread: a list, NULL until another loop first does the waiting */
    struct hosting *hosting; /* loop's thread; NULL until CRLRunLoopGetDescriptor or CRLRunLoopPrepare */
    struct host_wait *companion_wait; /* loop's thread; NULL until its first wait by the companion */
    const struct waiter *_Atomic waiter; /* relaxed; NULL: the loop waits itself */
    struct stall *_Atomic stall; /* set once; see Run/stall.h */
    CFStringRef (*copy_dump)(CFRunLoopRef loop); /* constant: loop_copy_dump of Run, which knows every kind of item */
    struct link registry_link; /* thread_loops.lock */
    uint32_t generation; /* thread_loops.lock; a loop of another generation belongs to a parent of this process */
    struct __CFRunLoop *next_limbo; /* thread_loops.lock */
};

NOT_CHECKED ACQUIRES(the_loop_lock) static inline void loop_lock(CFRunLoopRef loop)
{
    lock_take(&loop->lock);
}

NOT_CHECKED RELEASES(the_loop_lock) static inline void loop_unlock(CFRunLoopRef loop)
{
    lock_drop(&loop->lock);
}

/* Returns who waits in the loop's place, or NULL. A thread that has nobody for it pays for this load in each pass. */
static inline const struct waiter *loop_waiter(CFRunLoopRef loop)
{
    const struct waiter *waiter = atomic_load_explicit(&loop->waiter, memory_order_relaxed);

    return __builtin_expect(waiter != NULL, 0) ? waiter : NULL;
}

extern const struct object_class run_loop_class;

/* Returns true if the loop sleeps in `mode`: its deadline may be too late for what was just added to the mode or changed in it. */
REQUIRES(the_loop_lock) static inline bool mode_is_waited_on(CFRunLoopRef loop, const struct mode *mode)
{
    return loop->waiting == mode;
}

/* Always returns false. Of the main loop it logs once that nothing can be added any more (rule 174). */
__attribute__((cold)) bool loop_refuse(CFRunLoopRef loop);

/* Returns true if things can be added to the loop. */
REQUIRES(the_loop_lock) static inline bool loop_is_open(CFRunLoopRef loop)
{
    return !loop->is_dead || loop_refuse(loop);
}

/* Returns a loop with its default mode, or NULL if there is no memory. */
REQUIRES(the_loop_lock) CFRunLoopRef loop_create(bool is_main);

/* Returns the loop's eventfd, which is made at the first need, or a negative errno. */
REQUIRES(the_loop_lock) int loop_event(CFRunLoopRef loop);

/*
 * Notes the timer slack and the niceness of the calling thread. That is the loop's own thread, unless another one makes the main loop. A
 * thread that has more slack than usual has asked to be woken less often, and is. The lock is held, or nobody else knows the loop.
 */
REQUIRES(the_loop_lock) void loop_note_slack(CFRunLoopRef loop);

#endif
