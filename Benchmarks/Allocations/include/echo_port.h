/* SPDX-License-Identifier: Apache-2.0 */
/* A message port that echoes, in C: what the overlay's is compared with. */
#ifndef ECHO_PORT_H
#define ECHO_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "../../../Headers/CoreFoundation/CFMessagePort.h"

CFMessagePortRef echo_port_create(CFStringRef name) CF_RETURNS_RETAINED;
bool echo_port_request(CFMessagePortRef remote, const uint8_t *bytes, intptr_t length, bool wants_answer);

#endif
