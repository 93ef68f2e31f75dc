/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as subjects of the server: a reversible escape. AddOns/Nats/bridge.md lists the subjects. Pure functions.
 *
 * Letters, digits, `-` and `_` stand for themselves; every other byte is %XX with capital digits. So no escaped name contains a dot, a
 * space or a wildcard, and two names never have the same subject.
 */
#ifndef CRL_NATS_SUBJECT_H
#define CRL_NATS_SUBJECT_H

#include "nats_link_names.h"

#include <stdbool.h>
#include <stddef.h>

/* The queue group of all bridges that export a name: each message goes to one of them. */
#define QUEUE_GROUP "crl"

enum {
    port_name_max = 128, /* bytes of UTF-8, as CFMessagePort has it */
    machine_name_max = 64,
    subject_max = 24 + 3 * port_name_max + 3 * machine_name_max, /* bytes with the zero */
};

/* Returns why a text cannot be the name of a port, at most `most` bytes long, as the end of a sentence; NULL if it can. */
const char *name_fault(const char *name, size_t most);

/* Writes the escaped text with its zero. `capacity` must be at least 3 bytes for each byte of the text, and one. */
void subject_escape(const char *text, char *ret_token, size_t capacity);

/* "crl.1.KIND.NAME", or with a machine "crl.1.KIND.MACHINE.NAME". */
void subject_make(char ret_subject[subject_max], const char *kind, const char *machine, const char *name);

#endif
