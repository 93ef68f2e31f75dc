/* SPDX-License-Identifier: Apache-2.0 */
/* Foundation's run loop beside this package's, and a descriptor for a process. Whoever links this links Foundation. */

#if !defined(CORE_RUN_LOOP_FOUNDATION_SHIMS_H)
#define CORE_RUN_LOOP_FOUNDATION_SHIMS_H 1

#include <stdbool.h>
#include <stdint.h>

/* Whether runs of Foundation's loop and of this package's loop serve the items of both. */
bool foundation_loops_are_joined(void);

/* From now on each loop serves its own items only. */
void foundation_loops_part(void);

/* A new descriptor that is readable once the process has ended, whoever takes its status; -1 where there is none. */
int process_descriptor(int32_t process);

/* Told of an event of a stream, by the number that `Stream.Event` has. */
typedef void foundation_stream_told(void *_Nullable stream, unsigned long event, void *_Nullable info);

/*
 * Has `told` called at the events of a stream of the toolchain's Core Foundation, in the toolchain's loops; an `info` of NULL ends that.
 * The stream takes over the `info`, and calls `release` when another client takes its place, or with its own end. False leaves it.
 */
bool foundation_stream_set_client(void *_Nonnull stream, bool reads, foundation_stream_told *_Nonnull told, void *_Nullable info,
                                  void (*_Nonnull release)(void *_Nullable info));

#endif
