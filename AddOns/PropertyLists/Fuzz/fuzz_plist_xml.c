/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a document in XML, read with what may be changed as the first byte says. */
#include "plist_fuzz.h"

#include "Text/xml_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct read_fault fault = {{0}};

    if (size > 0) {
        plist_fuzz_tree(xml_read(NULL, bytes + 1, size - 1, bytes[0] % 3, &fault), &fault);
    }
    return 0;
}
