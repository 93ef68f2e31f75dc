/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A burst of signals to a source in two loops (Loop/Wake/coalesce.h, Signal/source.c, source_queue.c): the mark with all its states, the
 * bindings, the announcement, and the end of the burst by whichever loop finds no announcement. It begins in a burst without an
 * announcement, with the source in the pending lists of its loops. An announcement may stay in its signaller's store buffer; all else that a
 * signaller writes is seen at once (flood.pml is about that). A binding is in the queue as soon as its bit is set (source.pml has what is
 * between), and a wake-up is a token (waker.pml). Each signaller wakes one of the loops, or nobody, and may begin bursts.
 *
 * Claims. At rest, a source that is in the loop that was woken has performed all that was written before the signal (65, 78). What is
 * unperformed is marked or announced, and each loop of the source looks at it in its next pass (79, 80). Without a burst there is no
 * announcement. There are no more performs than signals (86).
 *
 * -DLEAVES, -DJOINS, -DMOVES: meanwhile a thread takes the source out of the second loop, or adds it, or both, and wakes that loop.
 *
 * -DBROKEN_WAKE          a caller that takes an announcement back, and signals anew, wakes nobody (as the library once did)
 * -DBROKEN_TAKE_BACK     a caller that finds the burst over leaves its announcement
 * -DBROKEN_ANNOUNCE      a caller that has announced does not look whether the burst is over
 * -DBROKEN_COMPENSATION  a signaller that was overtaken wakes nobody
 * -DBROKEN_BEGIN         a burst begins with an announcement in the place of SET_COALESCED
 * -DBROKEN_END           no shared fence where a loop ends the burst
 * -DBROKEN_LOOK          no look after it
 * -DBROKEN_EXCHANGE      a loop takes the announcement by a load and a store
 * -DBROKEN_KEEP          a loop that takes an announcement does not keep the source in its list
 * -DBROKEN_DRAIN         a loop reads the mark before it has cleared the binding's bit
 * -DBROKEN_JOIN          a thread that adds the source looks at the mark before the binding is bound
 * -DBROKEN_NOTICE        a thread that adds the source takes a burst for no mark
 */
#ifndef SIGNALLERS
#define SIGNALLERS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#define LOOPS 2

#define mark_clear 0
#define mark_busy 1
#define mark_contested 2
#define mark_set 3
#define mark_coalesced 4 /* a bit */
#define mark_set_coalesced (mark_set | mark_coalesced)
#define mark_state(m) ((m) & 7)
#define mark_generation 8
#define with_state(m, state) (((m) & ~7) | (state))
#define is_moot(m) (mark_state(m) >= mark_contested && !((m) & mark_coalesced))

#define unbound 0
#define bound 1
#define bound_queued 2

#define nobody LOOPS
#ifndef FIRST
#define FIRST nobody /* whom the first signaller wakes */
#endif
#ifndef OTHERS
#define OTHERS 0
#endif
#define woken(me) ((me) == 0 -> FIRST : OTHERS)

#ifdef START_CLEAR
byte mark = mark_clear;
#define starts_pending false
#else
byte mark = mark_coalesced;
#define starts_pending true
#endif
bool announced = false;
byte bind[LOOPS];
bool member[LOOPS];
bool pending[LOOPS];
bool lock[LOOPS];
bool token[LOOPS];
byte visible[SIGNALLERS]; /* how much each has written */
byte seen[SIGNALLERS]; /* by any perform */
byte credit = 0; /* signals begun, less performs */
bool is_done[SIGNALLERS];
bool holds[SIGNALLERS]; /* its store buffer: its announcement */

/* The processor writes back what it holds: by itself, or for a fence or an atomic update. */
inline write_back(me)
{
    announced = announced || holds[me];
    holds[me] = false
}

/* membarrier: each thread passes one, at some moment */
inline fence_threads()
{
    do
    :: atomic { i < SIGNALLERS -> write_back(i); i++ }
    :: atomic { i == SIGNALLERS -> i = 0; break }
    od
}

proctype store_buffer()
{
end:
    do
    :: atomic { holds[0] -> write_back(0) }
#if SIGNALLERS > 1
    :: atomic { holds[1] -> write_back(1) }
#endif
#if SIGNALLERS > 2
    :: atomic { holds[2] -> write_back(2) }
#endif
    od
}

/* ---- signallers; each atomic block looks at, or changes, one thing that others know ---- */

/* A compare-and-swap of the mark. */
inline exchange(me, expected, new)
{
    write_back(me);
    won = mark == (expected);
    if
    :: won -> mark = new
    :: else
    fi
}

inline push_unqueued_bindings(me)
{
    do
    :: atomic {
           l < LOOPS ->
           write_back(me);
           if
           :: bind[l] == bound -> bind[l] = bound_queued
           :: else
           fi;
           l++
       }
    :: atomic { l == LOOPS -> l = 0; break }
    od
}

inline waker_wake(me, q)
{
    d_step { write_back(me); token[q] = true }
}

inline wake_bound_loops(me)
{
    do
    :: atomic {
           l < LOOPS ->
           write_back(me);
           token[l] = token[l] || bind[l] != unbound;
           l++
       }
    :: atomic { l == LOOPS -> l = 0; break }
    od
}

/* `m` is the mark as it is now, BUSY. */
inline finish_signal(me)
{
    atomic { exchange(me, m, with_state(m, mark_set)) };
    if
    :: won ->
        if
        :: atomic { exchange(me, with_state(m, mark_set), with_state(m, mark_set_coalesced)) } /* as many were spared before */
        :: skip
        fi
    :: else ->
        atomic { exchange(me, with_state(m, mark_contested), with_state(m, mark_set)) };
#ifndef BROKEN_COMPENSATION
        wake_bound_loops(me)
#endif
    fi
}

inline announce(me)
{
    if
    :: holds[me] = true
    :: atomic {
           write_back(me);
           if
           :: announced
           :: else -> holds[me] = true
           fi
       }
    fi
}

inline source_signal(me)
{
    do
    :: mark & mark_coalesced ->
        announce(me);
#ifdef BROKEN_ANNOUNCE
        break;
#endif
        if
        :: mark & mark_coalesced -> break
        :: else ->
#ifdef BROKEN_TAKE_BACK
            break;
#endif
            atomic {
                write_back(me);
                if
                :: announced -> announced = false; has_taken_back = true
                :: else -> break
                fi
            }
        fi
    :: else ->
        atomic { write_back(me); m = mark };
        if
        :: atomic { m & mark_coalesced -> m = 0 }
#ifdef BROKEN_BEGIN
        :: atomic { mark_state(m) == mark_set -> holds[me] = true; exchange(me, m, with_state(m, mark_coalesced)); break }
#else
        :: atomic { mark_state(m) == mark_set -> exchange(me, m, with_state(m, mark_set_coalesced)); break }
#endif
        :: is_moot(m) -> break
        :: mark_state(m) == mark_busy ->
            atomic { exchange(me, m, with_state(m, mark_contested)) };
            if
            :: won -> break
            :: else -> m = 0
            fi
        :: mark_state(m) == mark_clear ->
            atomic { exchange(me, m, with_state(m, mark_busy)); m = with_state(m, mark_busy) };
            if
            :: won -> push_unqueued_bindings(me); finish_signal(me); break
            :: else -> m = 0
            fi
        fi
    od;
#ifndef BROKEN_WAKE
    if
    :: has_taken_back -> wake_bound_loops(me)
    :: else
    fi;
#endif
    atomic { m = 0; won = false; has_taken_back = false }
}

proctype signaller(byte me)
{
    byte m, l;
    bool won, has_taken_back;
    byte round = 0;

    do
    :: round < ROUNDS ->
        atomic { visible[me] = visible[me] + 1; credit++ };
        source_signal(me);
        if
        :: woken(me) != nobody -> waker_wake(me, woken(me))
        :: else
        fi;
        round++
    :: else -> break
    od;
    atomic { round = 0; is_done[me] = true }
}

/* ---- loops, and who adds and removes; each of their updates is seen by all at once ---- */

#if defined(LEAVES) || defined(MOVES)
#define LEAVES_OR_MOVES
#endif

inline source_queue_drain(q)
{
    if
    :: bind[q] == bound_queued ->
#ifndef BROKEN_DRAIN
        bind[q] = bound;
#endif
        pending[q] = member[q]
    :: else
    fi;
#ifdef LEAVES_OR_MOVES
    if
    :: bind[q] == bound && !member[q] -> bind[q] = unbound
    :: else
    fi
#endif
}

inline take_announced()
{
#ifndef BROKEN_EXCHANGE
    d_step { performed = announced; announced = false }
#else
    performed = announced;
    announced = false
#endif
}

/* The mark becomes another if it is what was found: `won`. */
inline exchange_mark(new)
{
    won = mark == m;
    if
    :: won -> mark = new
    :: else -> m = mark
    fi
}

/* `performed`: there was a signal; `pending`: signallers rely on a look in the next pass; `ends`: the burst is over, if nothing is announced. */
inline source_take_mark(me)
{
#ifdef BROKEN_DRAIN
    bind[me] = bound;
#endif
    do
    :: mark_state(m) == mark_clear -> break
    :: mark_state(m) == mark_coalesced ->
        take_announced();
        if
        :: performed -> pending[me] = true; break
        :: else ->
            atomic {
                exchange_mark(with_state(m, mark_clear) + mark_generation);
                if
                :: won -> ends = true; break
                :: else
                fi
            }
        fi
    :: mark_state(m) == mark_set_coalesced ->
        atomic { exchange_mark(with_state(m, mark_coalesced)) };
        if
        :: won -> take_announced(); atomic { performed = true; pending[me] = true; break }
        :: else
        fi
    :: mark_state(m) != mark_clear && !(m & mark_coalesced) ->
        atomic {
            exchange_mark(with_state(m, mark_clear) + mark_generation);
            if
            :: won -> performed = true; break
            :: else
            fi
        }
    od;
#ifdef BROKEN_KEEP
    pending[me] = false;
#endif
    atomic { m = 0; won = false }
}

inline perform()
{
    d_step {
        assert(credit > 0);
        credit--;
        performed = false;
        i = 0;
        do
        :: i < SIGNALLERS -> seen[i] = visible[i]; i++
        :: else -> break
        od;
        i = 0
    }
}

proctype loop(byte me)
{
    byte m, i;
    bool won, performed, ends;

    if
    :: skip ->
end_first: token[me] /* it begins asleep */
    :: skip
    fi;
    do
    :: atomic { !lock[me] -> lock[me] = true; token[me] = false; source_queue_drain(me) };
        if
        :: atomic { pending[me] -> pending[me] = false; m = mark }; source_take_mark(me)
        :: else
        fi;
        if
        :: atomic { ends -> ends = false; lock[me] = false };
#ifndef BROKEN_END
            fence_threads();
#endif
#ifndef BROKEN_LOOK
            take_announced()
#endif
        :: atomic { !ends -> lock[me] = false }
        fi;
        if
        :: performed -> perform()
        :: else ->
end_sleep:  token[me]
        fi
    od
}

inline leave_loop(q)
{
    atomic { !lock[q] -> lock[q] = true; member[q] = false; pending[q] = false };
    atomic { source_queue_drain(q); lock[q] = false }
}

inline bind_binding(q)
{
    atomic {
        if
        :: bind[q] == unbound -> bind[q] = bound
        :: else
        fi
    }
}

inline join_loop(q)
{
    atomic { !lock[q] -> lock[q] = true; source_queue_drain(q); member[q] = true };
#ifndef BROKEN_JOIN
    bind_binding(q);
#endif
    m = mark;
#ifdef BROKEN_NOTICE
    m = (mark_state(m) == mark_coalesced -> mark_clear : m);
#endif
#ifdef BROKEN_JOIN
    bind_binding(q);
#endif
    atomic { pending[q] = pending[q] || mark_state(m) != mark_clear; m = 0; lock[q] = false };
    token[q] = true /* the program's, which wants the mark to be seen */
}

#ifdef LEAVES
proctype remover()
{
    bool won;

    leave_loop(1)
}
#endif

#ifdef JOINS
proctype adder()
{
    byte m;
    bool won;

    join_loop(1)
}
#endif

#ifdef MOVES
proctype mover()
{
    byte m;
    bool won;

    leave_loop(1);
    join_loop(1)
}
#endif

proctype rest()
{
    byte i = 0;
    bool is_all = true;

    timeout;
    d_step {
        do
        :: i < SIGNALLERS ->
            assert(is_done[i]);
            assert(woken(i) == nobody || !member[woken(i)] || seen[i] == ROUNDS);
            is_all = is_all && seen[i] == ROUNDS;
            i++
        :: else -> break
        od;
        assert(!announced || (mark & mark_coalesced));
        assert(is_all || announced || mark_state(mark) == mark_set || mark_state(mark) == mark_set_coalesced);
        i = 0;
        do
        :: i < LOOPS ->
            assert(is_all || !member[i] || pending[i] || bind[i] == bound_queued);
            i++
        :: else -> break
        od
    }
}

init
{
    byte i = 0;

    atomic {
        do
        :: i < LOOPS ->
#ifdef JOINS
            member[i] = i == 0;
#else
            member[i] = true;
#endif
            bind[i] = (member[i] -> bound : unbound);
            pending[i] = member[i] && starts_pending;
            run loop(i);
            i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < SIGNALLERS ->
            run signaller(i);
            i++
        :: else -> break
        od;
#ifdef LEAVES
        run remover();
#endif
#ifdef JOINS
        run adder();
#endif
#ifdef MOVES
        run mover();
#endif
        run store_buffer();
        run rest()
    }
}
