/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as C. */
#ifndef CRL_MODEL_PRINT_H
#define CRL_MODEL_PRINT_H

#include <stdio.h>

#include "interpreter.h"

/* A test case that ends in EXPECT_LOG of what the model did. */
void program_print(FILE *file, const struct program *program, const char *name, const struct trace *expected);

#endif
