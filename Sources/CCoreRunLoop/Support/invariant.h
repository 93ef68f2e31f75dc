/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions that hold whatever a program does. A build for tests (CRL_TESTING) checks each one and aborts where it does not hold; other
 * builds do not evaluate it. A mistake of the program is no invariant: Support/fault.h reports those.
 */
#ifndef CRL_SUPPORT_INVARIANT_H
#define CRL_SUPPORT_INVARIANT_H

#include "Support/link_names.h"

#include <stdbool.h>

/* A call and no branch of its own, so that coverage counts what the condition asks and not the case in which it does not hold. */
#if defined(CRL_TESTING)
#define invariant(condition) invariant_check((condition), #condition, __FILE__, __LINE__)
#else
#define invariant(condition) ((void)(0 && (condition))) /* a use for the compiler, in code that never runs */
#endif

/* Unless the condition holds, prints it with its place and aborts. */
void invariant_check(bool holds, const char *condition, const char *file, int line);

#endif
