/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way of taking out of a string what C or the system reads up to a NUL: what the program has checked is then what is used. For the
 * core and its add-ons. Any thread, no locks.
 */
#ifndef CRL_RUNTIME_C_STRING_H
#define CRL_RUNTIME_C_STRING_H

#include "Runtime/link_names.h"

#include <stdbool.h>
#include <string.h>

#include "CoreFoundation/CFString.h"

/* Returns false, with an empty text, if the string does not fit, if the encoding lacks a character, or if one of them is NUL. */
static inline bool c_string_copy(CFStringRef string, char *text, size_t size, CFStringEncoding encoding)
{
    CFIndex length = CFStringGetLength(string);
    CFIndex used = 0;
    CFIndex taken = CFStringGetBytes(string, CFRangeMake(0, length), encoding, 0, false, (UInt8 *)text, (CFIndex)size - 1, &used);
    bool is_whole = taken == length && !memchr(text, '\0', (size_t)used);

    text[is_whole ? used : 0] = '\0';
    return is_whole;
}

#endif
