/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bursts of coalesced calls (Loop/Wake/coalesce.h): signals and wake-ups that only store an announcement. What a thread writes stays in its
 * store buffer, in order, until the processor writes it back, the thread makes a fence or an atomic update, or the loop makes its shared
 * fence. All threads see an atomic update at once, as on x86. A signaller sets the mark and pushes in one step here (source.pml takes them
 * apart), and the wake word has few phases (waker.pml has all). After how many signals a burst begins is left open. So is which tag a caller
 * finds: it may always store, and may make a fence and look instead. With -DPLAIN_WORD the wake word is never coalesced.
 *
 * Claim: when the loop sleeps for good, it has seen all that was written before a signal with a wake-up, or before a wake-up alone (65).
 *
 * -DBROKEN_END        no shared fence where the loop ends a burst of the source
 * -DBROKEN_WORD       no shared fence where the loop ends a burst of its wake word
 * -DBROKEN_LOOK       no second look at the end of either
 * -DBROKEN_ANNOUNCE   a caller that has found the mark announces, and does not look whether the burst is over
 * -DBROKEN_TAKE_BACK  a caller that finds the burst over leaves its announcement, and does nothing more
 * -DBROKEN_BEGIN      a burst begins with an announcement in the place of SET_COALESCED, which the end of the last burst may take
 * -DBROKEN_LEAVE      the loop does not keep a coalesced source in its list
 * -DBROKEN_FENCE      no fence in callers that find no burst, nor in those that find an announcement
 */
#ifndef SIGNALLERS
#define SIGNALLERS 1
#endif
#ifndef WAKERS
#define WAKERS 1
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define THREADS (SIGNALLERS + WAKERS)
#ifndef DEPTH
#define DEPTH 3 /* of a store buffer; a store waits where it is full */
#endif

#define mark_clear 0
#define mark_set 1
#define mark_coalesced 2
#define mark_set_coalesced (mark_set | mark_coalesced)

#define wake_armed 1
#define wake_asleep 2
#define wake_token 4
#define wake_coalesced 8
#define is_moot(_word) (((_word) & wake_token) || !((_word) & (wake_armed | wake_asleep)))

#define to_source 0 /* the places of `announced`, and what a store buffer holds: these, or the next number of the data */
#define to_loop 1
#define to_data 2

byte mark = mark_clear;
bool queued = false;
bool pending = false;
byte word = 0;
bool announced[2];
byte visible[THREADS]; /* what each has written, as the others see it */
byte seen[THREADS]; /* by the loop */
byte finished = 0;
chan buffer[THREADS] = [DEPTH] of { byte };

inline write_back(me)
{
    buffer[me]?what;
    if
    :: what == to_data -> visible[me] = visible[me] + 1
    :: else -> announced[what] = true
    fi;
    what = 0
}

inline fence(me)
{
    d_step {
        do
        :: len(buffer[me]) > 0 -> write_back(me)
        :: else -> break
        od
    }
}

/* membarrier: each thread passes one, at some moment */
inline fence_threads()
{
    i = 0;
    do
    :: atomic {
           i < THREADS ->
           do
           :: len(buffer[i]) > 0 -> write_back(i)
           :: else -> break
           od;
           i++
       }
    :: else -> break
    od;
    i = 0
}

inline take_announced(place, result)
{
    d_step { result = announced[place]; announced[place] = false }
}

proctype store_buffer(byte me)
{
    byte what;

end:
    do
    :: atomic { len(buffer[me]) > 0 -> write_back(me) }
    od
}

/* A store, or a fence and a look at what others have stored. */
inline announce(me, place)
{
    if
    :: buffer[me]!place
    ::
#ifndef BROKEN_FENCE
        fence(me);
#endif
        if
        :: announced[place]
        :: else -> buffer[me]!place
        fi
    fi
}

/* A caller has announced its call and finds the burst over. `is_done` stays false if it has to make the call again. */
inline take_back(me, place)
{
#ifndef BROKEN_TAKE_BACK
    d_step {
        do
        :: len(buffer[me]) > 0 -> write_back(me)
        :: else -> break
        od;
        is_done = !announced[place];
        announced[place] = false
    }
#else
    is_done = true
#endif
}

inline source_signal(me)
{
    is_done = false;
    do
    :: is_done -> break
    :: !is_done && (mark & mark_coalesced) ->
        announce(me, to_source);
#ifndef BROKEN_ANNOUNCE
        if
        :: mark & mark_coalesced -> is_done = true
        :: else -> take_back(me, to_source)
        fi
#else
        is_done = true
#endif
    :: !is_done && !(mark & mark_coalesced) ->
#ifndef BROKEN_FENCE
        fence(me);
#endif
        m = mark;
        if
        :: m == mark_clear ->
            atomic {
                if
                :: mark == mark_clear -> fence(me); queued = true; mark = mark_set; is_done = true
                :: else /* begins again */
                fi
            };
            m = (is_done -> mark_set : m)
        :: m == mark_set -> is_done = true
        :: else
        fi;
        if
        :: is_done
        :: is_done && m == mark_set -> /* a burst begins */
#ifdef BROKEN_BEGIN
            buffer[me]!to_source;
#endif
            atomic {
                fence(me);
                if
#ifndef BROKEN_BEGIN
                :: mark == mark_set -> mark = mark_set_coalesced
#else
                :: mark == mark_set -> mark = mark_coalesced
#endif
                :: else
                fi
            }
        :: !is_done
        fi
    od
}

inline waker_wake(me)
{
    is_done = false;
    if
    :: word & wake_coalesced ->
        announce(me, to_loop);
#ifndef BROKEN_ANNOUNCE
        if
        :: word & wake_coalesced -> is_done = true
        :: else -> take_back(me, to_loop)
        fi
#else
        is_done = true
#endif
    :: else
    fi;
    if
    :: is_done
    :: else ->
#ifndef BROKEN_FENCE
        fence(me);
#endif
        w = word;
        do
        :: is_moot(w) ->
            if
            :: skip
#ifndef PLAIN_WORD
            :: atomic {
                   fence(me);
                   if
                   :: word == w -> word = word | wake_coalesced
                   :: else
                   fi
               }
#endif
            fi;
            break
        :: else ->
            atomic {
                if
                :: word == w ->
                    fence(me);
                    if
                    :: word = word | wake_token
#ifndef PLAIN_WORD
                    :: word = word | wake_token | wake_coalesced
#endif
                    fi;
                    break
                :: else -> w = word
                fi
            }
        od
    fi
}

proctype sender(byte me; bool signals)
{
    byte m, w, what;
    bool is_done;
    byte round = 1;

    do
    :: round <= ROUNDS ->
        buffer[me]!to_data;
        if
        :: signals -> source_signal(me)
        :: else
        fi;
        waker_wake(me);
        atomic { round++; m = 0; w = 0; is_done = false }
    :: else -> break
    od;
    finished++
}

inline look_from_to(_first, _end)
{
    i = _first;
    do
    :: atomic { i < _end -> seen[i] = visible[i]; i++ }
    :: else -> break
    od;
    i = 0
}

/* The source is in the list; whether it was performed is `performed`. */
inline perform_source()
{
    pending = false;
    m = mark;
    performed = false;
    if
    :: m == mark_coalesced ->
        take_announced(to_source, performed);
        if
        :: performed ->
#ifndef BROKEN_LEAVE
            pending = true
#else
            skip
#endif
        :: else ->
            mark = mark_clear; /* nobody else changes a coalesced mark */
#ifndef BROKEN_END
            fence_threads();
#endif
#ifndef BROKEN_LOOK
            take_announced(to_source, performed)
#endif
        fi
    :: m == mark_set ->
        atomic {
            if
            :: mark == mark_set -> mark = mark_clear; performed = true
            :: else -> pending = true /* coalesced meanwhile: the update fails, and begins again */
            fi
        }
    :: m == mark_set_coalesced ->
        mark = mark_coalesced;
        take_announced(to_source, performed);
        performed = true;
#ifndef BROKEN_LEAVE
        pending = true
#endif
    :: else
    fi;
    m = 0;
    if
    :: performed -> look_from_to(0, SIGNALLERS)
    :: else
    fi
}

/* waker_end_burst: a sleep needs a word that is not coalesced */
inline end_burst()
{
    take_announced(to_loop, performed);
    if
    :: performed -> atomic { word = word | wake_token }
    :: else ->
        word = word & ~wake_coalesced;
#ifndef BROKEN_WORD
        fence_threads();
#endif
#ifndef BROKEN_LOOK
        take_announced(to_loop, performed);
#endif
        if
        :: performed -> atomic { word = word | wake_token }
        :: else
        fi
    fi
}

active proctype loop()
{
    byte m, i, what;
    bool performed;

    i = 0;
    do
    :: i < SIGNALLERS -> run store_buffer(i); run sender(i, true); i++
    :: i >= SIGNALLERS && i < THREADS -> run store_buffer(i); run sender(i, false); i++
    :: else -> break
    od;
    do
    :: word = word | wake_armed;
        if
        :: word & wake_coalesced -> take_announced(to_loop, performed) /* so far: the pass looks now */
        :: else
        fi;
        look_from_to(SIGNALLERS, THREADS);
        d_step { pending = pending || queued; queued = false };
        performed = false;
        do
        :: pending && !performed -> perform_source(); if :: performed -> break :: else fi
        :: else -> break
        od;
        if
        :: performed
        :: else ->
            if
            :: (word & wake_coalesced) && !(word & wake_token) -> end_burst() /* else it does not sleep */
            :: else
            fi;
            atomic {
                if
                :: word & wake_token
                :: else -> assert(!(word & wake_coalesced)); word = (word & ~wake_armed) | wake_asleep
                fi
            };
            if
            :: word & wake_token
            :: atomic {
                   finished == THREADS && !(word & wake_token) ->
                   i = 0;
                   do
                   :: i < THREADS -> assert(seen[i] == ROUNDS); i++
                   :: else -> break
                   od
               };
               break
            fi
        fi;
        word = word & ~(wake_armed | wake_asleep | wake_token) /* a burst goes on */
    od
}
