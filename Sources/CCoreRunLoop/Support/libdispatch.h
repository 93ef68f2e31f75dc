/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libdispatch that run the work of ports and streams on a dispatch queue. libdispatch is not linked, only found: where the
 * process does not have it, the functions are NULL. No state.
 */
#ifndef CRL_SUPPORT_LIBDISPATCH_H
#define CRL_SUPPORT_LIBDISPATCH_H

#include "Support/link_names.h"

#include <stdbool.h>
#include <stdint.h>

extern const char _dispatch_source_type_read[] __attribute__((weak));
extern void *dispatch_source_create(const void *type, uintptr_t handle, uintptr_t mask, void *queue) __attribute__((weak));
extern void dispatch_set_context(void *object, void *context) __attribute__((weak));
extern void dispatch_source_set_event_handler_f(void *source, void (*handler)(void *context)) __attribute__((weak));
extern void dispatch_source_set_cancel_handler_f(void *source, void (*handler)(void *context)) __attribute__((weak));
extern void dispatch_resume(void *object) __attribute__((weak));
extern void dispatch_source_cancel(void *source) __attribute__((weak));
extern void dispatch_retain(void *object) __attribute__((weak));
extern void dispatch_release(void *object) __attribute__((weak));

/* Returns true if all of them are there. */
static inline bool libdispatch_is_there(void)
{
    return dispatch_source_create && dispatch_set_context && dispatch_source_set_event_handler_f && dispatch_source_set_cancel_handler_f &&
           dispatch_resume && dispatch_source_cancel && dispatch_retain && dispatch_release;
}

#endif
