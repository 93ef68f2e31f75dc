/* SPDX-License-Identifier: Apache-2.0 */
/* Stops a fuzz target with a message when the library is wrong. */
#ifndef CRL_FUZZ_CHECK_H
#define CRL_FUZZ_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition_)                                                                    \
    do {                                                                                     \
        if (!(condition_)) {                                                                 \
            (void)fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition_); \
            abort();                                                                         \
        }                                                                                    \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#endif
