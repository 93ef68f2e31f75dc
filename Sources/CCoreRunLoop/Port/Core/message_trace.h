/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the number that names a message in a trace, the same on both sides, so that a reader joins its sending, its callout and its reply.
 *
 * A message by a socket is told apart by the port's name, the sender's process and the number of its frame. A message within the process is
 * named by its address.
 */
#ifndef CRL_PORT_CORE_MESSAGE_TRACE_H
#define CRL_PORT_CORE_MESSAGE_TRACE_H

#include "Port/link_names.h"

#include <stdint.h>
#include <sys/types.h>

#include "Loop/Trace/trace.h"
#include "Port/Core/message_port.h"
#include "Port/Names/port_name.h"

static inline uint64_t message_trace_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static inline uint64_t message_trace_id(const struct port_name *name, pid_t sender, uint32_t sequence)
{
    uint64_t hash = message_trace_mix(name->length, (uint64_t)(uint32_t)sender << 32 | sequence);

    for (uint16_t i = 0; i < name->length; i++) {
        hash = message_trace_mix(hash, (unsigned char)name->bytes[i]);
    }
    return hash;
}

/* Writes an event that has the port's name. Hearers read the name at that address, which may change once the lock is dropped. */
static inline void message_trace_named(enum trace_kind kind, uint32_t detail, uint64_t object, CFMessagePortRef port)
{
    port_lock(port);
    if (port->name.length > 0) {
        trace_write_name(port->name.bytes, port->name.bytes);
        trace_write(kind, detail, object, (uintptr_t)port->name.bytes);
    }
    port_unlock(port);
}

#endif
