/* SPDX-License-Identifier: Apache-2.0 */
/* The table of loaded objects in a trace, by which a reader finds the names of functions. No state. */
#ifndef CRL_LOOP_TRACE_TRACE_OBJECTS_H
#define CRL_LOOP_TRACE_TRACE_OBJECTS_H

#include "Loop/link_names.h"

#include "Loop/Trace/trace_file.h"

/* Fills the table with the process's objects that have code. `program` is the path of the first one, which the loader has no name for. */
void trace_objects_list(struct trace_objects *objects, const char *program);

#endif
