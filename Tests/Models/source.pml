/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mark and the bindings of Loop/Signal/source.c and Loop/Source (source_member.c, source_membership.c): one source in LOOPS loops;
 * signallers, one of which may wake nobody; and threads that take the source out of loop 0, add it again, or invalidate it. Names are
 * those of the code. A wake-up is a token (waker.pml has the wake word). Sequentially consistent.
 *
 * Claims. At rest, if the source is valid and in the loop that was woken, all that a waking signaller wrote before its signal is performed
 * (65, 78). Every perform had a mark of its own (86). A binding is never pushed while it is in the queue. Once the source is invalid, only
 * that is performed whose mark was taken before (88). A bound binding without members has a push under way, or the next drain finds it (a
 * zombie).
 *
 * -DBROKEN_COMPENSATION  a signaller that was overtaken wakes nobody (the defect that BUSY exists for)
 * -DBROKEN_TAKE          perform first, then clear the mark
 */
#ifndef LOOPS
#define LOOPS 1
#endif
#ifndef SIGNALLERS
#define SIGNALLERS 2
#endif

#define mark_clear 0
#define mark_busy 1
#define mark_contested 2
#define mark_set 3
#define mark_invalid 4
#define mark_state(m) ((m) & 7)
#define mark_generation 8

#define unbound 0
#define bound 1
#define bound_queued 2

byte mark = mark_clear;
byte bind[LOOPS];
bool in_stack[LOOPS];    /* the binding is in the waker's queue */
bool member[LOOPS];
bool pending[LOOPS];
bool token[LOOPS];
bool lock[LOOPS];
bool asleep[LOOPS];
bool data = false;       /* written by a waking signaller before it signals */
bool is_zombie[LOOPS];
byte marks = 0;          /* how often CLEAR became BUSY */
byte performs = 0;
bool invalid_done = false;
byte pushing = 0;        /* pushes under way */

inline take_lock(l) { atomic { !lock[l] -> lock[l] = true } }
inline drop_lock(l) { lock[l] = false }
inline waker_wake(l) { token[l] = true }

inline push_unqueued_bindings()
{
    l = 0;
    do
    :: l < LOOPS ->
        atomic {
            if
            :: bind[l] == bound -> bind[l] = bound_queued; won = true; pushing++
            :: else -> won = false
            fi
        };
        if
        :: won -> atomic { assert(!in_stack[l]); in_stack[l] = true; pushing-- }
        :: else
        fi;
        l++
    :: else -> break
    od
}

inline wake_bound_loops()
{
    l = 0;
    do
    :: l < LOOPS ->
        if
        :: bind[l] != unbound -> waker_wake(l)
        :: else
        fi;
        l++
    :: else -> break
    od
}

inline finish_signal()
{
    atomic {
        if
        :: mark == busy -> mark = (busy & ~7) | mark_set; won = true
        :: else -> m = mark; won = false
        fi
    };
    if
    :: won
    :: else ->
        do
        :: (m & ~7) == (busy & ~7) && (mark_state(m) == mark_busy || mark_state(m) == mark_contested) ->
            atomic {
                if
                :: mark == m -> mark = (busy & ~7) | mark_set; won = true
                :: else -> m = mark; won = false
                fi
            };
            if
            :: won -> break
            :: else
            fi
        :: else -> break
        od;
#ifndef BROKEN_COMPENSATION
        wake_bound_loops()
#endif
    fi
}

inline source_signal()
{
    m = mark;
    do
    :: mark_state(m) == mark_set || mark_state(m) == mark_contested || mark_state(m) == mark_invalid -> break
    :: else ->
        was_clear = mark_state(m) == mark_clear;
        busy = (m & ~7) | mark_busy;
        atomic {
            if
            :: mark == m ->
                mark = (m & ~7) | (was_clear -> mark_busy : mark_contested);
                marks = marks + (was_clear -> 1 : 0);
                won = true
            :: else -> m = mark; won = false
            fi
        };
        if
        :: won && was_clear -> push_unqueued_bindings(); finish_signal(); break
        :: won && !was_clear -> break
        :: else
        fi
    od
}

proctype signaller(byte me)
{
    byte m, busy, l;
    bool won, was_clear;

    if
    :: me == 0 -> source_signal() /* wakes nobody */
    :: else ->
        data = true;
        source_signal();
        waker_wake(0)
    fi
}

/* The lock of loop `q` is held. */
inline binding_unbind(q)
{
    atomic {
        if
        :: bind[q] == bound -> bind[q] = unbound; is_zombie[q] = false; won = true
        :: else -> won = false
        fi
    }
}

inline source_queue_drain(q)
{
    atomic { got = in_stack[q]; in_stack[q] = false };
    if
    :: got ->
        bind[q] = bound;
        if
        :: member[q] -> pending[q] = true
        :: else -> binding_unbind(q)
        fi
    :: else
    fi
}

proctype loop(byte me)
{
    byte m;
    bool got, won, taken;

    do
    :: token[me] = false;
        take_lock(me);
        source_queue_drain(me);
        if
        :: pending[me] ->
            pending[me] = false;
            /* source_take_mark */
#ifdef BROKEN_TAKE
            data = false;
#endif
            m = mark;
            taken = false;
            do
            :: mark_state(m) == mark_clear || mark_state(m) == mark_invalid -> break
            :: else ->
                atomic {
                    if
                    :: mark == m -> mark = (m & ~7) + mark_generation; taken = true
                    :: else -> m = mark
                    fi
                };
                if
                :: taken -> break
                :: else
                fi
            od;
            drop_lock(me);
            if
            :: taken ->
                performs++;
                assert(performs <= marks);
#ifndef BROKEN_TAKE
                data = false
#endif
            :: else
            fi
        :: else ->
            drop_lock(me);
            asleep[me] = true;
end_sleep:  atomic { token[me] -> asleep[me] = false }
        fi
    od
}

inline leave_mode(q)
{
    take_lock(q);
    member[q] = false;
    pending[q] = false;
    binding_unbind(q);
    if
    :: !won ->
        source_queue_drain(q);
        if
        :: bind[q] != unbound -> is_zombie[q] = true
        :: else
        fi
    :: else
    fi;
    drop_lock(q)
}

proctype remover()
{
    bool got, won;

    leave_mode(0);
#ifdef READD
    take_lock(0);
    member[0] = true;
    is_zombie[0] = false;
    atomic {
        if
        :: bind[0] == unbound -> bind[0] = bound
        :: else
        fi
    };
    /* source_member_notice_mark */
    if
    :: mark_state(mark) != mark_clear && mark_state(mark) != mark_invalid -> pending[0] = true
    :: else
    fi;
    drop_lock(0);
    waker_wake(0) /* the program's, which wants the mark to be seen */
#endif
}

proctype invalidator()
{
    byte m, l;
    bool got, won, done;

    m = mark;
    do
    :: atomic {
            if
            :: mark == m -> mark = (m & ~7) | mark_invalid; done = true
            :: else -> m = mark; done = false
            fi
        };
        if
        :: done -> break
        :: else
        fi
    od;
    l = 0;
    do
    :: l < LOOPS -> leave_mode(l); l++
    :: else -> break
    od;
    invalid_done = true
}

proctype rest()
{
    byte l = 0;

    timeout;
    assert(pushing == 0);
    do
    :: l < LOOPS ->
        assert(asleep[l]);
        assert(!(member[l] && bind[l] == unbound));
        /* bound without members: a zombie whose node waits for the next drain */
        assert(member[l] || bind[l] == unbound || (is_zombie[l] && in_stack[l]));
        l++
    :: else -> break
    od;
    if
    :: mark_state(mark) == mark_invalid
    :: !member[0]
    :: else -> assert(!data)
    fi
}

init
{
    byte i = 0;

    atomic {
        do
        :: i < LOOPS -> bind[i] = bound; member[i] = true; run loop(i); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < SIGNALLERS -> run signaller(i); i++
        :: else -> break
        od;
#ifdef REMOVER
        run remover();
#endif
#ifdef INVALIDATOR
        run invalidator();
#endif
        run rest()
    }
}
