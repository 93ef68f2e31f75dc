/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floods (Loop/flood.h): signals and wake-ups that only store that they were made. What a thread writes stays in its store buffer, in order,
 * for as long as it may: until the processor writes it back, the thread makes a fence or an atomic update, or the loop makes its shared
 * fence. Atomic updates are seen by all at once, as on x86; that a signaller makes the mark and the push in one step is source.pml's
 * business, and what phases there are besides these, mailbox.pml's. After how many signals a flood begins is left open, and so is which
 * name finds which: who tells may always store, and may make a fence and look instead. With -DPLAIN_WORD the word is never flooded.
 *
 * Claim: when the loop sleeps for good, it has seen all that was written before a signal with a wake-up, or before a wake-up alone (65).
 *
 * -DBROKEN_END        no shared fence where the loop ends the flood of the source
 * -DBROKEN_CALM       none where it ends that of its word
 * -DBROKEN_LOOK       no second look there, at either
 * -DBROKEN_TELL       a caller that has found the flood tells, and does not look whether it is over
 * -DBROKEN_TAKE_BACK  a caller that finds it over leaves what it has told, and does nothing more
 * -DBROKEN_BEGIN      a flood begins with something told in the place of SET_FLOODED, which the end of the last one may hear
 * -DBROKEN_LEAVE      the loop does not keep a flooded source in its list
 * -DBROKEN_FENCE      callers that find no flood make no fence either, nor do those that find it told
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
#define mark_flooded 2
#define mark_set_flooded (mark_set | mark_flooded)

#define wake_armed 1
#define wake_asleep 2
#define wake_token 4
#define wake_flooded 8
#define is_moot(_word) (((_word) & wake_token) || !((_word) & (wake_armed | wake_asleep)))

#define to_source 0 /* the places of `told`, and what a store buffer holds: these, or the next number of the data */
#define to_loop 1
#define to_data 2

byte mark = mark_clear;
bool queued = false;
bool pending = false;
byte word = 0;
bool told[2];
byte visible[THREADS]; /* what each has written, as the others see it */
byte seen[THREADS]; /* by the loop */
byte finished = 0;
chan buffer[THREADS] = [DEPTH] of { byte };

inline write_back(me)
{
    buffer[me]?what;
    if
    :: what == to_data -> visible[me] = visible[me] + 1
    :: else -> told[what] = true
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

inline hear(place, result)
{
    d_step { result = told[place]; told[place] = false }
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
inline tell(me, place)
{
    if
    :: buffer[me]!place
    ::
#ifndef BROKEN_FENCE
        fence(me);
#endif
        if
        :: told[place]
        :: else -> buffer[me]!place
        fi
    fi
}

/* What a caller does that has told, and finds the flood over: `heard` unless it has to begin again. */
inline take_back(me, place)
{
#ifndef BROKEN_TAKE_BACK
    d_step {
        do
        :: len(buffer[me]) > 0 -> write_back(me)
        :: else -> break
        od;
        heard = !told[place];
        told[place] = false
    }
#else
    heard = true
#endif
}

inline source_signal(me)
{
    heard = false;
    do
    :: heard -> break
    :: !heard && (mark & mark_flooded) ->
        tell(me, to_source);
#ifndef BROKEN_TELL
        if
        :: mark & mark_flooded -> heard = true
        :: else -> take_back(me, to_source)
        fi
#else
        heard = true
#endif
    :: !heard && !(mark & mark_flooded) ->
#ifndef BROKEN_FENCE
        fence(me);
#endif
        m = mark;
        if
        :: m == mark_clear ->
            atomic {
                if
                :: mark == mark_clear -> fence(me); queued = true; mark = mark_set; heard = true
                :: else /* begins again */
                fi
            };
            m = (heard -> mark_set : m)
        :: m == mark_set -> heard = true
        :: else
        fi;
        if
        :: heard
        :: heard && m == mark_set -> /* a flood begins */
#ifdef BROKEN_BEGIN
            buffer[me]!to_source;
#endif
            atomic {
                fence(me);
                if
#ifndef BROKEN_BEGIN
                :: mark == mark_set -> mark = mark_set_flooded
#else
                :: mark == mark_set -> mark = mark_flooded
#endif
                :: else
                fi
            }
        :: !heard
        fi
    od
}

inline mailbox_wake(me)
{
    heard = false;
    if
    :: word & wake_flooded ->
        tell(me, to_loop);
#ifndef BROKEN_TELL
        if
        :: word & wake_flooded -> heard = true
        :: else -> take_back(me, to_loop)
        fi
#else
        heard = true
#endif
    :: else
    fi;
    if
    :: heard
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
                   :: word == w -> word = word | wake_flooded
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
                    :: word = word | wake_token | wake_flooded
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
    bool heard;
    byte round = 1;

    do
    :: round <= ROUNDS ->
        buffer[me]!to_data;
        if
        :: signals -> source_signal(me)
        :: else
        fi;
        mailbox_wake(me);
        atomic { round++; m = 0; w = 0; heard = false }
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
    :: m == mark_flooded ->
        hear(to_source, performed);
        if
        :: performed ->
#ifndef BROKEN_LEAVE
            pending = true
#else
            skip
#endif
        :: else ->
            mark = mark_clear; /* nobody else changes a flooded mark */
#ifndef BROKEN_END
            fence_threads();
#endif
#ifndef BROKEN_LOOK
            hear(to_source, performed)
#endif
        fi
    :: m == mark_set ->
        atomic {
            if
            :: mark == mark_set -> mark = mark_clear; performed = true
            :: else -> pending = true /* flooded meanwhile: the update fails, and begins again */
            fi
        }
    :: m == mark_set_flooded ->
        mark = mark_flooded;
        hear(to_source, performed);
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

/* mailbox_calm: a sleep needs a word that is not flooded */
inline calm()
{
    hear(to_loop, performed);
    if
    :: performed -> atomic { word = word | wake_token }
    :: else ->
        word = word & ~wake_flooded;
#ifndef BROKEN_CALM
        fence_threads();
#endif
#ifndef BROKEN_LOOK
        hear(to_loop, performed);
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
        :: word & wake_flooded -> hear(to_loop, performed) /* so far: the pass looks now */
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
            :: (word & wake_flooded) && !(word & wake_token) -> calm() /* else it does not sleep */
            :: else
            fi;
            atomic {
                if
                :: word & wake_token
                :: else -> assert(!(word & wake_flooded)); word = (word & ~wake_armed) | wake_asleep
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
        word = word & ~(wake_armed | wake_asleep | wake_token) /* a flood goes on */
    od
}
