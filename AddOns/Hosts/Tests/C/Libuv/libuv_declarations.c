/* SPDX-License-Identifier: Apache-2.0 */
/* What the Swift product declares of libuv is what libuv declares: the compiler refuses this file otherwise. */
#include <uv.h>

#include "CoreRunLoopLibuvShims/libuv_declarations.h"

_Static_assert(UV_POLL == 8 && UV_READABLE == 1 && sizeof(uv_handle_type) == sizeof(unsigned), "");
