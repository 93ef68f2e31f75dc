/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floods (Loop/flood.h): signals and wake-ups that need no fence, because the loop fences all threads. What a thread writes first stays in
 * its store buffer, for as long as it may: until the processor writes it back, the thread makes a fence or an atomic update, or the loop
 * makes its shared fence. Atomic updates are seen by all at once, as on x86; that a signaller makes the mark and the push in one step is
 * source.pml's business, and what phases there are besides these, mailbox.pml's. After how many signals a flood begins is left open.
 *
 * Claim: when the loop sleeps for good, it has seen all that was written before a signal with a wake-up, or before a wake-up alone (65).
 *
 * -DBROKEN_TAKE    no fence between taking a flooded mark and perform
 * -DBROKEN_ARM     none after arming a flooded word
 * -DBROKEN_DISARM  the flood is forgotten where a pass ends
 * -DBROKEN_FENCE   signallers that find no flood make no fence either
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

#define mark_clear 0
#define mark_set 1
#define mark_flooded 2

#define wake_armed 1
#define wake_asleep 2
#define wake_token 4
#define wake_flooded 8
#define is_moot(_word) (((_word) & wake_token) || !((_word) & (wake_armed | wake_asleep)))

byte mark = mark_clear;
bool queued = false;
byte word = 0;
byte written[THREADS]; /* by the thread, which alone sees it ... */
byte visible[THREADS]; /* ... and what the others see */
byte seen[THREADS]; /* by the loop */
byte finished = 0;

inline fence(me)
{
    visible[me] = written[me]
}

/* membarrier */
inline fence_threads()
{
    atomic {
        i = 0;
        do
        :: i < THREADS -> visible[i] = written[i]; i++
        :: else -> break
        od
    }
}

proctype store_buffer(byte me)
{
end:
    do
    :: atomic { visible[me] != written[me] -> visible[me] = written[me] }
    od
}

inline source_signal(me)
{
    m = mark;
    if
    :: m == mark_flooded
    :: else ->
#ifndef BROKEN_FENCE
        fence(me);
#endif
        m = mark;
        if
        :: m == mark_clear ->
            atomic {
                if
                :: mark == mark_clear ->
                    fence(me);
                    queued = true;
                    if
                    :: mark = mark_set
                    :: mark = mark_flooded
                    fi
                :: else
                fi
            }
        :: m == mark_set ->
            if
            :: skip
            :: atomic {
                   if
                   :: mark == mark_set -> fence(me); mark = mark_flooded
                   :: else
                   fi
               }
            fi
        :: else
        fi
    fi
}

inline mailbox_wake(me)
{
    w = word;
    if
    :: w & wake_flooded
    :: else ->
#ifndef BROKEN_FENCE
        fence(me);
#endif
        w = word;
        do
        :: is_moot(w) ->
            if
            :: skip
            :: atomic {
                   if
                   :: word == w -> fence(me); word = word | wake_flooded
                   :: else
                   fi
               }
            fi;
            break
        :: else ->
            atomic {
                if
                :: word == w ->
                    fence(me);
                    if
                    :: word = word | wake_token
                    :: word = word | wake_token | wake_flooded
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
    byte m, w;
    byte round = 1;

    do
    :: round <= ROUNDS ->
        written[me] = round;
        if
        :: signals -> source_signal(me)
        :: else
        fi;
        mailbox_wake(me);
        round++
    :: else -> break
    od;
    finished++
}

inline look_from_to(_first, _end)
{
    i = _first;
    do
    :: i < _end -> seen[i] = visible[i]; i++
    :: else -> break
    od
}

inline perform_source()
{
    queued = false;
    atomic { m = mark; mark = mark_clear };
#ifndef BROKEN_TAKE
    if
    :: m == mark_flooded -> fence_threads()
    :: else
    fi;
#endif
    look_from_to(0, SIGNALLERS)
}

active proctype loop()
{
    byte m, w, i;

    i = 0;
    do
    :: i < SIGNALLERS -> run store_buffer(i); run sender(i, true); i++
    :: i >= SIGNALLERS && i < THREADS -> run store_buffer(i); run sender(i, false); i++
    :: else -> break
    od;
    do
    :: atomic { w = word; word = word | wake_armed };
        if
        :: w & wake_flooded ->
            word = word & ~wake_flooded;
#ifndef BROKEN_ARM
            fence_threads()
#endif
        :: else
        fi;
        look_from_to(SIGNALLERS, THREADS);
        if
        :: queued -> perform_source()
        :: else ->
            atomic {
                if
                :: word & wake_token
                :: else -> word = (word & ~wake_armed) | wake_asleep
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
#ifndef BROKEN_DISARM
        word = word & ~(wake_armed | wake_asleep | wake_token) /* a flood goes on until the next pass is armed */
#else
        word = word & ~(wake_armed | wake_asleep | wake_token | wake_flooded)
#endif
    od
}
