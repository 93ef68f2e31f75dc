/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Traces: what the loops of a process do, event by event, in a file that the command `runloop` turns into a picture, for Perfetto, or into
 * a table.
 *
 * A program need not call anything: with `CORERUNLOOP_TRACE=FILE` in its environment it is traced from its first loop on, and
 * `runloop trace` sets that. Each thread writes into a ring of its own, which holds its latest events. The file can be read even after the
 * process was killed. Tools/runloop/trace.md says how to read a trace, and docs/trace-format.md what its bytes mean.
 *
 * `CoreFoundation.h` does not include this header.
 */

#if !defined(CRL_TRACE_H)
#define CRL_TRACE_H 1

#include <stddef.h>

#include "CoreFoundation/CFBase.h"

CF_EXTERN_C_BEGIN

/**
 * Begins to write what all loops of this process do into a new file at `path`, for its owner only.
 *
 * `bufferSize` is the size of each thread's ring in bytes, at 32 bytes an event, rounded up to a power of two; 0 stands for 2 MB. A thread
 * takes that much of the disk at its first event. When its ring is full, its oldest events go, and are counted. At most 1,024 threads get a
 * ring. The child of a fork writes into a file of its own, `path` with a full stop and its number behind it, from its first run on.
 * Threads: any. An event costs its thread some 50 ns.
 * Errors: 0 for success; otherwise an error number of errno.h. EINVAL if `path` is NULL or empty, EBUSY if a trace is on already, EEXIST if
 * there is such a file, ENAMETOOLONG, ENOMEM, and the errors of open, fallocate and mmap. No file is left behind then.
 * Differs from Apple: Apple's loop has no such function.
 */
CF_EXPORT int CRLTraceStart(const char *path, size_t bufferSize) CRL_LINK(CRLTraceStart);

/**
 * Ends the trace that is on, and does nothing if there is none. The file is whole when the call returns.
 *
 * An event that another thread is just writing may still be added. The memory that maps the file stays mapped until the process ends.
 * Threads: any.
 */
CF_EXPORT void CRLTraceStop(void) CRL_LINK(CRLTraceStop);

CF_EXTERN_C_END

#endif
