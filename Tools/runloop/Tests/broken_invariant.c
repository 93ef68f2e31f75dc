/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the command in the build for its tests if an invariant does not hold. The library's function would need the whole library. */
#include "Support/invariant.h"

#include <stdio.h>
#include <stdlib.h>

void invariant_check(bool holds, const char *condition, const char *file, int line)
{
    if (!holds) {
        (void)fprintf(stderr, "invariant: %s:%d: %s\n", file, line, condition);
        abort();
    }
}
