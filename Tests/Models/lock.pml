/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locks of Support/lock.c: threads that take and drop one, and sleep on it. Names are those of the code.
 *
 * Unlike the other models this one has memory that is not sequentially consistent: the store that drops the lock stays in the processor's
 * buffer until it is flushed, by itself at any time, by an atomic read-modify-write of the same thread, by a fence, or by another thread's
 * barrier_everywhere. Meanwhile the thread loads what others have stored. There is one such store at most, for only the holder makes it.
 *
 * Claims: one thread at a time is between take and drop, and nobody sleeps for ever.
 *
 * -DTHREADS=n       how many
 * -DFENCED          where the kernel has no barrier_everywhere: each drop has a fence
 * -DBROKEN_SLEEPER  a sleeper does not call barrier_everywhere
 * -DBROKEN_COUNT    it calls it before it counts itself
 * -DBROKEN_FENCE    with FENCED, the drop loads before its fence
 */
#ifndef THREADS
#define THREADS 3
#endif
#define ROUNDS 2
#define nobody 255

bool state = false;        /* the lock, as it is in memory: held */
byte buffered = nobody;    /* whose buffer holds the store that drops it */
byte sleepers = 0;
bool asleep[THREADS];      /* in futex_wait */
byte inside = 0;

inline flush()
{
    if
    :: buffered != nobody -> state = false; buffered = nobody
    :: else
    fi
}

/* What every atomic read-modify-write does to the thread's own buffer. */
inline flush_own()
{
    if
    :: buffered == me -> state = false; buffered = nobody
    :: else
    fi
}

inline barrier_everywhere()
{
#if !defined(BROKEN_SLEEPER) && !defined(FENCED)
    atomic { flush() }
#else
    skip
#endif
}

inline take_contended()
{
#if defined(BROKEN_COUNT)
    barrier_everywhere();
    atomic { flush_own(); sleepers++ };
#else
    atomic { flush_own(); sleepers++ };
    barrier_everywhere();
#endif
    do
    :: atomic { flush_own(); was_held = state; state = true };
        if
        :: !was_held -> break
        :: else -> atomic { if :: state -> asleep[me] = true :: else fi };
            !asleep[me]
        fi
    od;
    atomic { flush_own(); sleepers-- }
}

inline take()
{
    atomic { flush_own(); was_held = state; state = true };
    if
    :: was_held -> take_contended()
    :: else
    fi
}

/* A system call flushes, and wakes any one of those who sleep. */
inline futex_wake()
{
    atomic {
        flush_own();
        if
        :: asleep[0] -> asleep[0] = false
        :: asleep[1] -> asleep[1] = false
#if THREADS > 2
        :: asleep[2] -> asleep[2] = false
#endif
        :: else
        fi
    }
}

inline drop()
{
    atomic { assert(buffered == nobody); buffered = me };
#if defined(FENCED) && !defined(BROKEN_FENCE)
    atomic { flush_own() };
#endif
    has_sleepers = sleepers > 0;
#if defined(BROKEN_FENCE)
    atomic { flush_own() };
#endif
    if
    :: has_sleepers -> futex_wake()
    :: else
    fi
}

proctype thread(byte me)
{
    byte round = 0;
    bool was_held, has_sleepers;

    do
    :: round < ROUNDS ->
        take();
        inside++;
        assert(inside == 1);
        inside--;
        drop();
        round++
    :: else -> break
    od
}

/* Stores do not stay in a buffer for ever. */
proctype processor()
{
end:
    do
    :: atomic { buffered != nobody -> flush() }
    od
}

init
{
    byte started = 0;

    atomic {
        run processor();
        do
        :: started < THREADS -> run thread(started); started++
        :: else -> break
        od
    }
}
