/* SPDX-License-Identifier: Apache-2.0 */
/* The executable specification, as a world. Single-threaded; its clock is a number. */
#ifndef CRL_MODEL_MODEL_H
#define CRL_MODEL_MODEL_H

#include "interpreter.h"

extern const struct world model;

/* Behaves as the Swift toolchain's Core Foundation where that deviates from the rules. */
extern bool model_follows_toolchain;
/* The last program slept for a time that would have to pass on a real clock. */
extern bool model_has_slept;

#endif
