/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of descriptions: functions by name, descriptors by kind, instants from now, bits by name.
 *
 * Each function writes into a buffer of its caller and returns that buffer's text, which is plain ASCII without line ends. None calls the
 * program, and only names of C++ and Swift take memory. Any thread.
 */
#ifndef CRL_LOOP_CORE_SHOWN_H
#define CRL_LOOP_CORE_SHOWN_H

#include "Loop/link_names.h"

#include <stddef.h>
#include <stdint.h>

struct shown {
    char text[240];
};

/* A bit and its name. The last entry of a table has no name. */
struct shown_bit {
    uint32_t bit;
    const char *name;
};

/*
 * The name of a function, as in C++ or Swift if that language's runtime is in the process. A function whose file has no name for it is the
 * file and the place in it, "program+0x11b7", which addr2line takes; it is the same in each run.
 */
const char *shown_callout(struct shown *shown, void (*function)(void));

/* A name of the linker's, likewise. */
const char *shown_symbol(struct shown *shown, const char *name);

/* Text of others, cut to the room that there is. */
const char *shown_text(struct shown *shown, const char *text);

/* The number, and what /proc says of it: "4 (pipe:[8123])". Says so if it is not open, or negative. */
const char *shown_descriptor(struct shown *shown, int descriptor);

/* How far an instant is from `now_ns` of the same clock: "in 1.500000 s", "0.000200 s ago", or "never". */
const char *shown_instant(struct shown *shown, int64_t instant_ns, int64_t now_ns);

/* The names of the bits that are set, "read|write"; bits without a name as one number; "none". */
const char *shown_bits(struct shown *shown, const struct shown_bit *names, uint32_t bits);

static inline const char *shown_bool(int value)
{
    return value ? "Yes" : "No";
}

#endif
