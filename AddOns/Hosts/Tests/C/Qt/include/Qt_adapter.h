/* SPDX-License-Identifier: Apache-2.0 */
/* What this target has is host.h, for Qt. */
#include "host.h"
