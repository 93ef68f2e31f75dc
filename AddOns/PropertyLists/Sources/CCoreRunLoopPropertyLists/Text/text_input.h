/* SPDX-License-Identifier: Apache-2.0 */
/* Brings text in any of the usual encodings into UTF-8. Belongs to one call. */
#ifndef CRL_PLIST_TEXT_INPUT_H
#define CRL_PLIST_TEXT_INPUT_H

#include "plist_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "Format/read_fault.h"

struct text_input {
    const uint8_t *bytes; /* in UTF-8, which need not be valid; without a byte order mark */
    size_t length;
    uint8_t *converted; /* to be freed; NULL if the bytes are those that were given */
};

/* The encoding is that of a byte order mark or of the declaration of XML, or UTF-8. */
bool text_input_begin(struct text_input *input, const uint8_t *bytes, size_t length, struct read_fault *fault);
void text_input_end(struct text_input *input);

/* Says why there is no string of bytes: that they are no UTF-8, or that there is no memory. */
bool text_input_set_fault(struct read_fault *fault, const uint8_t *start, const uint8_t *bytes, size_t length);

#endif
