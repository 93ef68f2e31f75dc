/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on standard error about what ports refuse: at most one a second in a row of each function, however many peers misbehave. */
#ifndef CRL_PORT_WIRE_PORT_LOG_H
#define CRL_PORT_WIRE_PORT_LOG_H

#include "Port/link_names.h"

/* The `function` of log lines about a local port that belong to no call. */
static const char port_log_receiver[] = "CFMessagePort";

/* Writes "CoreRunLoop: <function>: <sentence>", cut at about 400 bytes. */
void port_log(const char *function, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the text of a negative errno. */
const char *port_error_text(int error);

#endif
