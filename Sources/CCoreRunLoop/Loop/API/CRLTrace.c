/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of CRLTrace.h. No state. */
#include "CRLTrace.h"

#include <errno.h>

#include "Loop/Run/thread_registry.h"
#include "Loop/Trace/trace_session.h"

int CRLTraceStart(const char *path, size_t bufferSize)
{
    if (!path || *path == '\0') {
        return EINVAL;
    }
    thread_registry_prepare(); /* which looks after forks */
    return trace_start(path, bufferSize);
}

void CRLTraceStop(void)
{
    trace_stop();
}
