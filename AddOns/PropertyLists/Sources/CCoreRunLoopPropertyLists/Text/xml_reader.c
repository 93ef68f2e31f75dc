/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a tree from XML (xml_reader.h). Its containers are open in the builder, so the reader needs no stack of its own.
 *
 * It takes and refuses what Core Foundation does: a root may stand alone or in a plist, what is behind it does not count, characters that
 * XML does not have are taken as they are, and carriage returns stay.
 */
#include "Text/xml_reader.h"

#include "Text/date_text.h"
#include "Text/number_text.h"
#include "Text/string_pool.h"
#include "Text/text_input.h"
#include "Text/xml_scanner.h"
#include "Support/invariant.h"
#include "Tree/tree_builder.h"

struct xml_reader {
    struct xml_scanner scanner;
    struct tree_builder builder;
    struct string_pool pool;
    size_t plists; /* that are open */
};

/* ---- leaves ---- */

static bool is_added(struct xml_reader *reader, bool is_added)
{
    return is_added || read_fault_set_no_memory(reader->scanner.fault);
}

static bool read_string(struct xml_reader *reader, enum xml_element element, CFStringRef *ret_string)
{
    const uint8_t *text;
    size_t length;
    bool is_raw;

    if (!xml_scanner_text(&reader->scanner, &text, &length, &is_raw) || !xml_scanner_end_tag(&reader->scanner, element)) {
        return false;
    }
    *ret_string = is_raw ? string_pool_copy(&reader->pool, text, length)
                         : CFStringCreateWithBytes(reader->builder.allocator, text, (CFIndex)length, kCFStringEncodingUTF8, false);
    return *ret_string || (is_raw ? text_input_set_fault(reader->scanner.fault, reader->scanner.start, text, length)
                                  : text_input_set_fault(reader->scanner.fault, text, text, length));
}

static bool add_string(struct xml_reader *reader, const struct xml_tag *tag)
{
    CFStringRef string;

    if (tag->is_empty) {
        string = string_pool_copy(&reader->pool, (const uint8_t *)"", 0);
    } else if (!read_string(reader, tag->element, &string)) {
        return false;
    }
    return is_added(reader, tree_builder_add_string(&reader->builder, string));
}

static bool add_key(struct xml_reader *reader, const struct xml_tag *tag)
{
    CFStringRef key;

    if (tag->is_empty) {
        key = string_pool_copy(&reader->pool, (const uint8_t *)"", 0);
    } else if (!read_string(reader, tag->element, &key)) {
        return false;
    }
    return is_added(reader, tree_builder_add_key(&reader->builder, key));
}

static bool read_integer(struct xml_reader *reader, const uint8_t *text, size_t length)
{
    static const char *const words[] = {
        [integer_is_empty] = "There are no digits in an integer",
        [integer_is_odd] = "There is something other than digits in an integer",
        [integer_is_too_large] = "An integer has more than 64 bits",
    };
    SInt64 integer;
    double real;
    int64_t read;
    bool is_double;
    enum integer_fault fault = integer_read(text, length, &read, &real, &is_double);

    if (fault != integer_is_read) {
        return xml_scanner_fail(&reader->scanner, words[fault]);
    }
    integer = read;
    return is_added(
        reader, tree_builder_add(&reader->builder, is_double ? CFNumberCreate(reader->builder.allocator, kCFNumberDoubleType, &real)
                                                             : CFNumberCreate(reader->builder.allocator, kCFNumberSInt64Type, &integer)));
}

static bool read_real(struct xml_reader *reader, const uint8_t *text, size_t length)
{
    double real;

    if (!real_read(text, length, &real)) {
        return xml_scanner_fail(&reader->scanner, "There is something other than a number in a real");
    }
    return is_added(reader, tree_builder_add(&reader->builder, CFNumberCreate(reader->builder.allocator, kCFNumberDoubleType, &real)));
}

static bool read_date(struct xml_reader *reader, const uint8_t *text, size_t length)
{
    double seconds;

    if (!date_read(text, length, &seconds)) {
        return xml_scanner_fail(&reader->scanner, "A date is not like 2001-02-03T04:05:06Z");
    }
    return is_added(reader, tree_builder_add(&reader->builder, CFDateCreate(reader->builder.allocator, seconds)));
}

/* The value of a digit of base 64; 0 for the sign that fills up a group, -1 for what does not count. */
static int base64_value(uint8_t digit)
{
    return digit >= 'A' && digit <= 'Z'   ? digit - 'A'
           : digit >= 'a' && digit <= 'z' ? digit - 'a' + 26
           : digit >= '0' && digit <= '9' ? digit - '0' + 52
           : digit == '+'                 ? 62
           : digit == '/'                 ? 63
           : digit == '='                 ? 0
                                          : -1;
}

/* Groups of four digits; what is no whole group at the end is left out, as Core Foundation does. */
static bool read_data(struct xml_reader *reader, const uint8_t *text, size_t length)
{
    static int8_t values[256];
    static _Atomic bool has_values;
    struct byte_buffer *bytes = &reader->scanner.text;
    uint32_t group = 0;
    size_t digits = 0, fillers = 0;
    uint8_t *end;

    if (!has_values) {
        for (int i = 0; i < 256; i++) {
            values[i] = (int8_t)base64_value((uint8_t)i); /* several threads may write the same */
        }
        has_values = true;
    }
    bytes->count = 0;
    end = byte_buffer_reserve(bytes, length / 4 * 3 + 3);
    for (size_t i = 0; end && i < length; i++) {
        int value = values[text[i]];

        fillers = text[i] == '=' ? fillers + 1 : 0;
        if (value < 0) {
            continue;
        }
        group = group << 6 | (uint32_t)value;
        if (++digits % 4 == 0) {
            end[0] = (uint8_t)(group >> 16);
            end[1] = (uint8_t)(group >> 8);
            end[2] = (uint8_t)group;
            end += fillers < 2 ? (fillers < 1 ? 3 : 2) : 1;
        }
    }
    return is_added(reader, end && tree_builder_add_data(&reader->builder, bytes->bytes, (size_t)(end - bytes->bytes)));
}

static bool add_leaf_of_text(struct xml_reader *reader, const struct xml_tag *tag)
{
    const uint8_t *text;
    size_t length;

    if (tag->is_empty) {
        return xml_scanner_fail(&reader->scanner, "There is nothing in an element that has to have a text");
    }
    if (!xml_scanner_raw_text(&reader->scanner, &text, &length)) {
        return false;
    }
    switch (tag->element) {
    case xml_integer:
        return read_integer(reader, text, length) && xml_scanner_end_tag(&reader->scanner, xml_integer);
    case xml_real:
        return read_real(reader, text, length) && xml_scanner_end_tag(&reader->scanner, xml_real);
    case xml_date:
        return read_date(reader, text, length) && xml_scanner_end_tag(&reader->scanner, xml_date);
    default:
        return read_data(reader, text, length) && xml_scanner_end_tag(&reader->scanner, xml_data);
    }
}

static bool add_boolean(struct xml_reader *reader, const struct xml_tag *tag)
{
    if (!tag->is_empty && !xml_scanner_end_tag(&reader->scanner, tag->element)) {
        return false;
    }
    return is_added(reader, tree_builder_add(&reader->builder, CFRetain(tag->element == xml_true ? kCFBooleanTrue : kCFBooleanFalse)));
}

/* ---- containers ---- */

static bool close_container(struct xml_reader *reader)
{
    CFTypeRef container;

    if (reader->builder.key) {
        return xml_scanner_fail(&reader->scanner, "A key has no value, and its dictionary ends");
    }
    return is_added(reader, tree_builder_close(&reader->builder, &container));
}

static bool open_container(struct xml_reader *reader, const struct xml_tag *tag)
{
    if (reader->builder.depth == tree_depth_max) {
        return xml_scanner_fail(&reader->scanner, "Arrays and dictionaries are nested too deep");
    }
    if (!tree_builder_open(&reader->builder, tag->element == xml_array ? tree_array : tree_dictionary)) {
        return read_fault_set_no_memory(reader->scanner.fault);
    }
    return !tag->is_empty || close_container(reader);
}

static bool open_plist(struct xml_reader *reader, const struct xml_tag *tag)
{
    if (reader->builder.depth > 0 || reader->plists == tree_depth_max) {
        return xml_scanner_fail(&reader->scanner, "A plist begins inside something else");
    }
    if (tag->is_empty) {
        return xml_scanner_fail(&reader->scanner, "There is nothing in the plist");
    }
    reader->plists++;
    return true;
}

static bool has_root(const struct xml_reader *reader)
{
    return reader->builder.depth == 0 && reader->builder.count > 0;
}

static bool take_end_tag(struct xml_reader *reader, const struct xml_tag *tag)
{
    enum tree_kind kind = reader->builder.depth > 0 ? reader->builder.open[reader->builder.depth - 1].kind : tree_foreign;
    enum xml_element open = kind == tree_array ? xml_array : kind == tree_dictionary ? xml_dict : xml_plist;

    if (tag->element != open || (open == xml_plist && reader->plists == 0)) {
        return read_fault_set_at(reader->scanner.fault, reader->scanner.start, reader->scanner.at,
                                 "The end of '%s' comes where '%s' is open", xml_element_name(tag->element), xml_element_name(open));
    }
    if (open != xml_plist) {
        return close_container(reader);
    }
    if (!has_root(reader)) {
        return xml_scanner_fail(&reader->scanner, "There is nothing in the plist");
    }
    reader->plists--;
    return true;
}

static bool take_tag(struct xml_reader *reader, const struct xml_tag *tag)
{
    const struct tree_builder *builder = &reader->builder;
    bool needs_key = builder->depth > 0 && builder->open[builder->depth - 1].kind == tree_dictionary && !builder->key;

    if (tag->is_end) {
        return take_end_tag(reader, tag);
    }
    if (has_root(reader)) {
        return xml_scanner_fail(&reader->scanner, "There is more than one object in the plist");
    }
    if (needs_key) {
        return tag->element == xml_key ? add_key(reader, tag)
                                       : xml_scanner_fail(&reader->scanner, "There is no key where a dictionary needs one");
    }
    switch (tag->element) {
    case xml_plist:
        return open_plist(reader, tag);
    case xml_array:
    case xml_dict:
        return open_container(reader, tag);
    case xml_key:
    case xml_string:
        return add_string(reader, tag);
    case xml_true:
    case xml_false:
        return add_boolean(reader, tag);
    default:
        return add_leaf_of_text(reader, tag);
    }
}

CFTypeRef xml_read(CFAllocatorRef allocator, const uint8_t *bytes, size_t length, CFOptionFlags mutability, struct read_fault *fault)
{
    struct xml_reader reader = {.scanner = {bytes, bytes, bytes + length, fault, {0}}, .pool = {.allocator = allocator}};
    struct xml_tag tag;
    CFTypeRef root = NULL;
    bool is_going_on;

    tree_builder_begin(&reader.builder, allocator, mutability);
    is_going_on = xml_scanner_skip(&reader.scanner, true);
    while (is_going_on && (!has_root(&reader) || reader.plists > 0)) {
        is_going_on = xml_scanner_tag(&reader.scanner, &tag) && take_tag(&reader, &tag);
        if (is_going_on && (!has_root(&reader) || reader.plists > 0)) {
            is_going_on = xml_scanner_skip(&reader.scanner, false);
        }
    }
    if (is_going_on) {
        root = tree_builder_take(&reader.builder);
    }
    invariant(is_going_on == (fault->words[0] == '\0'));
    tree_builder_end(&reader.builder);
    string_pool_free(&reader.pool);
    byte_buffer_free(&reader.scanner.text);
    return root;
}
