/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns unique numbers, and the list of those that are constants.
 *
 * Numbers do not change, so any thread may use them. The list only grows, so it is searched without a lock.
 */
#include "CoreFoundation/CFUUID.h"

#include <stdatomic.h>
#include <string.h>

#include "Runtime/Object/object.h"
#include "Support/random_bytes.h"

struct uuid {
    struct object object;
    CFUUIDBytes bytes; /* constant */
    struct uuid *next; /* of a constant: the one that was there before it; constant once it is in the list */
};

static _Atomic(struct uuid *) constants; /* the last one added */

static Boolean equal(CFTypeRef one, CFTypeRef other)
{
    return memcmp(&((const struct uuid *)one)->bytes, &((const struct uuid *)other)->bytes, sizeof(CFUUIDBytes)) == 0;
}

static CFHashCode hash(CFTypeRef object)
{
    CFHashCode hash;

    memcpy(&hash, &((const struct uuid *)object)->bytes, sizeof hash);
    return hash;
}

static CFStringRef create_text(CFAllocatorRef allocator, const struct uuid *uuid)
{
    const UInt8 *b = (const UInt8 *)&uuid->bytes;

    return CFStringCreateWithFormat(allocator, NULL, CFSTR("%02X%02X%02X%02X-%02X%02X-%02X%02X-%02X%02X-%02X%02X%02X%02X%02X%02X"), b[0],
                                    b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

static CFStringRef copy_description(CFTypeRef object)
{
    CFStringRef text = create_text(NULL, object);
    CFStringRef words = text != NULL ? CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFUUID %p> %@"), object, text) : NULL;

    object_release_if_any(text);
    return words;
}

static const struct object_class uuid_class = {
    .type_id = object_type_uuid,
    .name = "CFUUID",
    .equal = equal,
    .hash = hash,
    .copy_description = copy_description,
};

static const struct uuid *uuid_of(CFUUIDRef uuid, const char *function)
{
    object_check(uuid, &uuid_class, function, "UUID");
    return (const struct uuid *)(const void *)uuid;
}

static struct uuid *create(CFAllocatorRef allocator, CFUUIDBytes bytes)
{
    struct uuid *uuid = object_create(allocator, &uuid_class, sizeof *uuid);

    if (uuid != NULL) {
        uuid->bytes = bytes;
    }
    return uuid;
}

CFTypeID CFUUIDGetTypeID(void)
{
    return object_type_uuid;
}

CFUUIDRef CFUUIDCreate(CFAllocatorRef allocator)
{
    CFUUIDBytes bytes;

    random_bytes_fill(&bytes, sizeof bytes);
    bytes.byte6 = (UInt8)((bytes.byte6 & 0x0F) | 0x40);
    bytes.byte8 = (UInt8)((bytes.byte8 & 0x3F) | 0x80);
    return CFUUIDCreateFromUUIDBytes(allocator, bytes);
}

CFUUIDRef CFUUIDCreateFromUUIDBytes(CFAllocatorRef allocator, CFUUIDBytes bytes)
{
    return (CFUUIDRef)(const void *)create(allocator, bytes);
}

CFUUIDRef CFUUIDCreateWithBytes(CFAllocatorRef allocator, UInt8 byte0, UInt8 byte1, UInt8 byte2, UInt8 byte3, UInt8 byte4, UInt8 byte5,
                                UInt8 byte6, UInt8 byte7, UInt8 byte8, UInt8 byte9, UInt8 byte10, UInt8 byte11, UInt8 byte12, UInt8 byte13,
                                UInt8 byte14, UInt8 byte15)
{
    CFUUIDBytes bytes = {byte0, byte1, byte2,  byte3,  byte4,  byte5,  byte6,  byte7,
                         byte8, byte9, byte10, byte11, byte12, byte13, byte14, byte15};

    return CFUUIDCreateFromUUIDBytes(allocator, bytes);
}

static int digit_of(UniChar unit)
{
    UniChar small = unit | 0x20;

    return unit >= '0' && unit <= '9' ? unit - '0' : small >= 'a' && small <= 'f' && unit < 0x80 ? small - 'a' + 10 : -1;
}

static bool read_text(CFStringRef text, UInt8 ret_bytes[16])
{
    enum { text_length = 36 };
    CFIndex index = 0;

    if (CFStringGetLength(text) != text_length) {
        return false;
    }
    for (int i = 0; i < 16; i++) {
        bool follows_hyphen = i == 4 || i == 6 || i == 8 || i == 10;

        if (follows_hyphen && CFStringGetCharacterAtIndex(text, index++) != '-') {
            return false;
        }
        int high = digit_of(CFStringGetCharacterAtIndex(text, index++));
        int low = digit_of(CFStringGetCharacterAtIndex(text, index++));
        if (high < 0 || low < 0) {
            return false;
        }
        ret_bytes[i] = (UInt8)(high << 4 | low);
    }
    return true;
}

CFUUIDRef CFUUIDCreateFromString(CFAllocatorRef allocator, CFStringRef text)
{
    CFUUIDBytes bytes;

    object_require(text, object_type_string, "CFUUIDCreateFromString", "text");
    return read_text(text, (UInt8 *)&bytes) ? CFUUIDCreateFromUUIDBytes(allocator, bytes) : NULL;
}

CFStringRef CFUUIDCreateString(CFAllocatorRef allocator, CFUUIDRef uuid)
{
    return create_text(allocator, uuid_of(uuid, "CFUUIDCreateString"));
}

CFUUIDBytes CFUUIDGetUUIDBytes(CFUUIDRef uuid)
{
    return uuid_of(uuid, "CFUUIDGetUUIDBytes")->bytes;
}

static struct uuid *find_constant(struct uuid *from, const struct uuid *to, const CFUUIDBytes *bytes)
{
    while (from != to && memcmp(&from->bytes, bytes, sizeof *bytes) != 0) {
        from = from->next;
    }
    return from != to ? from : NULL;
}

/* Adds a constant, unless another thread has added it meanwhile. `searched` is the head of the list as the caller has searched it. */
static struct uuid *add_constant(struct uuid *added, struct uuid *searched)
{
    struct uuid *first = searched;

    added->next = first;
    object_make_immortal(added);
    /* Release, paired with the acquire of the list's readers: a thread that sees a constant sees its bytes. */
    while (!atomic_compare_exchange_weak_explicit(&constants, &first, added, memory_order_release, memory_order_acquire)) {
        struct uuid *found = find_constant(first, searched, &added->bytes);

        if (found != NULL) {
            object_discard_immortal(added);
            return found;
        }
        searched = first;
        added->next = first;
    }
    return added;
}

CFUUIDRef CFUUIDGetConstantUUIDWithBytes(CFAllocatorRef allocator, UInt8 byte0, UInt8 byte1, UInt8 byte2, UInt8 byte3, UInt8 byte4,
                                         UInt8 byte5, UInt8 byte6, UInt8 byte7, UInt8 byte8, UInt8 byte9, UInt8 byte10, UInt8 byte11,
                                         UInt8 byte12, UInt8 byte13, UInt8 byte14, UInt8 byte15)
{
    (void)allocator;
    CFUUIDBytes bytes = {byte0, byte1, byte2,  byte3,  byte4,  byte5,  byte6,  byte7,
                         byte8, byte9, byte10, byte11, byte12, byte13, byte14, byte15};
    struct uuid *first = atomic_load_explicit(&constants, memory_order_acquire);
    struct uuid *uuid = find_constant(first, NULL, &bytes);
    if (uuid == NULL) {
        struct uuid *created = create(kCFAllocatorSystemDefault, bytes);

        uuid = created != NULL ? add_constant(created, first) : NULL;
    }
    return (CFUUIDRef)(const void *)uuid;
}
