/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a file in the binary format, read with what may be changed as the first byte says. An odd second byte makes a trailer that
 * fits, so that the objects are reached: the bytes before the last are objects, the others their offsets.
 */
#include "plist_fuzz.h"

#include "Binary/binary_format.h"
#include "Binary/binary_reader.h"
#include <string.h>

enum { most_bytes = 4096 };

static size_t add_trailer(uint8_t *file, const uint8_t *bytes, size_t size)
{
    size_t count = size > 0 ? bytes[0] % 32 + 1 : 1;
    size_t length = binary_header_size;

    memcpy(file, "bplist00", length);
    count = count < size ? count : size;
    memcpy(file + length, bytes, size);
    length += size - count; /* the last bytes are the table */
    memset(file + length + count, 0, binary_trailer_size);
    file[length + count + trailer_offset_size] = 1;
    file[length + count + trailer_reference_size] = 1;
    file[length + count + trailer_object_count + 7] = (uint8_t)count;
    file[length + count + trailer_table_offset + 6] = (uint8_t)(length >> 8);
    file[length + count + trailer_table_offset + 7] = (uint8_t)length;
    return length + count + binary_trailer_size;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static uint8_t file[binary_header_size + most_bytes + binary_trailer_size];
    struct read_fault fault = {{0}};
    size_t length;

    if (size < 2 || size > most_bytes) {
        return 0;
    }
    length = bytes[1] % 2 ? add_trailer(file, bytes + 2, size - 2) : size - 2;
    if (bytes[1] % 2 == 0) {
        memcpy(file, bytes + 2, length);
    }
    if (binary_is_meant(file, length)) {
        uint8_t *copy = malloc(length); /* so that the sanitizer sees its end */

        memcpy(copy, file, length);
        plist_fuzz_tree(binary_read(NULL, copy, length, bytes[0] % 3, &fault), &fault);
        free(copy);
    }
    return 0;
}
