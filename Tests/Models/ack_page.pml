/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acknowledgement pages (Port/Wire/ack_page.h): the threads of a client send messages through a queue that holds LIMIT, and sleep when it is
 * full; the threads of a server take them, note them in the page, and wake who has asked for it. Names are those of the code.
 *
 * As in reply_page.pml, stores stay in the buffer of the processor that made them until it writes them back, in any order but that of a
 * release; a fence writes all back, and so does dropping a lock, and what goes through the kernel to the other side. Numbers have eight
 * bits and begin before their end, so that they begin anew, and the number 0, which in a new page means nothing yet, is one of them. The
 * first two messages are not noted, as there is no page yet. There is no limit to a sleep but where SLICES says so.
 *
 * Claims. Nobody sleeps for ever, neither while there is room nor when the server is gone. A client that goes by the page has no more
 * messages in the queue than it holds. There are no more packets than the client has asked for.
 *
 * -DSENDERS=n, -DSERVERS=n  threads
 * -DMESSAGES=n              how many each of the client's sends
 * -DLIMIT=n                 how many the queue holds
 * -DSTART=n                 the number before the first
 * -DSLICES                  a sleep may end by itself; needed for two threads, of which one may take the packet that would wake the other
 * -DDEATH                   the server may end, in any order of channel and port, or its end of the channel alone
 * -DBROKEN_CLIENT_FENCE     none between saying what is awaited and the look at what is taken
 * -DBROKEN_SERVER_FENCE     none between writing what is taken and the look at what is awaited
 * -DBROKEN_RELEASE          the limit of the queue, which says that there is a number, may be seen before it
 * -DBROKEN_ACQUIRE          the client looks at the number first
 * -DBROKEN_LOOK             the client does not look once it has said what it awaits
 * -DBROKEN_CLEAR            the server leaves what is awaited in the page
 * -DBROKEN_ORDER            it clears that after it has sent the packet
 * -DBROKEN_ZERO             the number 0 is awaited as it is, which says that none is
 * -DBROKEN_OLD              the server notes what it takes in whatever order its threads come to it
 * -DBROKEN_HANG_UP          who sleeps is not woken by the end of the channel
 * -DBROKEN_SLICE            two threads without SLICES
 */
#ifndef SENDERS
#define SENDERS 1
#endif
#ifndef SERVERS
#define SERVERS 1
#endif
#ifndef MESSAGES
#define MESSAGES 8
#endif
#ifndef LIMIT
#define LIMIT 3
#endif
#define UNASKED (LIMIT > 2 -> 2 : LIMIT - 1)
#ifndef START
#define START 250
#endif

#define distance(_from, _to) (((_to) - (_from)) & 255)
#define is_after(_number, _other) (distance(_other, _number) != 0 && distance(_other, _number) < 128)

/* The page. */
byte taken = 0;
bool queue_limit = false; /* it is there */
byte awaited = 0;

/* The buffers. The client's threads store under a lock, which writes back what they have stored, and so do the server's. */
bool has_buffered_awaited = false;
byte buffered_awaited = 0;
bool has_buffered_taken = false;
byte buffered_taken = 0;
bool has_buffered_limit = false;

/* The kernel. */
chan queue = [LIMIT + 2] of {byte, bool};
byte in_channel = 0;
bool is_hung_up = false;
bool is_port_open = true;

/* The client, under its lock. */
bool is_client_locked = false;
byte sequence = START;
byte confirmed = START;
bool has_control = true;

/* The server, under its lock. */
bool is_server_locked = false;
bool has_taken = false;
byte last_taken = 0;
bool is_dead = false;

/* Packets that the client has asked for: one about to be sent, one in the page and one in the buffer at most. */
byte owed = 0;

inline flush_client()
{
    if
    :: has_buffered_awaited -> awaited = buffered_awaited; has_buffered_awaited = false
    :: else
    fi
}

inline flush_server()
{
    if
    :: has_buffered_taken -> taken = buffered_taken; has_buffered_taken = false
    :: else
    fi;
    if
    :: has_buffered_limit -> queue_limit = true; has_buffered_limit = false
    :: else
    fi
}

proctype processors()
{
end:
    do
    :: atomic { has_buffered_awaited -> awaited = buffered_awaited; has_buffered_awaited = false }
    :: atomic { has_buffered_taken -> taken = buffered_taken; has_buffered_taken = false }
#ifndef BROKEN_RELEASE
    :: atomic { has_buffered_limit && !has_buffered_taken -> queue_limit = true; has_buffered_limit = false }
#else
    :: atomic { has_buffered_limit -> queue_limit = true; has_buffered_limit = false }
#endif
    od
}

/* ---- the client ---- */

#define is_full (has_control && distance(confirmed, sequence) >= LIMIT)

inline pacing_confirm(number)
{
    if
    :: is_after(number, confirmed) && !is_after(number, sequence) -> confirmed = number
    :: else
    fi
}

inline look_into_page()
{
#ifdef BROKEN_ACQUIRE
    seen = taken;
    is_there = queue_limit;
#else
    is_there = queue_limit;
    seen = taken;
#endif
    atomic {
        if
        :: is_there -> pacing_confirm(seen)
        :: else
        fi;
        seen = 0;
        is_there = false
    }
}

inline await_room()
{
    atomic {
        buffered_awaited = (sequence - LIMIT / 4) & 255;
#ifndef BROKEN_ZERO
        buffered_awaited = (buffered_awaited == 0 -> 255 : buffered_awaited);
#endif
        has_buffered_awaited = true;
        owed = (owed < 3 -> owed + 1 : 3)
    };
#ifndef BROKEN_CLIENT_FENCE
    atomic { flush_client() };
#endif
#ifndef BROKEN_LOOK
    look_into_page();
#endif
    skip
}

inline take_wake_up()
{
    atomic {
        if
        :: in_channel > 0 -> in_channel--
        :: in_channel == 0 && is_hung_up -> has_control = false
        :: else
        fi
    }
}

proctype client()
{
    byte sent = 0;
    byte seen;
    bool is_there;

    do
    :: sent < MESSAGES ->
        atomic { !is_client_locked -> is_client_locked = true };
again:
        if
        :: is_full -> look_into_page()
        :: else
        fi;
        if
        :: is_full -> await_room()
        :: else
        fi;
        if
        :: is_full ->
            atomic { flush_client(); is_client_locked = false };
            if
#ifndef BROKEN_HANG_UP
            :: in_channel > 0 || is_hung_up
#else
            :: in_channel > 0
#endif
#ifdef SLICES
            :: true
#endif
            fi;
            atomic { !is_client_locked -> is_client_locked = true };
            take_wake_up();
            goto again
        :: else ->
            atomic {
                !is_port_open || nfull(queue) ->
                flush_client();
                is_client_locked = false;
                if
                :: !is_port_open -> goto gone
                :: else
                fi;
                assert(!has_control || len(queue) < LIMIT);
                sequence++;
                queue!sequence, (distance(START, sequence) > UNASKED);
                sent++
            }
        fi
    :: else -> break
    od;
gone:
    skip
}

/* ---- the server ---- */

#define unless_dead if :: is_dead -> goto gone :: else fi

inline send_packet()
{
    atomic {
        unless_dead;
        flush_server();
        if
        :: !is_hung_up -> assert(owed > 0); owed--; in_channel++
        :: else
        fi
    }
}

inline ack_page_note()
{
    atomic { unless_dead; buffered_taken = number; has_buffered_taken = true };
    atomic { unless_dead; has_buffered_limit = true };
#ifndef BROKEN_SERVER_FENCE
    atomic { unless_dead; flush_server() };
#endif
    atomic { unless_dead; seen = awaited };
    if
    :: seen != 0 && !is_after(seen, number) ->
#ifdef BROKEN_CLEAR
        send_packet()
#else
#ifdef BROKEN_ORDER
        send_packet();
        atomic { unless_dead; awaited = 0 }
#else
        atomic {
            unless_dead;
            flush_server();
            wakes = awaited == seen;
            if
            :: wakes -> awaited = 0
            :: else
            fi
        };
        if
        :: wakes -> send_packet()
        :: else
        fi
#endif
#endif
    :: else
    fi
}

inline acknowledge()
{
#ifndef BROKEN_OLD
    is_new = !has_taken || is_after(number, last_taken);
#else
    is_new = true;
#endif
    if
    :: is_new && !is_hung_up -> has_taken = true; last_taken = number; ack_page_note()
    :: else
    fi
}

proctype server()
{
    byte number, seen;
    bool wants_ack, is_new, wakes;

end:
    do
    :: atomic { is_dead -> goto gone }
    :: atomic { len(queue) > 0 && !is_dead -> queue?number, wants_ack };
        if
        :: wants_ack ->
            atomic { is_dead || !is_server_locked -> unless_dead; is_server_locked = true };
            acknowledge();
            atomic { unless_dead; flush_server(); is_server_locked = false }
        :: else
        fi;
        atomic { number = 0; seen = 0; wakes = false; is_new = false; wants_ack = false }
    od;
gone:
    skip
}

/* Ends the server, or its end of the channel, or nothing. What it has stored is written back by the time that anything closes. */
proctype death()
{
    if
    :: atomic { is_dead = true; flush_server() };
        if
        :: is_hung_up = true; is_port_open = false
        :: is_port_open = false; is_hung_up = true
        fi
    :: atomic { !is_server_locked -> flush_server(); is_hung_up = true }
    :: skip
    fi
}

init
{
    atomic {
        run processors();
        run client();
#if SENDERS > 1
        run client();
#endif
        run server();
#if SERVERS > 1
        run server();
#endif
#ifdef DEATH
        run death()
#endif
    }
}
