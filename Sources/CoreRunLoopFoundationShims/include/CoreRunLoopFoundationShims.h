// SPDX-License-Identifier: Apache-2.0
//
// Foundation's run loop beside this package's, and a descriptor for a process. Whoever links this links Foundation.

#if !defined(CORE_RUN_LOOP_FOUNDATION_SHIMS_H)
#define CORE_RUN_LOOP_FOUNDATION_SHIMS_H 1

#include <stdbool.h>
#include <stdint.h>

/// Whether runs of Foundation's loop and of this package's loop serve the items of both.
bool foundation_loops_are_joined(void);

/// From now on each loop serves its own items only.
void foundation_loops_part(void);

/// A new descriptor that is readable once the process has ended, whoever takes its status; -1 where there is none.
int process_descriptor(int32_t process);

#endif
