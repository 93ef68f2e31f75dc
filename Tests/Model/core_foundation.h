/* SPDX-License-Identifier: Apache-2.0 */
/* A Core Foundation as a world: ours on the virtual clock, or, with MODEL_TOOLCHAIN, the Swift toolchain's on the real one. */
#ifndef CRL_MODEL_CORE_FOUNDATION_H
#define CRL_MODEL_CORE_FOUNDATION_H

#include "interpreter.h"

extern const struct world core_foundation;

#endif
