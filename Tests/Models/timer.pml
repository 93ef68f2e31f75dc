/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claim of a timer (Loop/Timer/timer.h, home_lock.h, timer_membership.c, timer_firing.c): one repeating timer, two loops with a thread each, and
 * threads that give it a date, make it invalid, add and remove it meanwhile. The first loop has two modes, of which it runs the first; the
 * second has one. The loops' threads fire the timer, which is due when it begins; its callout may set a date, invalidate it, or move it to
 * the other loop. Dates are due or to come. Sequentially consistent; each step looks at, or changes, one thing that others know, but for
 * what H guards, which is asserted to be one thread's at a time.
 *
 * Claims. Whoever has H is alone (timer_lock_home, begin_joining). No loop is looked at that has gone, and none goes while the timer is in
 * it. A callout begins while the timer is valid, in that loop and mode, due, and in no callout. The info is released once, after the end,
 * and not under a callout of another thread (129). An addition is refused only where the other loop has the timer (115). At rest the timer
 * stands in the heap of each of its modes, for its date, and in none when it is in no loop; no loop sleeps past it (71), and no date that
 * was set is lost (126, 128).
 *
 * -DBOTH: it begins in both modes
 * -DSETTER, -DINVALIDATOR, -DREMOVER (from the mode that is run), -DJOINER (to the other mode), -DADDER (to the other loop): threads
 * -DDATES, -DDIES, -DMOVES: what the callout may do       -DENDS: the other loop's thread may end       -DEXITS: the first's in the callout
 *
 * -DBROKEN_CLAIM    who works on a timer that is in no loop has its lock only
 * -DBROKEN_GIVE_UP  who would add a timer that is claimed does not wait for that
 * -DBROKEN_UNLOCK   the timer's lock is dropped before the claim is taken out
 * -DBROKEN_LAST     a timer leaves its loop before the rest of what is written to it
 * -DBROKEN_AGAIN    who has found a loop in a timer does not look again when it has the loop's lock
 * -DBROKEN_KEEP     ... lets go of the timer's lock before it keeps the loop
 * -DBROKEN_PASS     a loop that ends does not wait for those who have found it
 * -DBROKEN_CALLOUT  a timer that joins a loop in its callout stands in no heap (as they once did)
 * -DBROKEN_FIRING   a loop that ends does not look for timers in its own callouts
 * -DBROKEN_HOME     after a callout the lock of the loop that fired is taken for H
 * -DBROKEN_TURN     a timer whose turn has come is not looked at again
 * -DBROKEN_LATE     who invalidates a timer in callout releases the info at once
 * -DBROKEN_REDATED  a date that is set during the callout is not noted
 * -DBROKEN_MODES    another date is told to one mode only
 * -DBROKEN_NOTICE   another date is told to no sleeper
 */
#define LOOPS 2
#define MODES 3
#define loop_of(mode) ((mode) == 2 -> 1 : 0)
#define run_mode(l) ((l) == 0 -> 0 : 2)

#define nobody 2 /* no loop: also of a thread without one */
#define claimed 3

#define due 0
#define later 1
#define never 2

byte owner = 0; /* the loop, or nobody, or claimed */
bool item_lock = false;
bool lock[LOOPS];
byte keeps[LOOPS]; /* references, that of its thread among them */
bool is_dead[LOOPS];
bool is_gone[LOOPS];
bool asleep[LOOPS];
bool retime[LOOPS];
bool in_callout[LOOPS]; /* the loop's list of those that are firing has it */

/* H */
byte insiders = 0;
bool is_valid = true;
bool is_firing = false;
bool is_redated = false;
bool releases_late = false;
byte date = due;
bool member[MODES];
bool in_heap[MODES];
byte key[MODES];

byte releases = 0; /* of the info */
bool is_owed = true; /* a date that is due was set, and no callout has begun for it */

inline enter_H() { insiders++; assert(insiders == 1) }
inline leave_H() { insiders-- }

inline take_lock(l) { atomic { !lock[l] -> assert(!is_gone[l]); lock[l] = true } }
inline drop_lock(l) { assert(!is_gone[l]); lock[l] = false }
inline keep(l) { assert(!is_gone[l]); keeps[l] = keeps[l] + 1 }

inline let_go(l)
{
    atomic {
        keeps[l] = keeps[l] - 1;
        if
        :: keeps[l] == 0 ->
            assert(owner != l);
            assert(l != 0 || (!member[0] && !member[1]));
            assert(l != 1 || !member[2]);
            is_gone[l] = true
        :: else
        fi
    }
}

/* ---- the home; `own` is the thread's loop, `home` the result ---- */

inline timer_lock_home(own)
{
    home = owner;
    if
    :: own != nobody && home == own ->
        take_lock(own);
        if
        :: atomic { owner == own -> enter_H() }
        :: else -> drop_lock(own); home = claimed
        fi
    :: else -> home = claimed
    fi;
    do
    :: home != claimed -> break
    :: else ->
        atomic { !item_lock -> item_lock = true };
        home = owner;
        assert(home != claimed);
        if
        :: home == nobody ->
#ifdef BROKEN_CLAIM
            enter_H()
#else
            atomic {
                if
                :: owner == nobody -> owner = claimed; enter_H()
                :: else -> item_lock = false; home = claimed
                fi
            }
#endif
        :: else ->
#ifdef BROKEN_KEEP
            item_lock = false;
#endif
            if
            :: home != own -> atomic { keep(home) }
            :: else
            fi;
#ifndef BROKEN_KEEP
            item_lock = false;
#endif
            take_lock(home);
            if
#ifdef BROKEN_AGAIN
            :: atomic { true -> enter_H() }
#else
            :: atomic { owner == home -> enter_H() }
#endif
            :: else ->
                drop_lock(home);
                if
                :: home != own -> let_go(home)
                :: else
                fi;
                home = claimed
            fi
        fi
    od
}

/* `has_left`: the timer has left the home, and H was left with that. */
inline timer_unlock_home(own)
{
    if
    :: home == nobody ->
#ifdef BROKEN_CLAIM
        atomic { leave_H(); item_lock = false }
#else
#ifdef BROKEN_UNLOCK
        atomic { leave_H(); item_lock = false };
        owner = nobody
#else
        atomic { leave_H(); owner = nobody };
        item_lock = false
#endif
#endif
    :: else ->
        atomic {
            if
            :: !has_left -> leave_H()
            :: else
            fi;
            drop_lock(home)
        };
        if
        :: home != own -> let_go(home)
        :: else
        fi
    fi;
    atomic { home = claimed; has_left = false }
}

/* ---- the modes; H ---- */

inline notice_earlier(m)
{
#ifdef BROKEN_NOTICE
    skip
#else
    retime[loop_of(m)] = retime[loop_of(m)] || (asleep[loop_of(m)] && run_mode(loop_of(m)) == m && key[m] == due)
#endif
}

inline put_in_heap(m)
{
    in_heap[m] = true;
    key[m] = date;
    notice_earlier(m)
}

/* All of its modes: their heaps are the loop's alone, which has the lock. */
inline reschedule()
{
    d_step {
        if
        :: member[0] -> put_in_heap(0)
        :: else
        fi;
#ifndef BROKEN_MODES
        if
        :: member[1] -> put_in_heap(1)
        :: else
        fi;
#endif
        if
        :: member[2] -> put_in_heap(2)
        :: else
        fi
    }
}

inline out_of_heaps()
{
    d_step { in_heap[0] = false; in_heap[1] = false; in_heap[2] = false }
}

inline detach_all()
{
    d_step { out_of_heaps(); member[0] = false; member[1] = false; member[2] = false }
}

/* What is in nothing of its loop's leaves it, by the last store. */
inline leave_if_unused(l)
{
    if
    :: atomic { owner == l && !member[0] && !member[1] && !member[2] -> leave_H(); owner = nobody; has_left = true }
    :: else
    fi
}

inline leave_everything(l)
{
#ifdef BROKEN_LAST
    if
    :: atomic { owner == l -> owner = nobody };
        detach_all();
        atomic { leave_H(); has_left = true }
    :: else -> detach_all()
    fi
#else
    detach_all();
    leave_if_unused(l)
#endif
}

inline timer_add(l, m)
{
    take_lock(l);
    joins = false;
    is_first = false;
    if
    :: is_dead[l]
    :: !is_dead[l] && owner == l -> atomic { joins = true; enter_H() }
    :: !is_dead[l] && owner != l ->
        atomic {
            if
            :: owner == nobody -> owner = l; joins = true; is_first = true; enter_H()
            :: else
            fi
        };
        if
        :: joins
        :: !joins ->
#ifndef BROKEN_GIVE_UP
            atomic { !item_lock -> item_lock = true };
            atomic {
                if
                :: owner == nobody -> owner = l; joins = true; is_first = true; enter_H()
                :: else -> assert(owner == 1 - l)
                fi
            };
            item_lock = false
#else
            assert(owner == 1 - l || owner == nobody)
#endif
        fi
    fi;
    if
    :: joins && is_valid && !member[m] ->
        d_step {
            member[m] = true;
            if
            :: !is_firing -> put_in_heap(m)
#ifndef BROKEN_CALLOUT
            :: is_firing -> in_heap[m] = true; key[m] = never
#else
            :: is_firing
#endif
            fi
        }
    :: else
    fi;
    if
    :: atomic { joins && is_first && !member[m] -> leave_H(); owner = nobody }
    :: joins && !(is_first && !member[m]) -> leave_H()
    :: else
    fi;
    drop_lock(l);
    atomic { joins = false; is_first = false }
}

inline timer_remove(l, m)
{
    take_lock(l);
    if
    :: atomic { owner == l -> enter_H() };
        d_step { in_heap[m] = false; member[m] = false };
        leave_if_unused(l);
        if
        :: has_left
        :: else -> leave_H()
        fi
    :: else
    fi;
    atomic { drop_lock(l); has_left = false }
}

inline release_info(own)
{
    atomic {
        assert(!in_callout[0] || own == 0);
        assert(!in_callout[1] || own == 1);
        releases++
    }
}

#define is_called_here(own) ((own) != nobody && in_callout[(own) & 1])

/* timer_make_invalid; `home` is H. */
inline timer_invalidate(own)
{
    timer_lock_home(own);
    if
    :: is_valid ->
        d_step {
            is_valid = false;
            is_owed = false;
#ifndef BROKEN_LATE
            releases_late = is_firing && !is_called_here(own);
#endif
            releases_now = !releases_late
        };
        leave_everything(home)
    :: else
    fi;
    timer_unlock_home(own);
    if
    :: releases_now -> release_info(own)
    :: else
    fi;
    releases_now = false
}

inline timer_set_date(own)
{
    timer_lock_home(own);
    if
    :: is_valid ->
        d_step { date = due; is_owed = true };
        if
        :: is_firing ->
#ifndef BROKEN_REDATED
            is_redated = true
#endif
        :: !is_firing && home != nobody -> reschedule()
        :: else
        fi
    :: else
    fi;
    timer_unlock_home(own)
}

/* ---- the loops' threads ---- */

inline end_firing(me)
{
#ifdef BROKEN_HOME
    take_lock(me);
    atomic { enter_H(); home = me };
    in_callout[me] = false;
#else
    timer_lock_home(me);
    if
    :: home != me ->
        timer_unlock_home(me);
        take_lock(me);
        in_callout[me] = false;
        drop_lock(me);
        timer_lock_home(me)
    :: else -> in_callout[me] = false
    fi;
#endif
    atomic {
        is_firing = false;
        releases_now = releases_late;
        releases_late = false;
        if
        :: is_valid && !is_redated -> date = later
        :: else
        fi
    };
    if
    :: is_valid && home != nobody -> reschedule()
    :: else
    fi;
    timer_unlock_home(me);
    if
    :: releases_now -> release_info(me)
    :: else
    fi;
    releases_now = false
}

/* Of a thread: leaves the loop dead, with nothing in it, and lets go of it. */
inline loop_end(me)
{
    take_lock(me);
    is_dead[me] = true;
    drop_lock(me);
    do
    :: take_lock(me);
        if
        :: owner == me && (in_heap[0] || in_heap[1] || in_heap[2]) -> is_first = true
#ifndef BROKEN_FIRING
        :: owner == me && in_callout[me] -> is_first = true
#endif
        :: else -> is_first = false
        fi;
        if
        :: is_first ->
            atomic { enter_H() };
            leave_everything(me);
            atomic { drop_lock(me); has_left = false; is_first = false }
        :: else -> drop_lock(me); break
        fi
    od;
#ifndef BROKEN_PASS
    atomic { !item_lock -> item_lock = true };
    item_lock = false;
#endif
}

inline call_out(me)
{
    assert(releases == 0);
    if
    :: skip
#ifdef DATES
    :: timer_set_date(me)
#endif
#ifdef DIES
    :: timer_invalidate(me)
#endif
#ifdef MOVES
    :: timer_remove(me, run_mode(me));
        if
        :: me == 0 -> timer_remove(me, 1)
        :: else
        fi;
        if /* the program has a reference to the other loop, or knows of none */
        :: atomic { !is_gone[1 - me] -> keep(1 - me) }; timer_add((1 - me), run_mode(1 - me)); let_go((1 - me))
        :: is_gone[1 - me]
        fi
#endif
#ifdef EXITS
    :: me == 0 -> loop_end(me); has_ended = true
#endif
    fi
}

proctype loop(byte me)
{
    byte home = claimed;
    bool has_left, joins, is_first, releases_now, has_ended, is_chosen;

    do
    :: take_lock(me);
        atomic { asleep[me] = false; retime[me] = false };
        is_chosen = owner == me && in_heap[run_mode(me)] && key[run_mode(me)] == due; /* for the pass's snapshot */
        if
        :: is_chosen ->
            drop_lock(me); /* others have their turn before */
            take_lock(me);
#ifndef BROKEN_TURN
            is_chosen = owner == me && is_valid && !is_firing && member[run_mode(me)] && date == due;
#endif
            if
            :: is_chosen ->
                d_step {
                    assert(owner == me && is_valid && !is_firing && member[run_mode(me)] && date == due);
                    insiders++;
                    assert(insiders == 1);
                    out_of_heaps();
                    is_firing = true;
                    is_redated = false;
                    is_owed = false;
                    in_callout[me] = true;
                    insiders--
                };
                drop_lock(me);
                call_out(me);
                end_firing(me)
            :: else -> drop_lock(me)
            fi;
            is_chosen = false;
            if
            :: has_ended -> break
            :: else
            fi
        :: else ->
            asleep[me] = true;
            drop_lock(me);
end_sleep:  if
            :: retime[me]
#ifdef ENDS
            :: me == 1 -> loop_end(me); break
#endif
            fi
        fi
    od;
    let_go(me)
}

#define thread_locals byte home = claimed; bool has_left, joins, is_first, releases_now

#ifdef SETTER
proctype setter()
{
    thread_locals;

    timer_set_date(nobody)
}
#endif

#ifdef INVALIDATOR
proctype invalidator()
{
    thread_locals;

    timer_invalidate(nobody)
}
#endif

#ifdef REMOVER
proctype remover()
{
    thread_locals;

    timer_remove(0, 0);
    let_go(0)
}
#endif

#ifdef JOINER
proctype joiner()
{
    thread_locals;

    timer_add(0, 1);
    let_go(0)
}
#endif

#ifdef ADDER
proctype adder()
{
    thread_locals;

    timer_add(1, 2);
    let_go(1)
}
#endif

proctype rest()
{
    timeout;
    d_step {
        assert(insiders == 0 && !item_lock && owner != claimed && !is_firing && !in_callout[0] && !in_callout[1]);
        assert(!lock[0] && !lock[1]);
        assert(releases == (is_valid -> 0 : 1));
        assert(is_valid || owner == nobody);
        assert(owner != nobody || (!member[0] && !member[1] && !member[2]));
        assert(owner != 0 || ((member[0] || member[1]) && !member[2] && !is_dead[0]));
        assert(owner != 1 || (!member[0] && !member[1] && member[2] && !is_dead[1]));
        assert(in_heap[0] == member[0] && in_heap[1] == member[1] && in_heap[2] == member[2]);
        assert((!member[0] || key[0] == date) && (!member[1] || key[1] == date) && (!member[2] || key[2] == date));
        assert(!member[0] || date == later);
        assert(!member[2] || date == later);
        assert(!(member[0] || member[2]) || !is_owed)
    }
}

init
{
    atomic {
        member[0] = true;
        in_heap[0] = true;
#ifdef BOTH
        member[1] = true;
        in_heap[1] = true;
#endif
        keeps[0] = 1;
        keeps[1] = 1;
#ifdef SETTER
        run setter();
#endif
#ifdef INVALIDATOR
        run invalidator();
#endif
#ifdef REMOVER
        keeps[0] = keeps[0] + 1;
        run remover();
#endif
#ifdef JOINER
        keeps[0] = keeps[0] + 1;
        run joiner();
#endif
#ifdef ADDER
        keeps[1] = keeps[1] + 1;
        run adder();
#endif
        run loop(0);
        run loop(1);
        run rest()
    }
}
