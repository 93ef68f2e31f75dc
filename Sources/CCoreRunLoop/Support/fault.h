/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens when the library is misused: a sentence on standard error that names the public function and the mistake, and the end of
 * the process; or, for bad input that can be given a meaning, one line a process.
 *
 * No locks, no allocation, no dependence on the state of stdio: all of it may be called from a signal handler.
 */
#ifndef CRL_SUPPORT_FAULT_H
#define CRL_SUPPORT_FAULT_H

#include "Support/link_names.h"

#include <stdatomic.h>

/* Prints `CoreRunLoop: <function>: <sentence>` and aborts. */
_Noreturn void fault_stop(const char *function, const char *sentence);

/* As fault_stop, where the sentence holds a name or a number; the formatted sentence is cut at about 250 bytes. */
_Noreturn void fault_stop_format(const char *function, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints `CoreRunLoop: <text>` the first time it is called with this flag, which starts as ATOMIC_FLAG_INIT. Keeps errno. */
void fault_log_once(atomic_flag *logged, const char *text);

/* Prints `CoreRunLoop: <text>`, which may have several lines and ends with the end of one. Keeps errno. */
void fault_log_lines(const char *text);

#endif
