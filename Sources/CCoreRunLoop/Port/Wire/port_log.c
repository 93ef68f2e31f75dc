/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines about packets and names that ports refuse; see port_log.h. */
#define _GNU_SOURCE
#include "Port/Wire/port_log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "Kernel/kernel.h"
#include "Support/error_text.h"
#include "Support/fault.h"

static const int64_t interval_ns = 1000000000;

/* The time and the function of the last log line. Another function may log at once, the same one only after interval_ns. */
static _Atomic int64_t last_ns;
static _Atomic(const char *) last_function;

void port_log(const char *function, const char *format, ...)
{
    char line[400];
    char text[320];
    atomic_flag never_logged = ATOMIC_FLAG_INIT;
    int64_t now_ns = kernel.monotonic_ns();
    int64_t before_ns = atomic_load_explicit(&last_ns, memory_order_relaxed);
    va_list arguments;

    if (before_ns != 0 && now_ns - before_ns < interval_ns && atomic_load_explicit(&last_function, memory_order_relaxed) == function) {
        return;
    }
    atomic_store_explicit(&last_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&last_function, function, memory_order_relaxed);
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)snprintf(line, sizeof line, "%s: %s", function, text);
    fault_log_once(&never_logged, line);
}

const char *port_error_text(int error)
{
    return error_text(-error);
}
