/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on standard error about what ports refuse: at most one a second, however many peers misbehave. */
#ifndef CRL_PORT_PORT_LOG_H
#define CRL_PORT_PORT_LOG_H

#include "Support/link_names.h"

/* For `function`, where what is told is of a local port and of no call. */
static const char port_log_receiver[] = "CFMessagePort";

/* "CoreRunLoop: <function>: <sentence>", cut at about 400 bytes. */
void port_log(const char *function, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text of a negative errno. */
const char *port_error_text(int error);

#endif
