/* SPDX-License-Identifier: Apache-2.0 */
/* What the test of forks does with loops, with ports, and with what moves bytes. Any thread; each tells whether it worked. */
#ifndef CRL_TESTS_FORK_USES_H
#define CRL_TESTS_FORK_USES_H

#include <stdbool.h>

bool fork_use_timers(void);
bool fork_use_loops(void);
bool fork_use_sources(void);
bool fork_use_hosted_loops(void);
bool fork_use_signals(void);
bool fork_use_children(void);
bool fork_use_traces(void);
bool fork_use_tasks(void);

bool fork_use_ports(void);
bool fork_use_deferred_replies(void);
bool fork_use_mach_ports(void);

bool fork_use_bound_pairs(void);
bool fork_use_connections(void);
bool fork_use_files(void);
bool fork_use_sockets(void);
bool fork_use_descriptors(void);
bool fork_use_hosts(void);

#endif
