/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that sleeps while the system is suspended: Loop/Run/wait.c, wait.h, host_wait.c, watch_for_resume of Loop/Watch/watch.c, and the
 * dates of Loop/Timer. Names are those of the code. Timers go by a clock that goes on in a suspension, the kernel's waits by one that
 * stands still. Each of MODES modes has a repeating timer and a wait set. Threads give the timers other dates. Each step reads one clock, or
 * changes one thing that others know; time passes, and the system is suspended, before any step. Sequentially consistent.
 *
 * Claims. A timer whose date has passed is due at the next look of its mode, never before, fires once, and its series keeps its phase (1200,
 * 118). A long sleep ends when the system resumes and the date has passed; without a suspension no sleep lasts past a date (1201, 71). The
 * loop goes round no more than `most_turns` times when nothing happens (44, 1202).
 *
 * -DMODES=n           how many modes
 * -DPOLLS             the mode has descriptors: the loop may ask the kernel before it sleeps
 * -DSETTERS=n         how many threads set a date
 * -DSTEPS             somebody may set the wall clock, which is told as a resumption is
 * -DFORKS, -DCLOSES   the loop goes on in a child that has forked; the program closes all descriptors
 * -DHOST              another event loop does the sleeps, and polls a descriptor
 *
 * -DBROKEN_CLOCK      timers go by the clock that stands still
 * -DBROKEN_PHASE      a series counts from the time of the callout
 * -DBROKEN_MOMENT     a poll comes between the last look at the clock and the sleep
 * -DBROKEN_ORDER      the clock of timers is read before that of waits
 * -DBROKEN_AGAIN      the loop does not look again once the set can tell
 * -DBROKEN_LEVEL      what nobody reads is reported as long as it is readable
 * -DBROKEN_FUTEX      a mode without descriptors sleeps on the wake word
 * -DBROKEN_MODES      the set of one mode tells, and those of others are taken to
 * -DBROKEN_FORK       the child takes its new set to tell
 * -DBROKEN_LOST       a set that is gone is still taken to tell
 * -DBROKEN_NUMBER     the number of a descriptor that is gone is put into another set
 * -DBROKEN_NOTICE     an earlier date is told to no sleeper
 * -DBROKEN_DISPATCH   the host's loop leaves the report of a resumption in a set that has nothing else
 * -DBROKEN_SHOW       the descriptor that a host polls in the child of a fork does not tell
 */
#ifndef MODES
#define MODES 1
#endif
#ifndef SETTERS
#define SETTERS 1
#endif

#define far 1 /* a longer sleep notices that the system resumes */
#define interval 3
#define never 100
#define last_mono 3
#define last_lead 5
#define most_turns (MODES + 3) /* for what is left over in each set, and for a clock that was read before it went on */

#define phase_awake 0
#define phase_futex 1
#define phase_set 2
#define phase_host 3

/* The clocks. */
byte mono = 0;
byte lead = 0; /* how far the clock of timers is ahead */
#define elapsed (mono + lead)
#ifdef BROKEN_CLOCK
#define timers_now mono
#else
#define timers_now elapsed
#endif

/* The kernel's: the descriptor `resume`, the sets, and what they have to report. */
bool is_open = false;
bool is_readable = false; /* for good, once it was */
bool in_set[MODES];
bool edge[MODES]; /* the set reports the resumption */
bool event[MODES]; /* the set reports the loop's eventfd */
bool is_closed[MODES]; /* the number of the set stands for none */
bool event_is_written = false; /* for a host, until it is drained */

/* The loop's; under its lock. */
bool lock = false;
bool resume = false; /* the loop has a number for it */
bool is_made[MODES];
bool is_lost[MODES];
bool has_resume[MODES];
byte fire[MODES];
byte series[MODES]; /* the remainder of its dates, for the claims */
byte phase = phase_awake; /* of the wake word */
byte waiting = never;
byte sleep_timers = never;
bool is_woken = false; /* the wake word has changed */
byte limit = never;

/* For the claims. */
bool asleep = false;
bool was_far = false;
bool was_suspended = false; /* since the sleep's limit was found */
byte turns = 0;
bool is_news = true; /* something has happened that may make the loop go round */

#define can_wake \
    (mono >= limit || (phase == phase_futex && is_woken) || (phase == phase_set && (event[waiting] || edge[waiting] || is_closed[waiting])) || \
     (phase == phase_host && (event_is_written || edge[waiting])))

inline take_lock() { atomic { !lock -> lock = true } }
inline drop_lock() { lock = false }

/* ---- the kernel ---- */

inline tell_suspension() { was_suspended = true; tell_resume() }

inline tell_resume()
{
    is_news = true;
    is_readable = is_open;
    edge[0] = edge[0] || in_set[0];
#if MODES > 1
    edge[1] = edge[1] || in_set[1];
#endif
}

proctype clocks()
{
    do
    :: d_step { mono < last_mono -> mono++; is_news = true }
    :: d_step { lead < last_lead -> lead++; tell_suspension() }
    :: d_step { lead + 4 <= last_lead -> lead = lead + 4; tell_suspension() }
    :: mono == last_mono && lead == last_lead -> break
    od
}

#ifdef STEPS
proctype wall_clock()
{
    d_step { tell_resume() }
}
#endif

/* Takes what the set reports. Nobody reads `resume`. */
inline take_reports(m)
{
    d_step {
        event[m] = false;
#ifdef BROKEN_LEVEL
        edge[m] = in_set[m] && is_readable
#else
        edge[m] = false
#endif
    }
}

/* ---- the loop ---- */

/* watch_forget_lost: looks at all descriptors of the loop. */
inline forget_lost()
{
    i = 0;
    do
    :: i < MODES ->
        if
        :: is_closed[i] -> is_made[i] = false; is_lost[i] = false; is_closed[i] = false; has_resume[i] = false
        :: else
        fi;
        if
        :: resume && !is_open -> has_resume[i] = false
        :: else
        fi;
        i++
    :: else -> i = 0; break
    od;
    resume = resume && is_open
}

/* watch_prepare */
inline prepare(m)
{
    d_step {
        if
        :: is_lost[m] -> forget_lost()
        :: else
        fi;
        if
        :: !is_made[m] -> is_made[m] = true; event[m] = false; edge[m] = false; in_set[m] = false
        :: else
        fi
    }
}

/* Sets `begins` if the set tells from now on. */
inline watch_for_resume(m)
{
    begins = false;
    if
    :: has_resume[m]
    :: !has_resume[m] ->
#ifndef BROKEN_NUMBER
        d_step {
            if
            :: resume && !is_open -> forget_lost()
            :: else
            fi
        };
#endif
        prepare(m);
        if
        :: !resume -> d_step { is_open = true; is_readable = false; resume = true }
        :: else
        fi;
        d_step {
            begins = is_open && resume && !is_closed[m];
            has_resume[m] = begins;
            in_set[m] = begins;
            edge[m] = edge[m] || (begins && is_readable);
#if defined(BROKEN_MODES) && MODES > 1
            has_resume[1 - m] = begins
#endif
        }
    fi
}

/* moment_now and wait_limit */
inline limit_of_sleep(m)
{
#ifdef BROKEN_ORDER
    at_elapsed = timers_now;
    atomic { at_mono = mono; was_suspended = false };
#else
    atomic { at_mono = mono; was_suspended = false };
#ifdef BROKEN_MOMENT
    at_elapsed = seen;
#else
    at_elapsed = timers_now;
#endif
#endif
    d_step {
        sleep_timers = fire[m];
        limit = (fire[m] == never -> never : at_mono + (fire[m] > at_elapsed -> fire[m] - at_elapsed : 0));
        is_far = limit != never && limit - at_mono > far;
        at_mono = 0;
        at_elapsed = 0;
        seen = 0
    }
}

/* One callout. Another thread may give the timer another date meanwhile, which has its turn after the callout as well. */
inline fire_timer(m)
{
    d_step {
        assert(elapsed >= fire[m]);
        is_news = true;
        is_firing[m] = true;
        is_redated[m] = false
    };
    drop_lock();
    take_lock();
    seen = timers_now;
    d_step {
        is_firing[m] = false;
        if
        :: !is_redated[m] ->
#ifdef BROKEN_PHASE
            fire[m] = seen + interval;
#else
            fire[m] = fire[m] + interval * ((seen - fire[m]) / interval + 1);
#endif
            assert(fire[m] > seen && fire[m] <= seen + interval);
            assert(fire[m] % interval == series[m])
        :: else
        fi;
        is_redated[m] = false;
        seen = 0
    }
}

bool is_firing[MODES];
bool is_redated[MODES];

/* The kernel's wait, and what follows it. The loop's lock is dropped in it. */
inline sleep(m, kind)
{
    atomic { phase = kind; is_woken = false; waiting = m };
    drop_lock();
    atomic { asleep = true; was_far = is_far };
end_sleep:
    atomic { can_wake -> asleep = false };
    if
    :: phase == phase_set && !is_closed[m] -> take_reports(m)
    :: else
    fi;
    take_lock();
    d_step {
        if
        :: phase == phase_set && is_closed[m] ->
            is_lost[m] = true; /* watch_note_wait */
#ifndef BROKEN_LOST
            has_resume[m] = false
#endif
        :: else
        fi;
        waiting = never;
        phase = phase_awake;
        limit = never;
        sleep_timers = never;
        is_woken = false;
        is_far = false;
        was_far = false;
        was_suspended = false;
        turns = (is_news -> 0 : turns + 1);
        is_news = false;
        assert(turns < most_turns)
    }
}

/* The loop goes on in the child of a fork, whose descriptors are other ones. */
inline fork()
{
    d_step {
        has_forked = true;
        is_open = false;
        resume = false;
        i = 0;
        do
        :: i < MODES ->
            in_set[i] = false;
            edge[i] = false;
            event[i] = false;
            is_made[i] = false;
#ifndef BROKEN_FORK
            has_resume[i] = false;
#endif
            i++
        :: else -> i = 0; break
        od
    }
}

/* The program closes all numbers. */
inline close_all()
{
    d_step {
        has_closed = true;
        is_open = false;
        i = 0;
        do
        :: i < MODES -> in_set[i] = false; edge[i] = false; is_closed[i] = is_made[i]; i++
        :: else -> i = 0; break
        od
    }
}

#ifdef HOST
/* host_wait_begin, the host's sleep, and host_wait_end */
inline wait_once(m)
{
    limit_of_sleep(m);
    if
    :: is_far ->
        watch_for_resume(m);
        if
        :: begins -> limit_of_sleep(m)
        :: else
        fi
    :: else
    fi;
#ifdef FORKS
    if /* while the host sleeps; then the child calls CRLRunLoopGetDescriptor */
    :: true
    :: !has_forked ->
        fork();
#ifndef BROKEN_SHOW
        limit_of_sleep(m);
        if
        :: is_far -> watch_for_resume(m); limit_of_sleep(m)
        :: else
        fi
#endif
    fi;
#endif
    sleep(m, phase_host);
    event_is_written = false;
    if
#ifndef BROKEN_DISPATCH
    :: has_resume[m] -> prepare(m); take_reports(m)
    :: !has_resume[m]
#else
    :: true
#endif
    fi
}
#else
/* wait_for_cause; `seen` was read before the poll. */
inline wait_once(m)
{
#ifdef POLLS
    prepare(m);
    if
    :: take_reports(m)
    :: true
    fi;
#endif
    limit_of_sleep(m);
    begins = false;
    if
    :: is_far -> watch_for_resume(m)
    :: else
    fi;
#ifndef BROKEN_AGAIN
    if
    :: begins -> begins = false
    :: else ->
#endif
#ifdef BROKEN_FUTEX
    sleep(m, phase_futex)
#else
    sleep(m, (is_far && has_resume[m] -> phase_set : phase_futex))
#endif
#ifndef BROKEN_AGAIN
    fi
#endif
}
#endif

proctype loop()
{
    byte m = 0, i = 0, seen, at_mono, at_elapsed;
    bool begins = false, is_far, was_due, has_forked = false, has_closed = false;

    take_lock();
    do
    ::
#ifdef FORKS
        if
        :: true
        :: !has_forked -> fork()
        fi;
#endif
#ifdef CLOSES
        if
        :: true
        :: !has_closed -> close_all()
        fi;
#endif
        if /* a run in one of the modes */
        :: m = 0
#if MODES > 1
        :: m = 1
#endif
        fi;
        do
        :: was_due = elapsed >= fire[m];
            seen = timers_now;
            if
            :: seen >= fire[m] -> fire_timer(m); break
            :: else ->
                assert(!was_due);
                wait_once(m);
                if /* the run's limit may come */
                :: break
                :: true
                fi
            fi
        od
    od
}

/* ---- others ---- */

proctype setter(byte m)
{
    byte date;

    date = elapsed; /* instant_of_date */
    if
    :: date = date + 1
    :: date = date + 3
    fi;
    take_lock();
    d_step {
        fire[m] = date;
        date = 0;
        series[m] = fire[m] % interval;
        is_redated[m] = is_firing[m];
        is_news = true
    };
#ifndef BROKEN_NOTICE
    d_step { /* timers_notice_earlier */
        if
        :: waiting == m && fire[m] < sleep_timers ->
            is_woken = true;
            event[m] = event[m] || phase == phase_set;
            event_is_written = event_is_written || phase == phase_host
        :: else
        fi
    };
#endif
    drop_lock()
}

/* No sleep goes on past a date, unless it was short and the system was suspended in it. */
proctype watch_sleep()
{
end_watch:
    atomic {
        asleep && !lock && !can_wake && elapsed >= fire[waiting] && (was_far || !was_suspended) -> assert(false)
    }
}

init
{
    byte n = 0;

    atomic {
        do
        :: n < MODES -> fire[n] = 3; series[n] = 0; n++
        :: else -> break
        od;
        run clocks();
#ifdef STEPS
        run wall_clock();
#endif
        n = 0;
        do
        :: n < SETTERS -> run setter(n % MODES); n++
        :: else -> break
        od;
        run loop();
        run watch_sleep()
    }
}
