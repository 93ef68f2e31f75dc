/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Sources that tell when memory becomes scarce, as DISPATCH_SOURCE_TYPE_MEMORYPRESSURE tells it on Apple's systems. They are in the add-on
 * library libcorerunloop-services.
 *
 * What they listen to is found once, at creation, and is the first of these that there is:
 *
 * 1. What the service manager names in the environment: MEMORY_PRESSURE_WATCH is a path of a pressure file, a FIFO or a stream socket, and
 *    MEMORY_PRESSURE_WRITE is what to write to it, in base64, unless it is a FIFO. The path /dev/null asks for no source at all.
 * 2. The pressure file of the process's own control group (cgroup2): warnings come when tasks in it waited for memory for 0.2 of 2 seconds.
 * 3. The same of the whole system, /proc/pressure/memory.
 *
 * Besides, the counters `high`, `max`, `oom` and `oom_kill` of the control group's `memory.events` are watched. Growth of them is critical:
 * without a control group that has them, nothing is. See systemd's "Memory Pressure Handling" and the kernel's accounting/psi.rst.
 *
 * `CoreFoundation.h` does not include this header.
 */

#if !defined(CRL_MEMORY_PRESSURE_H)
#define CRL_MEMORY_PRESSURE_H 1

#include "CRLRunLoop.h"
#include "CoreFoundation/CFBase.h"
#include "CoreFoundation/CFRunLoop.h"

CF_EXTERN_C_BEGIN

/** How scarce memory is; the values may be or'ed, and are those of DISPATCH_MEMORYPRESSURE_NORMAL and its like. */
typedef CF_ENUM(CFOptionFlags, CRLMemoryPressureLevels) {
    kCRLMemoryPressureNormal = 1UL << 0, /**< There has been no sign of scarcity for 5 seconds. */
    kCRLMemoryPressureWarning = 1UL << 1, /**< Tasks wait for memory: give back what can be made again. */
    kCRLMemoryPressureCritical = 1UL << 2 /**< A limit was reached: give back all that can be, or the kernel will kill a process. */
};

/** A pressure source's callback: `level` is one of the levels. It runs on the loop's thread and may call any function. */
typedef void (*CRLMemoryPressureCallBack)(CFRunLoopSourceRef source, CFOptionFlags level, void *info);

/**
 * Creates a version-1 source that tells the levels in `levels` from now on.
 *
 * At first the level is normal, which is not told. A higher level is told at once. Every 5 seconds after that the highest level of which
 * there was a sign meanwhile is told, which may be the same again, until it is normal. `context` may be NULL and is copied.
 * When what it listens to goes away, as the manager's socket does, nothing more is told of it.
 * Ownership: the caller releases the source; `info` is retained as the context says. Its end may wait for the kernel, for some hundredths
 * of a second.
 * Threads: any, while none changes the environment. In the child of a fork the source is invalid from its first event on.
 * Errors: NULL, and errno says why. EHOSTDOWN: the environment says /dev/null. EBADMSG: its path is not absolute or too long, or its
 * base64 is wrong or for more than 768 bytes. ENOTTY: its path is none of the three kinds. Any other of opening that path. Without one:
 * that of the last thing tried, such as ENOENT of a kernel without pressure files (PSI), and EPERM of an older one that keeps them for
 * privileged processes. ENOSYS when asynchronous polls are not there, EMFILE, ENOMEM and EAGAIN when there are no more. EINVAL when
 * `callout` is NULL, `levels` has none of the levels, or the context's version is not 0.
 */
CF_EXPORT CFRunLoopSourceRef CRLMemoryPressureSourceCreate(CFAllocatorRef allocator, CFOptionFlags levels, CFIndex order,
                                                           CRLMemoryPressureCallBack callout, const CRLSourceContext *context)
    CRL_LINK(CRLMemoryPressureSourceCreate) CF_RETURNS_RETAINED;

CF_EXTERN_C_END

#endif /* ! CRL_MEMORY_PRESSURE_H */
