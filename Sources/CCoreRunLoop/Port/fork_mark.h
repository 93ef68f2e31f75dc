/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A word that reads as zero in a child: so one that was made by _Fork or clone, which run no handlers, is recognised at the first call, and
 * does then what its handlers would have done. Those set the word anew.
 *
 * Whoever has one marks the process before there is anything that a child must leave alone; the pointer is constant from then on. The word
 * is written by the only thread of a child, and read by any.
 */
#ifndef CRL_PORT_FORK_MARK_H
#define CRL_PORT_FORK_MARK_H

#include "Support/link_names.h"

#include <stdbool.h>
#include <stdint.h>

#include "Kernel/kernel_ports.h"

/* Each has its own: a child may have used the one kind of ports, and not yet the other. */
enum fork_mark_place { fork_mark_of_message_ports, fork_mark_of_mach_ports, fork_mark_places };

_Static_assert((int)fork_mark_places <= (int)fork_mark_words, "the page has a word for each");

struct fork_mark {
    volatile uint32_t *word; /* NULL: nothing is marked yet, or the kernel cannot tell */
};

static inline bool fork_mark_is_wiped(const struct fork_mark *mark)
{
    return mark->word && *mark->word == 0;
}

static inline void fork_mark_renew(const struct fork_mark *mark)
{
    if (mark->word) {
        *mark->word = 1;
    }
}

static inline void fork_mark_begin(struct fork_mark *mark, enum fork_mark_place place)
{
    volatile uint32_t *words = kernel_ports.fork_mark();

    mark->word = words ? words + place : NULL;
    fork_mark_renew(mark);
}

#endif
