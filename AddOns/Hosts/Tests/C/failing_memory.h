/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is refused once: the n-th block that the program's own objects and the static library ask for on the first thread. */
#ifndef HOSTS_TESTS_FAILING_MEMORY_H
#define HOSTS_TESTS_FAILING_MEMORY_H

#include <stdbool.h>

void failing_memory_begin(unsigned n);
void failing_memory_end(void);

/* Whether a block was refused since the last begin. */
bool failing_memory_has_failed(void);

#endif
