/* SPDX-License-Identifier: Apache-2.0 */
/* Names of ports; see port_name.h. */
#include "Port/Names/port_name.h"

#include <stdio.h>
#include <string.h>

static const uint64_t hash_start = 0xCBF29CE484222325;
static const uint64_t hash_factor = 0x100000001B3;

bool port_name_of_bytes(const char *bytes, size_t length, struct port_name *ret_name)
{
    if (!wire_name_is_valid(bytes, length)) {
        return false;
    }
    ret_name->length = (uint16_t)length;
    memcpy(ret_name->bytes, bytes, length);
    ret_name->bytes[length] = '\0';
    return true;
}

bool port_name_of(CFStringRef string, struct port_name *ret_name)
{
    CFIndex length = CFStringGetLength(string);
    UInt8 bytes[wire_name_max];
    CFIndex used = 0;
    CFIndex taken = CFStringGetBytes(string, CFRangeMake(0, length), kCFStringEncodingUTF8, 0, false, bytes, wire_name_max, &used);
    UInt8 more[4];
    CFIndex more_used = 0;

    /* Characters beyond the limit are cut off. A character that cannot be converted makes the string no name. */
    if (taken < length && CFStringGetBytes(string, CFRangeMake(taken, length - taken > 1 ? 2 : 1), kCFStringEncodingUTF8, 0, false, more,
                                           sizeof more, &more_used) == 0) {
        return false;
    }
    for (CFIndex i = taken; i < length; i++) {
        if (CFStringGetCharacterAtIndex(string, i) == 0) {
            return false;
        }
    }
    return port_name_of_bytes((const char *)bytes, (size_t)used, ret_name);
}

bool port_name_equal(const struct port_name *one, const struct port_name *other)
{
    return one->length == other->length && memcmp(one->bytes, other->bytes, one->length) == 0;
}

CFStringRef port_name_string(const struct port_name *name)
{
    return CFStringCreateWithBytes(NULL, (const UInt8 *)name->bytes, name->length, kCFStringEncodingUTF8, false);
}

static bool stands_for_itself(char byte, size_t place)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '_' ||
           (byte == '.' && place > 0);
}

static uint64_t hash_of(const struct port_name *name)
{
    uint64_t hash = hash_start;

    for (size_t i = 0; i < name->length; i++) {
        hash = (hash ^ (uint8_t)name->bytes[i]) * hash_factor;
    }
    hash ^= hash >> 33;
    hash *= 0xFF51AFD7ED558CCD;
    return hash ^ (hash >> 33);
}

void port_name_leaf(const struct port_name *name, char ret_leaf[port_leaf_size])
{
    enum { hash_digits = 16 };
    static const char digits[] = "0123456789ABCDEF";
    char escaped[3 * wire_name_max + 1];
    size_t length = 0;

    for (size_t i = 0; i < name->length; i++) {
        char byte = name->bytes[i];

        if (stands_for_itself(byte, i)) {
            escaped[length++] = byte;
        } else {
            escaped[length++] = '%';
            escaped[length++] = digits[(uint8_t)byte >> 4];
            escaped[length++] = digits[(uint8_t)byte & 15];
        }
    }
    escaped[length] = '\0';
    if (length < port_leaf_size) {
        memcpy(ret_leaf, escaped, length + 1);
        return;
    }
    length = port_leaf_size - 1 - hash_digits - 1;
    memcpy(ret_leaf, escaped, length);
    (void)snprintf(ret_leaf + length, port_leaf_size - length, "~%016llX", (unsigned long long)hash_of(name));
}
