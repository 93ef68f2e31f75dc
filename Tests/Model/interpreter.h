/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes a program against a world, which is the model or a Core Foundation, and keeps the trace of what the world did.
 *
 * The interpreter decides which operations are executed; so worlds that call back in the same order are given the same operations. One
 * program at a time; callbacks come on the thread that executes it.
 */
#ifndef CRL_MODEL_INTERPRETER_H
#define CRL_MODEL_INTERPRETER_H

#include "program.h"

enum event_kind {
    event_source,
    event_schedule,
    event_cancel,
    event_observer,
    event_timer,
    event_block,
    event_done, /* the callback's operations are over */
    event_run,
    event_result,
    event_answer, /* of a question */
    event_sleeps_for_ever, /* the loop would; it is stopped instead */
    event_thread_ends,
    event_wrong, /* an object was used after its release, or never released */
};

struct event {
    uint8_t kind;
    uint8_t item;
    uint8_t detail; /* activity, mode, result or kind of operation */
    int64_t value; /* ticks since the start, or the answer */
};

enum { most_events = 1200 };

struct trace {
    int count;
    struct event events[most_events];
};

struct world {
    const char *name;
    /* Calls `body` on a thread with a fresh loop, and ends the thread. */
    void (*execute)(const struct program *program, void (*body)(void));
    /* Does one operation; questions, and runs, give their answer. */
    int64_t (*apply)(const struct op *op);
    int64_t (*now)(void); /* ticks */
};

void interpret(const struct program *program, const struct world *world, struct trace *trace);

/* For the worlds: a callback has been called. */
void interpreter_call(enum event_kind kind, int item, int detail);
/* The loop is asleep: does what the program wants done meanwhile. False if there is nothing more. */
bool interpreter_asleep(void);
/* The loop would sleep for ever; afterwards a stop is requested. */
void interpreter_sleeps_for_ever(void);
/* Something that a rule forbids. */
void interpreter_wrong(enum item_class class, int item);

bool traces_equal(const struct trace *one, const struct trace *other);
/* Space for `size` characters; the first `count` events. */
void trace_text(const struct trace *trace, char *text, size_t size);

#endif
