/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a test in which an invariant does not hold. */
#include "Support/invariant.h"

#include "Support/fault.h"

void invariant_check(bool holds, const char *condition, const char *file, int line)
{
    if (!holds) {
        fault_stop_format("invariant", "%s:%d: %s", file, line, condition);
    }
}
