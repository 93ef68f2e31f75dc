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
 * -DFENCED          where the kernel has no barrier_everywhere: each drop is an exchange
 * -DBROKEN_SLEEPER  a sleeper does not call barrier_everywhere
 * -DBROKEN_COUNT    it calls it before it counts itself
 * -DBROKEN_LOOK     a drop does not look for sleepers after its store
 * -DBROKEN_MARK     a thread that was woken leaves no mark for others
 */
#ifndef THREADS
#define THREADS 3
#endif
#define ROUNDS 2
#define nobody 255

#define lock_free 0
#define lock_held 1
#define lock_contended 2

byte state = lock_free;    /* the lock, as it is in memory */
byte buffered = nobody;    /* whose buffer holds the store that drops it */
byte sleepers = 0;
bool asleep[THREADS];      /* in futex_wait */
byte inside = 0;

inline flush()
{
    if
    :: buffered != nobody -> state = lock_free; buffered = nobody
    :: else
    fi
}

/* What every atomic read-modify-write does to the thread's own buffer. */
inline flush_own()
{
    if
    :: buffered == me -> state = lock_free; buffered = nobody
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
    :: atomic {
            flush_own();
            old = state;
#if defined(BROKEN_MARK)
            state = (has_slept -> lock_held : lock_contended)
#else
            state = lock_contended
#endif
        };
        if
        :: old == lock_free -> break
        :: else -> atomic { if :: state == lock_contended -> asleep[me] = true :: else fi };
            !asleep[me];
            has_slept = true
        fi
    od;
    has_slept = false;
    atomic { flush_own(); sleepers-- }
}

inline take()
{
    atomic { flush_own(); old = state; if :: old == lock_free -> state = lock_held :: else fi };
    if
    :: old != lock_free -> take_contended()
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

inline drop_contended()
{
    atomic { flush_own(); old = state; state = lock_free };
    if
    :: old == lock_contended -> futex_wake()
    :: else
    fi
}

inline drop()
{
#if defined(FENCED)
    drop_contended()
#else
    has_sleepers = sleepers > 0;
    if
    :: has_sleepers -> drop_contended()
    :: else ->
        atomic { assert(buffered == nobody); buffered = me };
#if !defined(BROKEN_LOOK)
        has_sleepers = sleepers > 0;
        if
        :: has_sleepers -> futex_wake()
        :: else
        fi
#endif
    fi
#endif
}

proctype thread(byte me)
{
    byte round = 0;
    byte old;
    bool has_sleepers, has_slept;

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
