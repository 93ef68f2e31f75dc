/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binary format: "bplist00", objects, the table of their places, a trailer. All numbers have the most significant byte first.
 *
 * An object begins with a byte: its type in the upper half, a size in the lower. A count of 15 says that the real one follows as an integer
 * object. Containers hold numbers of objects: an array its values, a dictionary its keys and then its values.
 */
#ifndef CRL_PLIST_BINARY_FORMAT_H
#define CRL_PLIST_BINARY_FORMAT_H

#include "plist_link_names.h"

enum {
    binary_magic_size = 7, /* "bplist0", and a byte that says the version */
    binary_header_size = 8,
    binary_trailer_size = 32,
    binary_count_follows = 15,
};

enum binary_type {
    binary_null = 0x00,
    binary_false = 0x08,
    binary_true = 0x09,
    binary_integer = 0x10, /* of 2^n bytes: without a sign up to 4, with one from 8 on */
    binary_real = 0x20, /* of 2^n bytes, 4 or 8 */
    binary_date = 0x33, /* a real of 8 bytes: seconds since 2001 */
    binary_data = 0x40,
    binary_ascii = 0x50,
    binary_utf16 = 0x60, /* the count is of units */
    binary_uid = 0x80, /* of n + 1 bytes */
    binary_array = 0xA0,
    binary_dictionary = 0xD0,
};

/* Where the fields of the trailer are. */
enum {
    trailer_offset_size = 6, /* bytes of an offset */
    trailer_reference_size = 7, /* bytes of a number of an object */
    trailer_object_count = 8,
    trailer_root = 16,
    trailer_table_offset = 24,
};

#endif
