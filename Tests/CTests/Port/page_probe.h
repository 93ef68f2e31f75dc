/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of pages of shared memory have in common (Port/Wire/shared_page.h, reply_page.h, ack_page.h). */
#ifndef CRL_TESTS_PAGE_PROBE_H
#define CRL_TESTS_PAGE_PROBE_H

#include <stdbool.h>
#include <sys/types.h>

/* Counts from now on what the library maps; both sides are in this process. */
void page_probe_count(void);
extern _Atomic int page_probe_mapped;

/* A descriptor of memory with those seals; without its bytes unless `is_filled`. */
int page_probe_memory(off_t size, int seals, bool is_filled);

/* Two threads meet in each round: neither goes on before both have come to it. */
void page_probe_meet(_Atomic int *own, const _Atomic int *other, int round);
/* So that now the one, now the other is first. */
void page_probe_dawdle(int round);

#endif
