/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An add-on library for one name at a time, whose query streams drive themselves (version 1 of the table). The test says the answer, on
 * any thread. Also a listener that swallows what wants to connect to it.
 */
#ifndef CRL_TESTS_STREAM_FAKE_NAMES_H
#define CRL_TESTS_STREAM_FAKE_NAMES_H

#include <stdbool.h>

#include <CoreFoundation/CoreFoundation.h>

/* Installs the table. */
void fake_names_install(void);
/* The name has these ports of 127.0.0.1, or of ::1 if they are negative. Without a count it does not resolve: NetDB, -2. */
void fake_names_answer(const int *ports, int count);
/* The same for the next one who asks, before anybody does. */
void fake_names_answer_at_once(const int *ports, int count);
int fake_names_frees(void);

/* A port of 127.0.0.1 where connections are never made, nor refused: its listener accepts none, and its backlog is full. */
struct swallower {
    int listener;
    int fillers[8];
    int count;
    int port;
};

void swallower_open(struct swallower *swallower);
void swallower_close(struct swallower *swallower);

#endif
