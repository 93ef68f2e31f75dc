/* SPDX-License-Identifier: Apache-2.0 */
/* The text that the owner of a name writes into the name's lock file, for processes that look the name up. No state. */
#ifndef CRL_PORT_NAMES_PORT_CARD_H
#define CRL_PORT_NAMES_PORT_CARD_H

#include "Port/link_names.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "Port/Names/port_name.h"

struct port_card {
    pid_t pid;
    uint32_t queue_limit;
    uint64_t budget;
    uint32_t features; /* of enum wire_feature; a card of a library that knows none has no such number */
    struct port_name name;
};

/* Writes the card of this process into the file `lock`. Returns 0 or a negative errno. */
int port_card_write(int lock, const struct port_card *card);
/* Reads the card in the file `leaf` of a directory. Returns false if there is none, or what is there is none. */
bool port_card_read(int directory, const char *leaf, struct port_card *ret_card);

#endif
