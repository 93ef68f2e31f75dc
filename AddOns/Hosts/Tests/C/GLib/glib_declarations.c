/* SPDX-License-Identifier: Apache-2.0 */
/* What the Swift product declares of GLib is what GLib declares: the compiler refuses this file otherwise. */
#include <glib-unix.h>

#include "CoreRunLoopGLibShims/glib_declarations.h"

_Static_assert(G_IO_IN == 1 && sizeof(GIOCondition) == sizeof(unsigned), "");
_Static_assert(sizeof(GPollFD) == 8 && offsetof(GPollFD, events) == 4 && offsetof(GPollFD, revents) == 6, "");
_Static_assert(G_SOURCE_CONTINUE == 1 && G_PRIORITY_DEFAULT == 0, "");
