/* SPDX-License-Identifier: Apache-2.0 */
/* The interest of a source in its descriptor: bits of a word that the source's owner and the loops share. Any thread may update it. */
#ifndef CRL_LOOP_SOURCE_DESCRIPTOR_INTEREST_H
#define CRL_LOOP_SOURCE_DESCRIPTOR_INTEREST_H

#include "Loop/link_names.h"

#include "Kernel/kernel.h"

/*
 * An owner that has such a word of its own may use the bits from descriptor_interest_end on.
 *
 * Deferred re-arm. A callout often asks again for the kind of readiness that it was just called for. Such a callout can defer: in one
 * update it clears the wanted bit and sets the deferred bit. To want the kind again, an update clears the deferred bit and sets the wanted
 * bit. No loop has to be told then, because the loops still watch for that kind. A loop that stops watching clears the deferred bits first
 * (watch_recompute), so that a later update finds that loops have to be told.
 *
 * Changes. A socket that is not connected yet is ready all the time, in a way that nobody wants to hear of. Its owner asks for changes:
 * the present state is reported once, and again each time that something has changed. A source on the same descriptor that wants readiness
 * itself is served first. The loop looks before each wait for changes that the kernel does not report.
 */
enum descriptor_interest {
    descriptor_wanted = kernel_readable | kernel_writable | kernel_priority,
    descriptor_rearm_deferred_shift = 3,
    descriptor_rearm_deferred = descriptor_wanted << descriptor_rearm_deferred_shift,
    descriptor_changes_shift = 6,
    descriptor_changes = descriptor_wanted << descriptor_changes_shift,
    descriptor_unreported = 1 << 9, /* with changes: the kernel does not report when the descriptor becomes writable */
    descriptor_interest_end = 1 << 10, /* from here the bits are the owner's */
};

#endif
