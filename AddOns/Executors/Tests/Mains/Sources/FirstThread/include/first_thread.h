/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

/* Whether the caller is the process's first thread, as the kernel numbers them. */
bool is_first_thread(void);
