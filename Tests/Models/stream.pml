/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream that many threads move and close: Stream/Core (stream_schedule.c, stream_claim.c, stream_carriers.c, stream_queue.c) with one
 * mode of one loop, one queue, and a socket that is always readable. Names are those of the code. What a lock guards changes in one step;
 * a carrier is a source or a place on the queue. Each thread has a reference, which it drops at its end. Sequentially consistent.
 *
 * Claims. The socket is closed once, when no loop and no queue watches it and no thread uses the kind (320). The stream is in the mode or on
 * the queue, never both (338). No freed stream is looked at, and a closed one tells nothing. At rest what was given up is in no loop, and what
 * is due was told wherever the stream is (341).
 *
 * -DFIRST=, -DSECOND=, -DTHIRD=: what a thread calls: SCHEDULE, UNSCHEDULE (after a SCHEDULE), PUT_ON_QUEUE, LEAVE_QUEUE, OPEN, CLOSE,
 * READ, SET_CLIENT (or remove it)      -DIS_OPEN: it begins open and scheduled      -DMEMORY: it has no descriptor
 * -DRELEASES: no reference but those of the threads
 *
 * -DBROKEN_WITHDRAWAL  a close does not wait for those who still take a carrier out
 * -DBROKEN_CLAIM       ... for who uses the kind
 * -DBROKEN_EXCHANGE    a carrier is taken out, and the next one put in, under two holds of the lock
 * -DBROKEN_NEED        who has made a source does not look whether the stream still needs it
 * -DBROKEN_SETTLE      who has put a source into the mode, or taken it out, does not look again
 * -DBROKEN_LINK        a source that is given up is not cut off
 * -DBROKEN_CHANGED     who has put a new source in does not ask what is due
 */
#define CARRIERS 8
#define none 0
#define signalled 1
#define watching 2 /* a descriptor source */
#define queue 3
#define not_open 0
#define opening 1
#define open 2
#define closed 3

byte kind[CARRIERS]; /* the carrier 0 is none */
bool linked[CARRIERS]; /* the link, or the place, knows the stream */
bool is_valid[CARRIERS];
bool in_mode[CARRIERS];
bool own_interest[CARRIERS];
bool posted[CARRIERS];
bool watched[CARRIERS]; /* by the kernel, for this carrier */
byte made = 0;

byte status = not_open;
byte carrier = none;
byte withdrawals = 0;
bool in_modes = false;
bool is_claimed = false, is_transferring = false, is_opened = false;
bool has_descriptor = false;
bool interest = false;
bool wanted = true, owed = false, told = false;

byte references = 0;
bool is_freed = false;
bool file_is_open = false;
byte users = 0; /* of the kind */

#define await_lasting (status == open && !is_transferring && !told && wanted)
#define watches_descriptor (kind[carrier] == watching || (kind[carrier] == queue && has_descriptor))
#ifdef MEMORY
#define is_due ((owed && wanted) || await_lasting)
#else
#define is_due (owed && wanted)
#endif
#define needs_source (in_modes && (carrier == none || (kind[carrier] == watching) != has_descriptor))
#define is_in_running_mode in_mode[(kind[carrier] == queue -> none : carrier)]
#define LOCALS byte c, taken, new, settled, source; bool d, x, acts, got, is_in, was_in, needed, closes, signals, found

inline check() { assert(!is_freed && !(kind[carrier] == queue && in_modes)); assert(status != closed || (carrier == none && !in_modes)) }
inline update_interest() { interest = watches_descriptor && (await_lasting || (owed && wanted)) }
inline make(k) { made++; assert(made < CARRIERS); new = made; kind[new] = k; is_valid[new] = true; linked[new] = true }
inline use_kind() { users++; assert(users == 1 && !is_freed) }

/* ---- the end of claims and withdrawals ---- */

inline decide_to_close()
{
    closes = status == closed && is_opened;
#ifndef BROKEN_CLAIM
    closes = closes && !is_claimed;
#endif
#ifndef BROKEN_WITHDRAWAL
    closes = closes && withdrawals == 0;
#endif
    is_claimed = is_claimed || closes;
    check()
}

inline close_kind()
{
    atomic {
        use_kind();
        c = 1;
        do
        :: c < CARRIERS -> assert(!watched[c]); c++
        :: else -> break
        od;
        c = 0;
        assert(file_is_open);
        file_is_open = false;
        users--
    }
}

inline close_if_decided()
{
    if :: closes -> close_kind(); atomic { is_opened = false; is_claimed = false; has_descriptor = false } :: else fi;
    closes = false
}

inline end_withdrawal() { atomic { withdrawals--; decide_to_close() }; close_if_decided() }

/* ---- carriers ---- */

inline exchange(to) { taken = carrier; carrier = to; interest = false; withdrawals++ }

inline end_carrier(t)
{
    if
    :: kind[t] == queue -> atomic { linked[t] = false; watched[t] = false }
    :: t != none && kind[t] != queue ->
#ifndef BROKEN_LINK
        linked[t] = false;
#endif
        is_valid[t] = false;
        atomic { in_mode[t] = false; watched[t] = false; own_interest[t] = false; posted[t] = false }
    :: else
    fi
}

inline changed(nudges)
{
    atomic { update_interest(); check(); c = carrier; signals = nudges || is_due };
    tell_carriers()
}

inline tell_carriers()
{
    if
    :: kind[c] == watching ->
        do
        :: x = interest;
            atomic { own_interest[c] = x && is_valid[c]; watched[c] = in_mode[c] && own_interest[c]; assert(!watched[c] || file_is_open) };
            if :: x == interest -> break :: else fi
        od
    :: kind[c] == queue -> atomic { watched[c] = linked[c] && has_descriptor && interest; assert(!watched[c] || file_is_open) }
    :: else
    fi;
    if :: signals && c != none -> atomic { posted[c] = is_valid[c] } :: else fi;
    atomic { c = 0; signals = false; x = false }
}

inline look_at_source(to) { to = (kind[carrier] == queue -> none : carrier); is_in = in_modes }

inline settle_source()
{
    atomic { settled = none; look_at_source(source) };
    do
    :: source == none || (source == settled && is_in == was_in) -> break
    :: else ->
        atomic {
            in_mode[source] = is_in && is_valid[source];
            watched[source] = in_mode[source] && own_interest[source];
            assert(!watched[source] || file_is_open);
            settled = source;
            was_in = is_in
        };
#ifdef BROKEN_SETTLE
        break
#else
        atomic { look_at_source(source) }
#endif
    od;
    atomic { source = 0; settled = 0; is_in = false; was_in = false }
}

inline renew()
{
    atomic { needed = needs_source; d = has_descriptor };
    if
    :: needed ->
        atomic { make((d -> watching : signalled)) };
        atomic {
#ifndef BROKEN_NEED
            needed = needs_source && d == has_descriptor;
#endif
            if :: needed -> exchange(new) :: else -> taken = new fi;
            check()
        };
        end_carrier(taken);
        if :: needed -> end_withdrawal(); settle_source() :: else fi
    :: else
    fi;
    atomic { taken = 0; new = 0; needed = false; d = false }
}

/* ---- the calls ---- */

inline schedule()
{
    atomic {
        acts = status != closed && !in_modes;
        in_modes = in_modes || acts;
        if :: acts && kind[carrier] == queue -> exchange(none) :: else fi;
        check()
    };
    if :: taken != none -> end_carrier(taken); end_withdrawal() :: else fi;
    taken = none;
    renew();
    if :: acts -> settle_source() :: else fi;
#ifndef BROKEN_CHANGED
    changed(false);
#endif
    acts = false
}

inline unschedule()
{
    atomic { acts = in_modes; in_modes = false; check() };
    if :: acts -> settle_source(); acts = false :: else fi
}

inline put_on_queue()
{
    atomic { make(queue) };
#ifdef BROKEN_EXCHANGE
    atomic { acts = status != closed; if :: acts -> exchange(none); in_modes = false :: else fi };
    atomic { if :: acts -> carrier = new :: else fi; check() };
#else
    atomic { acts = status != closed; if :: acts -> exchange(new); in_modes = false :: else fi; check() };
#endif
    if :: acts -> end_carrier(taken); end_withdrawal(); changed(true) :: else -> end_carrier(new) fi;
    atomic { taken = 0; new = 0; acts = false }
}

inline leave_queue()
{
    atomic { acts = kind[carrier] == queue; if :: acts -> exchange(none) :: else fi; check() };
    if :: acts -> end_carrier(taken); end_withdrawal() :: else fi;
    atomic { taken = 0; acts = false }
}

inline open_it()
{
    atomic {
        acts = status == not_open && !is_claimed;
        if :: acts -> status = opening; is_claimed = true; is_opened = true :: else fi
    };
    if
    :: acts ->
        use_kind();
        atomic {
            file_is_open = true;
#ifndef MEMORY
            has_descriptor = true;
#endif
            users--
        };
        atomic {
            if :: status == opening -> status = open; owed = wanted :: else fi;
            acts = status != closed;
            is_claimed = false;
            decide_to_close()
        };
        close_if_decided();
        if :: acts -> renew(); changed(false) :: else fi
    :: else
    fi;
    acts = false
}

inline close_it()
{
    atomic {
        acts = status == opening || status == open;
        if :: acts -> status = closed; owed = false; exchange(none); in_modes = false :: else fi;
        check()
    };
    if :: acts -> end_carrier(taken); end_withdrawal() :: else fi;
    atomic { taken = 0; acts = false }
}

inline read_it()
{
    atomic {
        acts = status == open && !is_claimed;
        if :: acts -> is_claimed = true; is_transferring = true; update_interest(); c = carrier :: else fi
    };
    if
    :: acts ->
        tell_carriers();
        use_kind();
        users--;
        atomic {
            told = false;
            is_transferring = false;
            acts = status != closed && carrier != none;
            is_claimed = false;
            decide_to_close()
        };
        close_if_decided();
        if :: acts -> changed(false) :: else fi
    :: else
    fi;
    acts = false
}

/* ---- telling ---- */

inline release()
{
    atomic { references--; closes = references == 0 };
    if
    :: closes ->
        end_carrier(carrier);
        assert(withdrawals == 0 && !is_claimed);
        if :: is_opened -> close_kind() :: else fi;
        is_freed = true
    :: else
    fi;
    closes = false
}

inline deliver()
{
    atomic { found = false; acts = await_lasting && !is_claimed; is_claimed = is_claimed || acts; owed = false };
    if
    :: acts ->
        use_kind();
        users--;
        atomic { found = status == open; is_claimed = false; decide_to_close() };
        close_if_decided()
    :: else
    fi;
    atomic {
        if :: found && await_lasting -> assert(status != closed); told = true; update_interest(); c = carrier :: else fi
    };
    tell_carriers();
    changed(false);
    atomic { acts = false; found = false }
}

inline serve(t)
{
    atomic { assert(!linked[t] || !is_freed); got = linked[t] && references > 0; references = references + (got -> 1 : 0) };
    if
    :: got && kind[t] == signalled && !(is_in_running_mode) -> changed(true); release()
    :: got && (kind[t] != signalled || is_in_running_mode) -> deliver(); release()
    :: else
    fi
}

#define can_perform(t) (in_mode[t] && ((posted[t] && (kind[t] == signalled || own_interest[t])) || watched[t]))
#define can_handle(t) (kind[t] == queue && linked[t] && (posted[t] || watched[t]))
#define turn(n) atomic { (is_loop -> can_perform(n) : can_handle(n)) -> t = n; posted[n] = false }

proctype teller(bool is_loop)
{
    byte t;
    LOCALS;

    do
    :: skip;
end_idle:
        if
        :: turn(1)
        :: turn(2)
        :: turn(3)
        :: turn(4)
        :: turn(5)
        :: turn(6)
        fi;
        serve(t)
    od
}

#define SCHEDULE 1
#define UNSCHEDULE 2
#define PUT_ON_QUEUE 3
#define LEAVE_QUEUE 4
#define OPEN 5
#define CLOSE 6
#define READ 7
#define SET_CLIENT 8

proctype thread(byte call)
{
    LOCALS;

    if
    :: call == SCHEDULE -> schedule()
    :: call == UNSCHEDULE -> schedule(); unschedule()
    :: call == PUT_ON_QUEUE -> put_on_queue()
    :: call == LEAVE_QUEUE -> leave_queue()
    :: call == OPEN -> open_it()
    :: call == CLOSE -> close_it()
    :: call == READ -> read_it()
    :: call == SET_CLIENT -> atomic { wanted = !wanted; owed = owed && wanted; told = false }; changed(false)
    fi;
    release()
}

inline start(call) { references++; run thread(call) }

/* Nothing that was given up is left, and what is due was told. */
inline check_rest()
{
    check();
    assert(withdrawals == 0 && !is_claimed && file_is_open == is_opened && (status != closed || !is_opened));
    c = 1;
    do
    :: c < CARRIERS ->
        assert(c == carrier || (!linked[c] && !in_mode[c] && !watched[c]));
        assert(c != carrier || kind[c] == queue || in_mode[c] == in_modes);
        c++
    :: else -> break
    od;
    assert(!in_modes || carrier != none);
    assert(status != open || !wanted || !(in_modes || kind[carrier] == queue) || (told && !owed))
}

init
{
    LOCALS;

    atomic {
#ifdef IS_OPEN
        status = open;
        is_opened = true;
        file_is_open = true;
#ifdef MEMORY
        make(signalled);
#else
        has_descriptor = true;
        make(watching);
        own_interest[new] = true;
        watched[new] = true;
#endif
        carrier = new;
        in_modes = true;
        in_mode[new] = true;
        new = 0;
        owed = true;
        update_interest();
        posted[carrier] = true;
#endif
        references = 1;
        start(FIRST);
#ifdef SECOND
        start(SECOND);
#endif
#ifdef THIRD
        start(THIRD);
#endif
        run teller(true);
        run teller(false)
    }
#ifndef RELEASES
    timeout;
    atomic { check_rest() };
#endif
    release();
    timeout;
    assert(is_freed && !file_is_open && references == 0)
}
