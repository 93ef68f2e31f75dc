/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a tree from the binary format (binary_reader.h).
 *
 * An object is made once and used wherever it is referred to; those that may be changed are made each time. The objects of a file that
 * somebody made may lie over each other, or be referred to by millions of others, so what they take is counted: all objects that are made
 * have together at most a few times as many bytes as the file. The stack of open containers is in the heap.
 */
#include "Binary/binary_reader.h"

#include <stdlib.h>
#include <string.h>

#include "Binary/binary_format.h"
#include "Support/invariant.h"
#include "Tree/tree_builder.h"

/* How many times the length of the file may be made of it. */
enum { times_if_shared = 4, times_if_mutable = 64 };

struct binary_reader {
    const uint8_t *bytes;
    size_t table_offset; /* behind the objects */
    size_t offset_size;
    size_t reference_size;
    uint64_t object_count;
    CFTypeRef *objects; /* owned, by number: what was made and is shared; or `open_mark` */
    uint16_t *heights; /* of these: 1 for a container without others, 0 for a leaf */
    uint64_t budget; /* bytes of objects that may still be made */
    struct tree_builder builder;
    struct binary_level {
        uint64_t number; /* of the container */
        const uint8_t *references;
        uint64_t count; /* of values */
        uint64_t next; /* of the references in the order in which they are read */
        uint16_t height_inside; /* of the highest container in it so far */
        bool is_dictionary;
    } levels[tree_depth_max];
    size_t depth;
    struct read_fault *fault;
};

/* An object as it lies in the file. */
struct binary_object {
    uint64_t number;
    uint8_t marker;
    const uint8_t *contents; /* behind the marker and the count */
    uint64_t count;
};

static const char open_mark; /* stands for a container that is being read */
static const char too_deep[] = "Arrays and dictionaries are nested too deep";

static uint64_t read_big_endian(const uint8_t *bytes, size_t size)
{
    uint64_t number = 0;

    for (size_t i = 0; i < size; i++) {
        number = number << 8 | bytes[i];
    }
    return number;
}

static size_t bytes_left(const struct binary_reader *reader, const uint8_t *at)
{
    return (size_t)(reader->bytes + reader->table_offset - at);
}

static bool fail(struct binary_reader *reader, const char *words)
{
    return read_fault_set(reader->fault, "%s in the binary property list", words);
}

static bool lacks_memory(struct binary_reader *reader)
{
    return read_fault_set_no_memory(reader->fault);
}

/* ---- the trailer ---- */

bool binary_is_meant(const uint8_t *bytes, size_t length)
{
    return length >= binary_header_size + 1 + binary_trailer_size && memcmp(bytes, "bplist0", binary_magic_size) == 0;
}

/* Says whether `count` fits into `size` bytes with a number to spare. */
static bool fits(uint64_t count, size_t size)
{
    return size >= 8 || count < UINT64_C(1) << (size * 8);
}

static bool read_trailer(struct binary_reader *reader, size_t length)
{
    const uint8_t *trailer = reader->bytes + length - binary_trailer_size;
    uint64_t table_offset = read_big_endian(trailer + trailer_table_offset, 8);
    uint64_t table_size;

    reader->offset_size = trailer[trailer_offset_size];
    reader->reference_size = trailer[trailer_reference_size];
    reader->object_count = read_big_endian(trailer + trailer_object_count, 8);
    if (reader->offset_size < 1 || reader->offset_size > 8 || reader->reference_size < 1 || reader->reference_size > 8) {
        return fail(reader, "Offsets or references have no possible size");
    }
    if (__builtin_mul_overflow(reader->object_count, reader->offset_size, &table_size) || reader->object_count == 0 ||
        table_offset <= binary_header_size || table_offset > length - binary_trailer_size ||
        table_size != length - binary_trailer_size - table_offset) {
        return fail(reader, "The table of objects is not where the trailer says");
    }
    if (!fits(table_offset, reader->offset_size) || !fits(reader->object_count, reader->reference_size)) {
        return fail(reader, "Offsets or references are too short");
    }
    reader->table_offset = (size_t)table_offset;
    return true;
}

/* ---- objects ---- */

static uint64_t object_offset(const struct binary_reader *reader, uint64_t number)
{
    return read_big_endian(reader->bytes + reader->table_offset + number * reader->offset_size, reader->offset_size);
}

/* Reads the integer that stands for a count, and moves `*at` behind it. */
static bool read_long_count(struct binary_reader *reader, const uint8_t **at, uint64_t *ret_count)
{
    size_t left = bytes_left(reader, *at);
    size_t size = left > 0 && (**at & 0xF0) == binary_integer && (**at & 0x0F) <= 4 ? (size_t)1 << (**at & 0x0F) : 0;

    if (size == 0 || left - 1 < size || (size == 16 && read_big_endian(*at + 1, 8) != 0)) {
        return fail(reader, "A count is no integer");
    }
    *ret_count = size == 16 ? read_big_endian(*at + 9, 8) : read_big_endian(*at + 1, size);
    *at += 1 + size;
    return true;
}

/* Charges the bytes of an object, which is about to be made. */
static bool pay(struct binary_reader *reader, uint64_t bytes)
{
    if (reader->budget < bytes) {
        return fail(reader, "Objects lie over each other, or are repeated too often,");
    }
    reader->budget -= bytes;
    return true;
}

/* Finds an object, and charges the bytes that it has: `unit` for each that it counts. */
static bool measure_object(struct binary_reader *reader, struct binary_object *object)
{
    const uint8_t *start = object->contents - 1;
    uint64_t unit = 1;
    uint64_t size;

    switch (object->marker & 0xF0) {
    case binary_utf16:
        unit = 2;
        break;
    case binary_array:
        unit = reader->reference_size;
        break;
    case binary_dictionary:
        unit = 2 * reader->reference_size;
        break;
    case binary_data:
    case binary_ascii:
        break;
    default:
        return pay(reader, 1);
    }
    object->count = object->marker & 0x0F;
    if (object->count == binary_count_follows && !read_long_count(reader, &object->contents, &object->count)) {
        return false;
    }
    if (__builtin_mul_overflow(object->count, unit, &size) || size > bytes_left(reader, object->contents)) {
        return fail(reader, "An object is longer than what is there");
    }
    return pay(reader, (uint64_t)(object->contents - start) + size);
}

static bool find_object(struct binary_reader *reader, uint64_t number, struct binary_object *ret_object)
{
    uint64_t offset = object_offset(reader, number);

    if (offset < binary_header_size || offset >= reader->table_offset) {
        return fail(reader, "An object is outside its place");
    }
    *ret_object = (struct binary_object){number, reader->bytes[offset], reader->bytes + offset + 1, 0};
    return measure_object(reader, ret_object);
}

/* Returns NULL and says why, if there is no string. */
static CFStringRef create_string(struct binary_reader *reader, const struct binary_object *object)
{
    CFAllocatorRef allocator = reader->builder.allocator;
    CFStringRef string;

    if ((object->marker & 0xF0) == binary_ascii) {
        /* Others than ASCII should not be there, and are taken for Latin 1 as elsewhere. */
        string = CFStringCreateWithBytes(allocator, object->contents, (CFIndex)object->count, kCFStringEncodingISOLatin1, false);
    } else {
        UniChar *units = calloc((size_t)object->count + 1, sizeof *units);

        for (uint64_t i = 0; units && i < object->count; i++) {
            units[i] = (UniChar)(object->contents[2 * i] << 8 | object->contents[2 * i + 1]);
        }
        string = units ? CFStringCreateWithCharacters(allocator, units, (CFIndex)object->count) : NULL;
        free(units);
    }
    if (!string) {
        (void)lacks_memory(reader);
    }
    return string;
}

static CFTypeRef create_integer(struct binary_reader *reader, const struct binary_object *object)
{
    size_t size = (size_t)1 << (object->marker & 0x0F);
    uint64_t upper = 0;
    SInt64 integer;
    double real;

    if ((object->marker & 0x0F) > 4 || size > bytes_left(reader, object->contents)) {
        (void)fail(reader, "An integer has no possible size");
        return NULL;
    }
    if (size == 16) {
        upper = read_big_endian(object->contents, 8);
    }
    integer = (SInt64)read_big_endian(object->contents + (size == 16 ? 8 : 0), size == 16 ? 8 : size);
    if (size == 16 && upper != (integer < 0 ? UINT64_MAX : 0)) {
        real = (double)(int64_t)upper * 18446744073709551616.0 + (double)(uint64_t)integer;
        return CFNumberCreate(reader->builder.allocator, kCFNumberDoubleType, &real);
    }
    return CFNumberCreate(reader->builder.allocator, kCFNumberSInt64Type, &integer);
}

static CFTypeRef create_real_or_date(struct binary_reader *reader, const struct binary_object *object)
{
    bool is_short = object->marker == (binary_real | 2);
    size_t size = is_short ? 4 : 8;
    uint64_t bits;
    uint32_t short_bits;
    double real;
    float short_real;

    if ((!is_short && object->marker != (binary_real | 3) && object->marker != binary_date) ||
        size > bytes_left(reader, object->contents)) {
        (void)fail(reader, "A real or a date has no possible size");
        return NULL;
    }
    bits = read_big_endian(object->contents, size);
    short_bits = (uint32_t)bits;
    memcpy(&real, &bits, sizeof real);
    memcpy(&short_real, &short_bits, sizeof short_real);
    return object->marker == binary_date ? (CFTypeRef)CFDateCreate(reader->builder.allocator, real)
           : is_short                    ? (CFTypeRef)CFNumberCreate(reader->builder.allocator, kCFNumberFloat32Type, &short_real)
                                         : (CFTypeRef)CFNumberCreate(reader->builder.allocator, kCFNumberDoubleType, &real);
}

/* The dictionary that stands for the UID of a keyed archive. */
static CFTypeRef create_uid(struct binary_reader *reader, const struct binary_object *object)
{
    size_t size = (size_t)(object->marker & 0x0F) + 1;
    const uint8_t *contents = object->contents;
    CFTypeRef key = CFSTR("CF$UID");
    CFTypeRef number;
    CFTypeRef dictionary;
    SInt64 uid;

    if (size > bytes_left(reader, contents)) {
        (void)fail(reader, "A UID is longer than what is there");
        return NULL;
    }
    for (; size > 8 && *contents == 0; size--) {
        contents++;
    }
    uid = size <= 8 ? (SInt64)read_big_endian(contents, size) : -1;
    if (uid < 0 || uid > UINT32_MAX) {
        (void)fail(reader, "A UID has more than 32 bits");
        return NULL;
    }
    number = CFNumberCreate(reader->builder.allocator, kCFNumberSInt64Type, &uid);
    dictionary = number ? CFDictionaryCreate(reader->builder.allocator, &key, &number, 1, &kCFTypeDictionaryKeyCallBacks,
                                             &kCFTypeDictionaryValueCallBacks)
                        : NULL;
    if (number) {
        CFRelease(number);
    }
    return dictionary;
}

/* Returns NULL and says why, if the object is no leaf other than a string or data. */
static CFTypeRef create_small_leaf(struct binary_reader *reader, const struct binary_object *object)
{
    CFTypeRef leaf = NULL;

    switch (object->marker & 0xF0) {
    case 0:
        if (object->marker == binary_null || object->marker == binary_false || object->marker == binary_true) {
            return CFRetain(object->marker == binary_null    ? (CFTypeRef)kCFNull
                            : object->marker == binary_false ? (CFTypeRef)kCFBooleanFalse
                                                             : (CFTypeRef)kCFBooleanTrue);
        }
        (void)fail(reader, "There is an object of an unknown type");
        return NULL;
    case binary_integer:
        leaf = create_integer(reader, object);
        break;
    case binary_real:
    case binary_date & 0xF0:
        leaf = create_real_or_date(reader, object);
        break;
    case binary_uid:
        leaf = create_uid(reader, object);
        break;
    default:
        (void)fail(reader, "There is an object of an unknown type");
        return NULL;
    }
    if (!leaf) {
        (void)lacks_memory(reader); /* unless something else is said */
    }
    return leaf;
}

static void share(struct binary_reader *reader, uint64_t number, CFTypeRef object)
{
    invariant(!reader->objects[number] || reader->objects[number] == &open_mark);
    reader->objects[number] = CFRetain(object);
}

/* ---- the tree ---- */

static bool open_container(struct binary_reader *reader, const struct binary_object *object)
{
    bool is_dictionary = (object->marker & 0xF0) == binary_dictionary;

    if (reader->depth == tree_depth_max) {
        return fail(reader, too_deep);
    }
    if (!tree_builder_open(&reader->builder, is_dictionary ? tree_dictionary : tree_array)) {
        return lacks_memory(reader);
    }
    reader->objects[object->number] = &open_mark;
    reader->levels[reader->depth++] = (struct binary_level){object->number, object->contents, object->count, 0, 0, is_dictionary};
    return true;
}

/* The innermost container has got one of this height, or a leaf. */
static void note_height(struct binary_reader *reader, uint16_t height)
{
    struct binary_level *level = reader->depth > 0 ? &reader->levels[reader->depth - 1] : NULL;

    if (level && level->height_inside < height) {
        level->height_inside = height;
    }
}

/* What was made in another place counts with all that is in it. */
static bool add_known(struct binary_reader *reader, uint64_t number)
{
    if (reader->depth + reader->heights[number] > tree_depth_max) {
        return fail(reader, too_deep);
    }
    note_height(reader, reader->heights[number]);
    return tree_builder_add(&reader->builder, CFRetain(reader->objects[number])) || lacks_memory(reader);
}

static bool close_container(struct binary_reader *reader)
{
    const struct binary_level *level = &reader->levels[--reader->depth];
    uint64_t number = level->number;
    CFTypeRef container;

    note_height(reader, level->height_inside + 1);
    if (!tree_builder_close(&reader->builder, &container)) {
        return lacks_memory(reader);
    }
    if (reader->builder.mutability == kCFPropertyListImmutable) {
        reader->heights[number] = level->height_inside + 1;
        share(reader, number, container);
    } else {
        reader->objects[number] = NULL;
    }
    return true;
}

static bool add_string_or_data(struct binary_reader *reader, const struct binary_object *object)
{
    CFTypeRef leaf;

    if (reader->builder.mutability & kCFPropertyListMutableContainersAndLeaves) {
        if ((object->marker & 0xF0) == binary_data) {
            return tree_builder_add_data(&reader->builder, object->contents, (size_t)object->count) || lacks_memory(reader);
        }
        leaf = create_string(reader, object);
        return leaf && (tree_builder_add_string(&reader->builder, leaf) || lacks_memory(reader));
    }
    leaf = (object->marker & 0xF0) == binary_data
               ? (CFTypeRef)CFDataCreate(reader->builder.allocator, object->contents, (CFIndex)object->count)
               : (CFTypeRef)create_string(reader, object);
    if (!leaf) {
        return lacks_memory(reader);
    }
    share(reader, object->number, leaf);
    return tree_builder_add(&reader->builder, leaf) || lacks_memory(reader);
}

static bool add_object(struct binary_reader *reader, uint64_t number)
{
    struct binary_object object;
    CFTypeRef known = reader->objects[number];
    bool may_share =
        known && known != &open_mark &&
        !((reader->builder.mutability & kCFPropertyListMutableContainersAndLeaves) && CFGetTypeID(known) == CFStringGetTypeID());
    CFTypeRef leaf;

    if (known == &open_mark) {
        return fail(reader, "A container contains itself");
    }
    if (may_share) {
        return add_known(reader, number);
    }
    if (!find_object(reader, number, &object)) {
        return false;
    }
    switch (object.marker & 0xF0) {
    case binary_array:
    case binary_dictionary:
        return open_container(reader, &object);
    case binary_data:
    case binary_ascii:
    case binary_utf16:
        return add_string_or_data(reader, &object);
    default:
        leaf = create_small_leaf(reader, &object);
        if (!leaf) {
            return false;
        }
        share(reader, number, leaf);
        return tree_builder_add(&reader->builder, leaf) || lacks_memory(reader);
    }
}

/* A key is a string that cannot be changed, and is shared in each case. */
static bool add_key(struct binary_reader *reader, uint64_t number)
{
    struct binary_object object;
    CFTypeRef key = reader->objects[number];

    if (!key) {
        if (!find_object(reader, number, &object)) {
            return false;
        }
        if ((object.marker & 0xF0) != binary_ascii && (object.marker & 0xF0) != binary_utf16) {
            return fail(reader, "A key is no string");
        }
        key = create_string(reader, &object);
        if (!key) {
            return false;
        }
        reader->objects[number] = key;
    }
    if (key == &open_mark || CFGetTypeID(key) != CFStringGetTypeID()) {
        return fail(reader, "A key is no string");
    }
    return tree_builder_add_key(&reader->builder, CFRetain(key));
}

/* Reads the next reference of the innermost container, or ends it. Of a dictionary a key is followed by its value. */
static bool advance(struct binary_reader *reader)
{
    struct binary_level *level = &reader->levels[reader->depth - 1];
    uint64_t place = level->next++;
    bool is_key = level->is_dictionary && place % 2 == 0;
    uint64_t number;

    if (place == (level->is_dictionary ? level->count * 2 : level->count)) {
        return close_container(reader);
    }
    if (level->is_dictionary) {
        place = is_key ? place / 2 : level->count + place / 2;
    }
    number = read_big_endian(level->references + place * reader->reference_size, reader->reference_size);
    if (number >= reader->object_count) {
        return fail(reader, "There is a reference to no object");
    }
    return is_key ? add_key(reader, number) : add_object(reader, number);
}

enum { free_ahead = 8 }; /* objects whose counts are on their way from memory */

static void free_objects(struct binary_reader *reader)
{
    for (uint64_t i = 0; i < reader->object_count; i++) {
        if (i + free_ahead < reader->object_count) {
            __builtin_prefetch(reader->objects[i + free_ahead], 1);
        }
        if (reader->objects[i] && reader->objects[i] != &open_mark) {
            CFRelease(reader->objects[i]);
        }
    }
    free(reader->objects);
    free(reader->heights);
}

static CFTypeRef read_tree(struct binary_reader *reader, uint64_t root)
{
    CFTypeRef tree = NULL;
    bool is_going_on = root < reader->object_count ? add_object(reader, root) : fail(reader, "There is no object of the root's number");

    while (is_going_on && reader->depth > 0) {
        is_going_on = advance(reader);
    }
    if (is_going_on) {
        tree = tree_builder_take(&reader->builder);
    }
    return tree;
}

CFTypeRef binary_read(CFAllocatorRef allocator, const uint8_t *bytes, size_t length, CFOptionFlags mutability, struct read_fault *fault)
{
    struct binary_reader *reader = calloc(1, sizeof *reader);
    CFTypeRef tree = NULL;

    if (!reader) {
        (void)read_fault_set_no_memory(fault);
        return NULL;
    }
    reader->bytes = bytes;
    reader->fault = fault;
    reader->budget = (uint64_t)length * (mutability == kCFPropertyListImmutable ? times_if_shared : times_if_mutable);
    tree_builder_begin(&reader->builder, allocator, mutability);
    reader->builder.keeps_first = true;
    if (read_trailer(reader, length)) {
        reader->objects = calloc(reader->object_count, sizeof *reader->objects);
        reader->heights = calloc(reader->object_count, sizeof *reader->heights);
        if (reader->objects && reader->heights) {
            tree = read_tree(reader, read_big_endian(bytes + length - binary_trailer_size + trailer_root, 8));
            free_objects(reader);
        } else {
            free(reader->objects);
            free(reader->heights);
            (void)lacks_memory(reader);
        }
    }
    tree_builder_end(&reader->builder);
    free(reader);
    return tree;
}
