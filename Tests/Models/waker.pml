/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wake word of Loop/Wake/waker.c: one owner that runs passes, any number of wakers, a thread that stops the run, and one that changes a
 * timer. Names are those of the code. Sequentially consistent: docs/threads.md argues the memory orders.
 *
 * Claims. When nobody can do anything more and the loop sleeps, the loop has seen all that a waker wrote before its wake-up (65) and each
 * stop (57), and it does not sleep past the limit that the timers set (68). No eventfd is written after it was closed. A wake-up that a run
 * nested in a BeforeWaiting observer has taken is given back before the outer run sleeps (64).
 *
 * -DNESTED          adds nested runs
 * -DABANDONED       ... that are left without their end (waker_resume)
 * -DSTOPPER, -DTIMER  add the threads of these names
 * -DWAKERS=n        how many wakers
 *
 * -DBROKEN_DISARM   the loop clears the token after it has looked at the work, before its wait
 * -DBROKEN_SLEEP    the loop goes to sleep without looking at the token
 * -DBROKEN_STOP     the loop goes to sleep without looking at a stop that came between two passes
 * -DBROKEN_WRITERS  the eventfd is closed without waiting for writers
 * -DBROKEN_GIVE     a nested run keeps the token that it took
 * -DBROKEN_RESUME   an abandoned nested run keeps the token that it took
 * -DBROKEN_IDLE     the outer run goes on in the phase in which the nested one was left
 * -DBROKEN_OWED     a wake-up that comes when the nested run is past its wait is dropped
 * -DBROKEN_RETIME   a timer change does not wake the sleeper
 */
#ifndef WAKERS
#define WAKERS 2
#endif

#define wake_idle 0
#define wake_armed 1
#define wake_futex 2
#define wake_epoll 3
#define wake_phase 3
#define wake_token 4
#define wake_stop 8
#define wake_run 16
#define wake_retime 32
#define wake_outer 64
#define wake_owed 128
#define wake_writer 256

short word = wake_idle;
bool futex_sleeping = false;   /* the kernel's: the owner is in futex_wait */
bool edge = false;             /* the eventfd's edge in the wait set */
bool event_open = true;
bool lock = false;             /* the loop's */
bool work[WAKERS];             /* what a waker wrote before its wake-up */
bool stop_asked = false;       /* a stop that hit the outer run */
byte limit = 9;                /* the earliest timer */
byte armed = 9;                /* the deadline given to the kernel */
bool waiting = false;          /* loop->waiting */
bool asleep = false;           /* in the kernel, for the claims */
bool over = false;

/* What keeps the loop from going to sleep. */
#if defined(BROKEN_SLEEP)
#define UNSLEEPY 0
#elif defined(BROKEN_STOP)
#define UNSLEEPY wake_token
#else
#define UNSLEEPY (wake_token | wake_stop)
#endif

#define PHASE(w) ((w) & wake_phase)

inline take_lock() { atomic { !lock -> lock = true } }
inline drop_lock() { lock = false }

/* The word changes from `old` to `new`, or `old` is what it has become. */
inline exchange(old, new, won)
{
    atomic {
        if
        :: word == old -> word = new; won = true
        :: else -> old = word; won = false
        fi
    }
}

inline end_sleep(old)
{
    if
    :: PHASE(old) == wake_futex -> futex_sleeping = false
    :: PHASE(old) == wake_epoll ->
        atomic { assert(event_open); edge = true };
        word = word - wake_writer
    :: else
    fi
}

inline waker_wake(old, new, won)
{
    old = word;
    do
    :: (old & wake_token) || (PHASE(old) == wake_idle && (!(old & wake_outer) || (old & wake_owed))) -> break
    :: else ->
#ifndef BROKEN_OWED
        new = (PHASE(old) == wake_idle -> old | wake_owed : (old | wake_token) + (PHASE(old) == wake_epoll -> wake_writer : 0));
#else
        new = (PHASE(old) == wake_idle -> old : (old | wake_token) + (PHASE(old) == wake_epoll -> wake_writer : 0));
#endif
        exchange(old, new, won);
        if
        :: won -> end_sleep(old); break
        :: else
        fi
    od
}

inline waker_stop(old, new, won, ends)
{
    old = word;
    do
    :: !(old & wake_run) -> break
    :: else ->
        ends = PHASE(old) >= wake_futex && !(old & (wake_token | wake_stop));
        new = old | wake_stop;
        if
        :: ends -> new = new + (PHASE(old) == wake_epoll -> wake_writer : 0)
        :: PHASE(old) == wake_armed -> new = new | wake_token
        :: else
        fi;
        exchange(old, new, won);
        if
        :: won && ends -> end_sleep(old); break
        :: won && !ends -> break
        :: else
        fi
    od
}

inline waker_retime(old, new, won)
{
    old = word;
    do
    :: PHASE(old) < wake_futex || (old & (wake_token | wake_retime)) -> break
    :: else ->
        new = (old | wake_retime) + (PHASE(old) == wake_epoll -> wake_writer : 0);
        exchange(old, new, won);
        if
        :: won -> end_sleep(old); break
        :: else
        fi
    od
}

proctype waker(byte me)
{
    short old, new;
    bool won;

    work[me] = true;
    waker_wake(old, new, won)
}

proctype stopper()
{
    short old, new;
    bool won, ends;

    waker_stop(old, new, won, ends)
}

proctype timer_changer()
{
    short old, new;
    bool won;

    take_lock();
    limit = 3;
#ifndef BROKEN_RETIME
    if
    :: waiting && limit < armed -> waker_retime(old, new, won)
    :: else
    fi;
#endif
    drop_lock()
}

/* fetch_or, fetch_and */
#define waker_arm() word = word | wake_armed
#define waker_disarm() atomic { took = (word & wake_token) != 0; word = word & ~(wake_phase | wake_token | wake_retime) }

inline look()
{
    handled = false;
    i = 0;
    do
    :: i < WAKERS ->
        if
        :: work[i] -> work[i] = false; handled = true
        :: else
        fi;
        i++
    :: else -> break
    od
}

/* The nested run was jumped out of, in whatever phase. */
#if defined(BROKEN_IDLE)
#define RESUMED_PHASE PHASE(old)
#else
#define RESUMED_PHASE wake_armed
#endif
inline waker_resume()
{
    old = word;
    do
    :: new = (old & ~(wake_phase | wake_outer | wake_owed)) | RESUMED_PHASE | wake_run | (outer & (wake_stop | wake_outer | wake_owed));
        new = (old & wake_owed -> new | wake_token : new);
        exchange(old, new, won);
        if
        :: won -> break
        :: else
        fi
    od
}

/* One run nested in a BeforeWaiting observer: a pass that looks at nothing of the outer mode. */
inline nested_run()
{
    old = word;
    do
    :: new = (old & ~(wake_phase | wake_stop | wake_retime)) | wake_run | wake_armed | (PHASE(old) == wake_armed -> wake_outer : 0);
        outer = old;
        exchange(old, new, won);
        if
        :: won -> break
        :: else
        fi
    od;
    waker_arm();
    nested_took = false;
    if
#ifdef ABANDONED
    :: waker_resume(); goto resumed
#endif
    :: true
    fi;
    waker_disarm();
    nested_took = took;
#ifdef ABANDONED
    waker_resume();
    goto resumed;
#endif
    old = word;
    do
    :: new = (old & ~(wake_phase | wake_stop | wake_run | wake_retime | wake_outer | wake_owed)) | (outer & (wake_phase | wake_stop | wake_run));
        if
        :: old & wake_owed -> new = new | wake_token
        :: else
        fi;
        exchange(old, new, won);
        if
        :: won -> break
        :: else
        fi
    od;
resumed:
    skip
}

proctype loop()
{
    short old, new, outer, expected;
    bool won, took, handled, nested_took, is_epoll;
    byte i;

    word = wake_run | wake_armed; /* waker_enter */
    do
    :: waker_arm();
        look();
#ifdef BROKEN_DISARM
        word = word & ~wake_token;
#endif
        if
        :: handled ->
            waker_disarm()
        :: else ->
#if defined(NESTED) || defined(ABANDONED)
            if
            :: true
            :: nested_run()
            fi;
#if !defined(BROKEN_GIVE) && !defined(BROKEN_RESUME)
            /* wait_begin: a wake-up of its own */
            atomic { word = (nested_took -> word | wake_token : word) };
#endif
            nested_took = false;
#endif
            take_lock();
            do
            :: armed = limit;
                waiting = true;
                if
                :: is_epoll = false
                :: is_epoll = true
                fi;
                /* waker_sleep */
                old = word;
                do
                :: old & UNSLEEPY -> won = false; break
                :: !(old & UNSLEEPY) ->
                    new = (old & ~wake_phase) | (is_epoll -> wake_epoll : wake_futex);
                    exchange(old, new, won);
                    if
                    :: won -> break
                    :: else
                    fi
                od;
                if
                :: !won -> waiting = false; break
                :: else
                fi;
                expected = new;
                drop_lock();
                if
                :: !is_epoll ->
                    atomic {
                        if
                        :: word == expected -> futex_sleeping = true; asleep = true
                        :: else
                        fi
                    };
end_futex:          atomic { !futex_sleeping -> asleep = false }
                :: is_epoll ->
                    asleep = true;
end_epoll:          atomic { edge -> edge = false; asleep = false }
                fi;
                take_lock();
                waiting = false;
                /* waker_rearm */
                atomic { word = (word & ~(wake_phase | wake_retime)) | wake_armed };
                if
                :: word & wake_token -> break
                :: else
                fi
            od;
            drop_lock();
            waker_disarm()
        fi;
        if
        :: word & wake_stop -> break
        :: else
        fi
    od;
    /* waker_leave, and the end of the thread: waker_close_event */
    atomic { word = word & ~(wake_phase | wake_stop | wake_run | wake_retime | wake_token) };
#ifndef BROKEN_WRITERS
    word < wake_writer;
#endif
    event_open = false;
    over = true
}

/* When nobody can do anything: what must be true then. */
proctype rest()
{
    byte i = 0;

    timeout;
    if
    :: over
    :: else ->
        assert(asleep);
        assert(!(word & wake_stop) && !(word & wake_token));
        assert(armed <= limit);
        do
        :: i < WAKERS -> assert(!work[i]); i++
        :: else -> break
        od
    fi
}

init
{
    byte i = 0;

    atomic {
        run loop();
        do
        :: i < WAKERS -> run waker(i); i++
        :: else -> break
        od;
#ifdef STOPPER
        run stopper();
#endif
#ifdef TIMER
        run timer_changer();
#endif
        run rest()
    }
}
