/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reply pages (Port/Wire/reply_page.h): a client asks again and again on one channel, and waits for each reply in the channel's page, or for a
 * packet where the reply does not fit; a server answers, and may end at any step. Names are those of the code.
 *
 * As in lock.pml and flood.pml, stores stay in the buffer of the processor that made them until it writes them back, in any order but
 * that of a release; a fence writes all back, and so does what goes through the kernel to the other side. The bell is never read, so that
 * the channel's wait set is ready for good once it was rung: the mode's set watches it edge-triggered, and the channel for its end alone. While
 * the channel rests, waits for others may take its report, and may take it out of the mode's set; it is put in again where it is next waited
 * for.
 *
 * Claims. No reply is slept over, and none of an earlier request is taken for a later one's. A wait that has been in vain was ended by
 * something that had happened since the last. Whatever the server did last, a client that is told of its end has looked for its reply.
 *
 * -DREQUESTS=n           how many
 * -DDEATH                the server may end: its channel and its port close in any order, or only the channel does
 * -DBROKEN_CLIENT_FENCE  none between saying that the reply is awaited and the look at the size
 * -DBROKEN_SERVER_FENCE  none between writing the size and the look whether it is awaited
 * -DBROKEN_RELEASE       the size may be seen before the packet
 * -DBROKEN_LOOK          the client looks at the size before it says that it waits
 * -DBROKEN_CLEAR         the page is not cleared
 * -DBROKEN_ORDER         it is cleared when the request has been sent
 * -DBROKEN_FLAG          the client no longer says that it waits when a wait has ended, in vain or not
 * -DBROKEN_EDGE          the channel's wait set is watched level-triggered
 * -DBROKEN_ADD           what is ready when the set is put in is not reported
 * -DBROKEN_END           the channel is not watched for its end beside the set
 * -DBROKEN_HANG_UP       a client that finds the channel hung up does not look at the page again
 */
#ifndef REQUESTS
#define REQUESTS 3
#endif

#define call_waiting 0
#define call_replied 1
#define call_hung_up 2

#define nothing 2 /* in a buffer, where 0 and 1 are values of the word */

/* The page. Packets are numbered as their requests; 0 is none. */
byte packet = 0;
bool size = 0;
bool is_awaited = 0;

/* The client's buffer, and the server's. */
byte buffered_clear = nothing;
byte buffered_awaited = nothing;
byte buffered_packet = 0;
byte buffered_size = nothing;

/* The kernel. */
byte asked = 0;             /* in the port's queue */
byte in_channel = 0;           /* in the channel's */
bool is_rung = false;       /* the bell */
bool is_hung_up = false;    /* the channel */
bool is_port_open = true;
bool is_in_set = false;     /* the channel's wait set is in the mode's */
bool is_reported = false;   /* there as an edge */
bool has_happened = false;  /* anything, since the client's last wait */

byte answered = 0;          /* the last request whose reply the server has written or sent */
bool is_dead = false;       /* the server */

inline flush_client()
{
    if
    :: buffered_clear != nothing -> size = buffered_clear; buffered_clear = nothing
    :: else
    fi;
    if
    :: buffered_awaited != nothing -> is_awaited = buffered_awaited; buffered_awaited = nothing
    :: else
    fi
}

inline flush_server()
{
    if
    :: buffered_packet != 0 -> packet = buffered_packet; buffered_packet = 0
    :: else
    fi;
    if
    :: buffered_size != nothing -> size = buffered_size; buffered_size = nothing
    :: else
    fi
}

proctype processors()
{
end:
    do
    :: atomic { buffered_clear != nothing -> size = buffered_clear; buffered_clear = nothing }
    :: atomic { buffered_awaited != nothing -> is_awaited = buffered_awaited; buffered_awaited = nothing }
    :: atomic { buffered_packet != 0 -> packet = buffered_packet; buffered_packet = 0 }
#ifndef BROKEN_RELEASE
    :: atomic { buffered_size != nothing && buffered_packet == 0 -> size = buffered_size; buffered_size = nothing }
#else
    :: atomic { buffered_size != nothing -> size = buffered_size; buffered_size = nothing }
#endif
    od
}

/* In a step with what has happened in the channel's wait set. */
inline tell()
{
    has_happened = true;
    is_reported = is_in_set
}

/* ---- the client ---- */

inline reply_page_clear()
{
    buffered_awaited = 0;
    buffered_clear = 0
}

inline reply_page_await()
{
    buffered_awaited = 1;
#ifndef BROKEN_CLIENT_FENCE
    atomic { flush_client() }
#endif
}

inline take_from_page()
{
    is_there = size && buffered_clear == nothing;
    if
    :: is_there -> atomic { assert(packet == request); state = call_replied }
    :: else
    fi
}

inline client_channel_read()
{
    take_from_page();
    if
    :: state == call_waiting ->
        atomic {
            if
            :: in_channel != 0 -> assert(in_channel == request); in_channel = 0; state = call_replied
            :: in_channel == 0 && is_hung_up -> is_over = true
            :: else
            fi
        };
        if
        :: is_over ->
#ifndef BROKEN_HANG_UP
            take_from_page();
#endif
            if
            :: state == call_waiting -> atomic { assert(answered != request); state = call_hung_up }
            :: else
            fi
        :: else
        fi
    :: else
    fi
}

/* Waits and moves while the channel rests. */
inline rest()
{
    do
    :: break
    :: atomic {
           is_in_set && (is_reported || is_hung_up) ->
           is_reported = false;
           if
           :: is_in_set = false
           :: skip
           fi
       }
    :: atomic { is_in_set -> is_in_set = false; is_reported = false }
    od
}

inline put_into_set()
{
    atomic {
        if
        :: !is_in_set ->
            is_in_set = true;
#ifndef BROKEN_ADD
            is_reported = is_rung || in_channel != 0 || is_hung_up;
#endif
            has_happened = true
        :: else
        fi
    }
}

inline wait()
{
    atomic {
#ifdef BROKEN_EDGE
        is_rung || in_channel != 0 || is_hung_up ->
#else
#ifdef BROKEN_END
        is_reported ->
#else
        is_reported || is_hung_up ->
#endif
#endif
        is_reported = false;
        may_be_in_vain = has_happened;
        has_happened = false
    }
}

inline await()
{
#ifdef BROKEN_LOOK
    take_from_page();
    reply_page_await();
#else
    reply_page_await();
    take_from_page();
#endif
    do
    :: state == call_waiting ->
        put_into_set();
        wait();
        client_channel_read();
        assert(state != call_waiting || may_be_in_vain);
#ifdef BROKEN_FLAG
        buffered_awaited = 0
#endif
    :: else -> break
    od
}

proctype client()
{
    byte request = 1;
    byte state = call_waiting;
    bool is_there, is_over, may_be_in_vain, is_sent;

    do
    :: request <= REQUESTS && state != call_hung_up ->
        rest();
        state = call_waiting;
#if !defined(BROKEN_CLEAR) && !defined(BROKEN_ORDER)
        reply_page_clear();
#endif
        atomic {
            flush_client();
            is_sent = is_port_open;
            if
            :: is_sent -> asked = request
            :: else
            fi
        };
#ifdef BROKEN_ORDER
        reply_page_clear();
#endif
        if
        :: is_sent -> await(); request++
        :: else -> break
        fi
    :: else -> break
    od
}

/* ---- the server ---- */

#define unless_dead if :: is_dead -> goto gone :: else fi

inline reply_page_put()
{
    atomic { unless_dead; buffered_packet = request };
    atomic { unless_dead; buffered_size = 1; answered = request };
#ifndef BROKEN_SERVER_FENCE
    atomic { unless_dead; flush_server() };
#endif
    atomic { unless_dead; rings = is_awaited };
    if
    :: rings -> atomic { unless_dead; is_rung = true; tell() }
    :: else
    fi
}

proctype server()
{
    byte request;
    bool rings;

end:
    do
    :: atomic { is_dead -> goto gone }
    :: atomic { asked != 0 && !is_dead -> flush_server(); request = asked; asked = 0 };
        if
        :: true -> reply_page_put()
        :: true -> atomic { unless_dead; in_channel = request; answered = request; tell() }
        fi
    od;
gone:
    skip
}

/* Ends the server, or not. What it has stored is written back by the time that anything closes. */
proctype death()
{
    if
    :: atomic { is_dead = true; flush_server() };
        if
        :: atomic { is_hung_up = true; tell() };
            if
            :: is_port_open = false
            :: skip
            fi
        :: is_port_open = false;
            atomic { is_hung_up = true; tell() }
        fi
    :: skip
    fi
}

init
{
    atomic {
        run processors();
        run client();
        run server();
#ifdef DEATH
        run death()
#endif
    }
}
