/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The word of a file descriptor object and the watches of the loops that its source is in: what Descriptor/CFFileDescriptor.c and
 * Loop/Watch/watch.c do with what is armed, deferred and wanted, for one kind of readiness that is always there. Names are those of the code.
 * LOOPS loops serve it, of which the last joins late with -DJOINER; with -DARMER a thread arms it, with -DDISARMER one disarms it, with
 * -DNEIGHBOUR another source on the descriptor has the first loop look anew at any time. Sequentially consistent.
 *
 * Claims. At rest, every loop that the source is in watches for it if and only if it is armed, and nothing is deferred: so no arming is
 * lost, none that comes next is taken for one that need not be told (278, 281, 282), and nobody is woken for what is not wanted.
 *
 * -DBROKEN_SETTLE    a loop that stops watching leaves what is deferred in the word
 * -DBROKEN_READINGS  it looks twice: once whether something is deferred, once at what is armed
 * -DBROKEN_RAISED    who tells a loop of an arming passes over what another loop's callback has deferred meanwhile
 * -DBROKEN_END       a callback that has not armed tells nobody
 */
#ifndef LOOPS
#define LOOPS 2
#endif
#ifndef CALLS
#define CALLS 2
#endif

bool armed = true;      /* two bits of one word: changed together, in one step */
bool deferred = false;
bool wanted[LOOPS];     /* of the watch; under the loop's lock */
bool joined[LOOPS];
bool lock[LOOPS];
byte running = 0;

inline take_lock(l) { atomic { !lock[l] -> lock[l] = true } }
inline drop_lock(l) { lock[l] = false }

/* watch_recompute; the lock is held. */
inline recompute(l)
{
#ifdef BROKEN_READINGS
    was_deferred = deferred;
    if
    :: was_deferred -> atomic { seen = armed; deferred = false }
    :: else -> seen = armed
    fi;
#else
    atomic { seen = armed; was_deferred = deferred };
#ifndef BROKEN_SETTLE
    if
    :: was_deferred -> atomic { seen = armed; deferred = false }
    :: else
    fi;
#endif
#endif
    wanted[l] = seen
}

/* descriptor_source_interest_raised */
inline tell_raised()
{
    i = 0;
    do
    :: i < LOOPS && joined[i] ->
        take_lock(i);
#ifdef BROKEN_RAISED
        atomic { seen = armed };
#else
        atomic { seen = armed || deferred };
#endif
        if
        :: seen && !wanted[i] -> recompute(i)
        :: else
        fi;
        drop_lock(i);
        i++
    :: i < LOOPS && !joined[i] -> i++
    :: i == LOOPS -> break
    od
}

/* descriptor_source_interest_lowered */
inline tell_lowered()
{
    i = 0;
    do
    :: i < LOOPS && joined[i] ->
        take_lock(i);
        recompute(i);
        drop_lock(i);
        i++
    :: i < LOOPS && !joined[i] -> i++
    :: i == LOOPS -> break
    od
}

inline enable()
{
    atomic { was = armed || deferred; armed = true; deferred = false };
    if
    :: !was -> tell_raised()
    :: else
    fi
}

/* A report, if the loop watches; and the callback, which arms or does not. */
inline serve(l)
{
    take_lock(l);
    seen = armed;
    if
    :: wanted[l] && seen -> called = true
    :: wanted[l] && !seen -> recompute(l); called = false
    :: !wanted[l] -> called = false
    fi;
    drop_lock(l);
    if
    :: called -> atomic { called = armed; deferred = deferred || armed; armed = false }
    :: else
    fi;
    if
    :: called ->
        if
        :: enable()
        :: skip
        fi;
        was = armed;
#ifndef BROKEN_END
        if
        :: !was -> tell_lowered()
        :: else
        fi
#endif
    :: else
    fi
}

proctype loop(byte l)
{
    byte i, calls = 0;
    bool seen, was, was_deferred, called;

    if
    :: !joined[l] ->
        take_lock(l);
        joined[l] = true;
        recompute(l);
        drop_lock(l)
    :: else
    fi;
    do
    :: calls < CALLS -> serve(l); calls++
    :: calls == CALLS -> break
    od;
    running--
}

proctype armer()
{
    byte i;
    bool seen, was, was_deferred;

    enable();
    running--
}

proctype disarmer()
{
    byte i;
    bool seen, was, was_deferred;

    atomic { was = armed; armed = false };
    if
    :: was -> tell_lowered()
    :: else
    fi;
    running--
}

proctype neighbour()
{
    bool seen, was_deferred;

    take_lock(0);
    recompute(0);
    drop_lock(0);
    running--
}

init
{
    byte n = 0;

    atomic {
        do
        :: n < LOOPS ->
            joined[n] = true;
            wanted[n] = true;
            running++;
            n++
        :: n == LOOPS -> break
        od;
#ifdef JOINER
        joined[LOOPS - 1] = false;
        wanted[LOOPS - 1] = false;
#endif
        n = 0;
        do
        :: n < LOOPS -> run loop(n); n++
        :: n == LOOPS -> break
        od;
#ifdef ARMER
        running++;
        run armer();
#endif
#ifdef DISARMER
        running++;
        run disarmer();
#endif
#ifdef NEIGHBOUR
        running++;
        run neighbour();
#endif
    }
    running == 0;
    assert(!deferred);
    n = 0;
    do
    :: n < LOOPS -> assert(!armed || wanted[n]); assert(armed || !wanted[n]); n++
    :: n == LOOPS -> break
    od
}
