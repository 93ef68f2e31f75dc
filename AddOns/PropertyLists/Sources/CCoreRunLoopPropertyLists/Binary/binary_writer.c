/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a tree in the binary format (binary_writer.h), in the order and widths of Core Foundation: objects as they are met, keys of a
 * dictionary before its values. What is one object, or one of the few that Core Foundation makes only once, is written once and referred
 * to.
 *
 * A container or truth value that is met again is written again, although the references are all to the first, because Core Foundation does
 * so. It ends after many: a few arrays, each twice in the next, would make as many as there are memory for.
 */
#include "Binary/binary_writer.h"

#include <math.h>
#include <stdlib.h>

#include "Binary/binary_format.h"
#include "Support/invariant.h"
#include "Tree/object_table.h"
#include "Tree/tree_walk.h"

enum { repeated_max = 65536 }; /* containers */

struct binary_writer {
    struct object_table objects;
    struct byte_buffer *buffer;
    size_t reference_size;
    size_t repeated; /* containers that were met again */
};

/* 1, 2, 4 or 8 bytes. */
static size_t size_of_number(uint64_t number)
{
    return number <= UINT8_MAX ? 1 : number <= UINT16_MAX ? 2 : number <= UINT32_MAX ? 4 : 8;
}

static unsigned exponent_of_size(size_t size)
{
    return size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
}

static void append_integer(struct byte_buffer *buffer, int64_t integer)
{
    size_t size = integer < 0 ? 8 : size_of_number((uint64_t)integer);

    byte_buffer_append_byte(buffer, (uint8_t)(binary_integer | exponent_of_size(size)));
    byte_buffer_append_big_endian(buffer, (uint64_t)integer, size);
}

static void append_type_and_count(struct byte_buffer *buffer, enum binary_type type, size_t count)
{
    if (count < binary_count_follows) {
        byte_buffer_append_byte(buffer, (uint8_t)(type | count));
    } else {
        byte_buffer_append_byte(buffer, (uint8_t)(type | binary_count_follows));
        append_integer(buffer, (int64_t)count);
    }
}

static void append_double(struct byte_buffer *buffer, enum binary_type type, double real)
{
    uint64_t bits;

    memcpy(&bits, &real, sizeof bits);
    byte_buffer_append_byte(buffer, (uint8_t)type);
    byte_buffer_append_big_endian(buffer, bits, sizeof bits);
}

static void append_number(struct byte_buffer *buffer, CFNumberRef number)
{
    SInt64 integer = 0;
    double real = 0;
    float short_real = 0;
    uint32_t bits;

    if (!CFNumberIsFloatType(number)) {
        (void)CFNumberGetValue(number, kCFNumberSInt64Type, &integer);
        append_integer(buffer, integer);
        return;
    }
    (void)CFNumberGetValue(number, kCFNumberDoubleType, &real);
    if (CFNumberGetByteSize(number) > (CFIndex)sizeof bits || !isfinite(real)) {
        append_double(buffer, binary_real | 3, real);
        return;
    }
    (void)CFNumberGetValue(number, kCFNumberFloatType, &short_real);
    memcpy(&bits, &short_real, sizeof bits);
    byte_buffer_append_byte(buffer, binary_real | 2);
    byte_buffer_append_big_endian(buffer, bits, sizeof bits);
}

static bool is_ascii(const UniChar *units, size_t length)
{
    UniChar all = 0;

    for (size_t i = 0; i < length; i++) {
        all |= units[i];
    }
    return all < 0x80;
}

static void append_units(struct byte_buffer *buffer, const UniChar *units, size_t length)
{
    bool is_short = is_ascii(units, length);
    uint8_t *end;

    append_type_and_count(buffer, is_short ? binary_ascii : binary_utf16, length);
    end = byte_buffer_reserve(buffer, length * 2);
    if (!end) {
        return;
    }
    for (size_t i = 0; i < length; i++) {
        if (!is_short) {
            *end++ = (uint8_t)(units[i] >> 8);
        }
        *end++ = (uint8_t)units[i];
    }
    buffer->count = (size_t)(end - buffer->bytes);
}

static void append_string(struct byte_buffer *buffer, CFStringRef string)
{
    size_t length = (size_t)CFStringGetLength(string);
    const char *ascii = CFStringGetCStringPtr(string, kCFStringEncodingASCII);
    const UniChar *units;
    UniChar *copy;

    if (ascii) {
        append_type_and_count(buffer, binary_ascii, length);
        byte_buffer_append(buffer, ascii, length);
        return;
    }
    units = byte_buffer_borrow_units(buffer, string, &copy);
    if (units) {
        append_units(buffer, units, length);
        free(copy);
    }
}

/* Says whether the dictionary stands for the UID of a keyed archive. */
static bool is_uid(CFTypeRef object, enum tree_kind kind, SInt64 *ret_uid)
{
    CFTypeRef value = kind == tree_dictionary && CFDictionaryGetCount(object) == 1 ? CFDictionaryGetValue(object, CFSTR("CF$UID")) : NULL;

    return value && tree_kind_of(value) == tree_number && !CFNumberIsFloatType(value) &&
           CFNumberGetValue(value, kCFNumberSInt64Type, ret_uid) && *ret_uid >= 0 && *ret_uid <= UINT32_MAX;
}

/* Appends the numbers of the contents, which a walk meets in the order of the format. */
static bool append_references(struct binary_writer *writer, CFTypeRef container)
{
    struct tree_walk walk;
    CFTypeRef object = NULL;
    enum tree_kind kind = tree_foreign;
    enum tree_step step;
    uint32_t number;

    tree_walk_begin(&walk, container, tree_keys_first);
    (void)tree_walk_next(&walk, &object, &kind);
    while ((step = tree_walk_next(&walk, &object, &kind)) == tree_meets || step == tree_meets_key) {
        (void)object_table_add(&writer->objects, object, kind, &number); /* it is there */
        byte_buffer_append_big_endian(writer->buffer, number, writer->reference_size);
        if (step == tree_meets && tree_kind_is_container(kind)) {
            tree_walk_pass_over(&walk);
        }
    }
    tree_walk_end(&walk);
    return step == tree_leaves;
}

static bool append_object(struct binary_writer *writer, CFTypeRef object, enum tree_kind kind)
{
    struct byte_buffer *buffer = writer->buffer;
    SInt64 uid;
    size_t size;

    switch (kind) {
    case tree_string:
        append_string(buffer, object);
        return true;
    case tree_number:
        append_number(buffer, object);
        return true;
    case tree_boolean:
        byte_buffer_append_byte(buffer, CFBooleanGetValue(object) ? binary_true : binary_false);
        return true;
    case tree_date:
        append_double(buffer, binary_date, CFDateGetAbsoluteTime(object));
        return true;
    case tree_data:
        append_type_and_count(buffer, binary_data, (size_t)CFDataGetLength(object));
        byte_buffer_append(buffer, CFDataGetBytePtr(object), (size_t)CFDataGetLength(object));
        return true;
    case tree_array:
        append_type_and_count(buffer, binary_array, (size_t)CFArrayGetCount(object));
        return append_references(writer, object);
    default:
        invariant(kind == tree_dictionary);
        if (is_uid(object, kind, &uid)) {
            size = size_of_number((uint64_t)uid);
            byte_buffer_append_byte(buffer, (uint8_t)(binary_uid | (size - 1)));
            byte_buffer_append_big_endian(buffer, (uint64_t)uid, size);
            return true;
        }
        append_type_and_count(buffer, binary_dictionary, (size_t)CFDictionaryGetCount(object));
        return append_references(writer, object);
    }
}

/* Gives an object of the tree its number. Its contents come next, unless the walk is told to pass over them. */
static bool number_object(struct binary_writer *writer, struct tree_walk *walk, CFTypeRef object, enum tree_kind kind)
{
    bool is_container = tree_kind_is_container(kind);
    SInt64 uid;
    uint32_t number;
    enum object_table_result result = object_table_add(&writer->objects, object, kind, &number);

    if (result == object_lacks_memory) {
        return false;
    }
    if (result == object_is_known && is_container && writer->repeated++ >= repeated_max) {
        tree_walk_pass_over(walk);
        return true;
    }
    if (is_uid(object, kind, &uid)) {
        tree_walk_pass_over(walk);
    }
    return result == object_is_new || (!is_container && kind != tree_boolean) || object_table_repeat(&writer->objects, object, kind);
}

static bool number_objects(struct binary_writer *writer, CFTypeRef root)
{
    struct tree_walk walk;
    CFTypeRef object = NULL;
    enum tree_kind kind = tree_foreign;
    enum tree_step step;
    bool is_going_on = true;

    tree_walk_begin(&walk, root, tree_keys_first);
    while (is_going_on && (step = tree_walk_next(&walk, &object, &kind)) != tree_ends) {
        is_going_on = step == tree_leaves || (step != tree_lacks_memory && number_object(writer, &walk, object, kind));
    }
    tree_walk_end(&walk);
    return is_going_on;
}

static void append_table_and_trailer(struct byte_buffer *buffer, const struct object_table *objects, const uint64_t *offsets,
                                     size_t reference_size)
{
    size_t table_offset = buffer->count;
    size_t offset_size = size_of_number(table_offset);

    for (size_t i = 0; i < objects->count; i++) {
        byte_buffer_append_big_endian(buffer, offsets[i], offset_size);
    }
    byte_buffer_append_big_endian(buffer, 0, trailer_offset_size);
    byte_buffer_append_byte(buffer, (uint8_t)offset_size);
    byte_buffer_append_byte(buffer, (uint8_t)reference_size);
    byte_buffer_append_big_endian(buffer, objects->count, 8);
    byte_buffer_append_big_endian(buffer, 0, 8);
    byte_buffer_append_big_endian(buffer, table_offset, 8);
}

static bool write_objects(struct binary_writer *writer)
{
    uint64_t *offsets = calloc(writer->objects.count, sizeof *offsets);
    bool is_done = offsets;

    byte_buffer_append_text(writer->buffer, "bplist00");
    for (size_t i = 0; i < writer->objects.count && is_done; i++) {
        offsets[i] = writer->buffer->count;
        is_done =
            append_object(writer, writer->objects.objects[i].object, writer->objects.objects[i].kind) && !writer->buffer->lacks_memory;
    }
    if (is_done) {
        append_table_and_trailer(writer->buffer, &writer->objects, offsets, writer->reference_size);
    }
    free(offsets);
    return is_done && !writer->buffer->lacks_memory;
}

bool binary_write(CFTypeRef root, struct byte_buffer *buffer, struct read_fault *fault)
{
    struct binary_writer writer = {.buffer = buffer};
    bool is_done = number_objects(&writer, root);

    invariant(buffer->count == 0);
    if (is_done) {
        writer.reference_size = size_of_number(writer.objects.count);
        is_done = write_objects(&writer);
    }
    object_table_free(&writer.objects);
    return is_done || read_fault_set_no_memory(fault);
}
