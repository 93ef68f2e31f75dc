/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes that an iteration borrows from its stream (Streams/ByteLoan.swift): the iteration takes them without the stream's lock, while
 * others read the stream and take the loan back. Names are those of the code.
 *
 * The iteration's store of `position` stays in its processor's buffer until that is flushed: by itself at any time, by the lock, or by
 * another thread's fence_everywhere. Meanwhile the iteration loads `limit`. A later store of the same word may stand in the place of an
 * earlier one, as both leave the buffer in their order.
 *
 * Claims: each byte is given once, to somebody.
 *
 * -DREADERS=n     how many read beside the iteration
 * -DBROKEN_FENCE  who takes the loan back does not call fence_everywhere
 * -DBROKEN_CLAIM  the iteration does not ask whether a byte that it claimed in vain is its own
 * -DBROKEN_LOOK   the iteration loads `limit` before it stores `position`
 */
#ifndef READERS
#define READERS 2
#endif
#define BYTES 5
#define SIZE 3    /* of a loan */
#define nothing 255

byte next = 0;              /* the stream's first byte that is unread and not lent; with its lock */
bool is_lent = false;
byte begin = 0;             /* the first byte of the loan */
byte count = 0;
byte taken_back = 0;
bool is_locked = false;

byte position = 0;          /* as it is in memory */
byte buffered = nothing;
byte limit = 0;
byte given[BYTES];

inline flush()
{
    if
    :: buffered != nothing -> position = buffered; buffered = nothing
    :: else
    fi
}

inline lock_take()
{
    atomic { !is_locked -> is_locked = true }
}

inline give(which)
{
    atomic {
        assert(given[which] == 0);
        given[which] = 1
    }
}

/* With the lock. */
inline take_loan_back()
{
    if
    :: is_lent ->
        limit = 0;
#if !defined(BROKEN_FENCE)
        atomic { flush() };
#endif
        taken_back = position;
        next = next - (count > taken_back -> count - taken_back : 0);
        is_lent = false
    :: else
    fi
}

proctype iteration()
{
    byte claimed = 0;    /* what the iteration itself has stored last */
    byte seen, mine;
    bool is_over = false;

    do
    :: is_over -> break
    :: else ->
#if defined(BROKEN_LOOK)
        seen = limit;
        atomic { buffered = claimed + 1; claimed++ };
#else
        atomic { buffered = claimed + 1; claimed++ };
        seen = limit;
#endif
        if
        :: claimed - 1 < seen -> give(begin + claimed - 1)
        :: else ->
            lock_take();
            atomic { flush() };
            mine = nothing;
#if !defined(BROKEN_CLAIM)
            if
            :: taken_back != 0 && claimed - 1 < count && taken_back == claimed -> mine = begin + claimed - 1
            :: else
            fi;
#endif
            taken_back = 0;
            if
            :: mine != nothing -> give(mine)
            :: mine == nothing && next < BYTES ->
                atomic {
                    begin = next;
                    count = (BYTES - next < SIZE -> BYTES - next : SIZE);
                    next = next + count;
                    is_lent = true;
                    position = 1;
                    claimed = 1
                };
                limit = count;
                give(begin)
            :: else -> is_lent = false; is_over = true
            fi;
            is_locked = false
        fi
    od
}

proctype reader()
{
    byte mine = nothing;

    lock_take();
    take_loan_back();
    if
    :: next < BYTES -> mine = next; next++
    :: else
    fi;
    is_locked = false;
    if
    :: mine != nothing -> give(mine)
    :: else
    fi
}

/* Stores do not stay in a buffer for ever. */
proctype processor()
{
end:
    do
    :: atomic { buffered != nothing -> flush() }
    od
}

init
{
    byte started = 0;

    atomic {
        run processor();
        run iteration();
        do
        :: started < READERS -> run reader(); started++
        :: else -> break
        od
    };
    _nr_pr == 2;
    started = 0;
    do
    :: started < BYTES -> assert(given[started] == 1); started++
    :: else -> break
    od
}
