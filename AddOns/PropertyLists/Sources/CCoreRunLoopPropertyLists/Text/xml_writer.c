/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a tree in XML (xml_writer.h), in the bytes that Core Foundation writes: a tab for each level, keys by their letters, and in
 * strings only <, > and & in other words. Characters that XML does not have are written as they are.
 */
#include "Text/xml_writer.h"

#include <stdlib.h>

#include "Text/date_text.h"
#include "Text/number_text.h"
#include "Support/invariant.h"
#include "Tree/tree_check.h"
#include "Tree/tree_walk.h"

enum { line_length = 76, tab_width = 8, tabs_of_data_max = 8 };

static const char head[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                           "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n"
                           "<plist version=\"1.0\">\n";

static void append_tabs(struct byte_buffer *buffer, size_t count)
{
    uint8_t *end = byte_buffer_reserve(buffer, count);

    if (end) {
        memset(end, '\t', count);
        buffer->count += count;
    }
}

/* What stands for a character; NULL: the character. */
static const char *const escapes[128] = {['<'] = "&lt;", ['>'] = "&gt;", ['&'] = "&amp;"};

static void append_ascii(struct byte_buffer *buffer, const char *text, size_t length)
{
    size_t first = 0;

    for (size_t i = 0; i < length; i++) {
        const char *escape = escapes[text[i] & 0x7F];

        if (escape) {
            byte_buffer_append(buffer, text + first, i - first);
            byte_buffer_append_text(buffer, escape);
            first = i + 1;
        }
    }
    byte_buffer_append(buffer, text + first, length - first);
}

/* Half of a surrogate pair becomes the character that says so. */
static void append_units(struct byte_buffer *buffer, const UniChar *units, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char *escape = units[i] < 128 ? escapes[units[i]] : NULL;
        uint32_t character = units[i];

        if (escape) {
            byte_buffer_append_text(buffer, escape);
            continue;
        }
        if (CFStringIsSurrogateHighCharacter(units[i]) && i + 1 < length && CFStringIsSurrogateLowCharacter(units[i + 1])) {
            character = CFStringGetLongCharacterForSurrogatePair(units[i], units[i + 1]);
            i++;
        } else if (character >= 0xD800 && character <= 0xDFFF) {
            character = 0xFFFD;
        }
        byte_buffer_append_character(buffer, character);
    }
}

static void append_string(struct byte_buffer *buffer, CFStringRef string)
{
    size_t length = (size_t)CFStringGetLength(string);
    const char *ascii = CFStringGetCStringPtr(string, kCFStringEncodingASCII);
    const UniChar *units;
    UniChar *copy;

    if (ascii) {
        append_ascii(buffer, ascii, length);
        return;
    }
    units = byte_buffer_borrow_units(buffer, string, &copy);
    if (units) {
        append_units(buffer, units, length);
        free(copy);
    }
}

static void append_number(struct byte_buffer *buffer, CFNumberRef number)
{
    char text[number_text_size];
    SInt64 integer = 0;
    double real = 0;

    if (CFNumberIsFloatType(number)) {
        (void)CFNumberGetValue(number, kCFNumberDoubleType, &real);
        byte_buffer_append_text(buffer, "<real>");
        byte_buffer_append(buffer, text, real_write(text, real));
        byte_buffer_append_text(buffer, "</real>\n");
        return;
    }
    (void)CFNumberGetValue(number, kCFNumberSInt64Type, &integer);
    byte_buffer_append_text(buffer, "<integer>");
    byte_buffer_append(buffer, text, integer_write(text, integer));
    byte_buffer_append_text(buffer, "</integer>\n");
}

static bool append_date(struct byte_buffer *buffer, CFDateRef date, struct read_fault *fault)
{
    char text[date_text_size];
    size_t length = date_write(text, CFDateGetAbsoluteTime(date));

    if (length == 0) {
        return read_fault_set(fault, "XML cannot hold a date of %g seconds since 2001", CFDateGetAbsoluteTime(date));
    }
    byte_buffer_append_text(buffer, "<date>");
    byte_buffer_append(buffer, text, length);
    byte_buffer_append_text(buffer, "</date>\n");
    return true;
}

/* The four characters of three bytes, of which the last ones may be missing. */
static void encode_group(uint8_t *characters, const UInt8 *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t group = (uint32_t)bytes[0] << 16 | (count > 1 ? (uint32_t)bytes[1] << 8 : 0) | (count > 2 ? bytes[2] : 0);

    characters[0] = (uint8_t)digits[group >> 18];
    characters[1] = (uint8_t)digits[group >> 12 & 63];
    characters[2] = (uint8_t)(count > 1 ? digits[group >> 6 & 63] : '=');
    characters[3] = (uint8_t)(count > 2 ? digits[group & 63] : '=');
}

static void append_data(struct byte_buffer *buffer, CFDataRef data, size_t level)
{
    size_t tabs = level < tabs_of_data_max ? level : tabs_of_data_max;
    size_t bytes_of_line = (line_length - tab_width * tabs) / 4 * 3;
    const UInt8 *bytes = CFDataGetBytePtr(data);
    size_t count = (size_t)CFDataGetLength(data);

    byte_buffer_append_text(buffer, "<data>\n");
    for (size_t first = 0; first < count; first += bytes_of_line) {
        size_t in_line = count - first < bytes_of_line ? count - first : bytes_of_line;
        uint8_t *end;

        append_tabs(buffer, tabs);
        end = byte_buffer_reserve(buffer, (in_line + 2) / 3 * 4);
        for (size_t i = 0; end && i < in_line; i += 3) {
            encode_group(end + i / 3 * 4, bytes + first + i, in_line - i);
        }
        buffer->count += end ? (in_line + 2) / 3 * 4 : 0;
        byte_buffer_append_byte(buffer, '\n');
    }
    append_tabs(buffer, level);
    byte_buffer_append_text(buffer, "</data>\n");
}

static bool is_empty(CFTypeRef container, enum tree_kind kind)
{
    return (kind == tree_array ? CFArrayGetCount(container) : CFDictionaryGetCount(container)) == 0;
}

static void append_container(struct byte_buffer *buffer, struct tree_walk *walk, CFTypeRef container, enum tree_kind kind)
{
    if (is_empty(container, kind)) {
        byte_buffer_append_text(buffer, kind == tree_array ? "<array/>\n" : "<dict/>\n");
        tree_walk_pass_over(walk);
    } else {
        byte_buffer_append_text(buffer, kind == tree_array ? "<array>\n" : "<dict>\n");
    }
}

static bool append_object(struct byte_buffer *buffer, struct tree_walk *walk, CFTypeRef object, enum tree_kind kind,
                          struct read_fault *fault)
{
    append_tabs(buffer, walk->depth);
    switch (kind) {
    case tree_string:
        byte_buffer_append_text(buffer, "<string>");
        append_string(buffer, object);
        byte_buffer_append_text(buffer, "</string>\n");
        return true;
    case tree_number:
        append_number(buffer, object);
        return true;
    case tree_boolean:
        byte_buffer_append_text(buffer, CFBooleanGetValue(object) ? "<true/>\n" : "<false/>\n");
        return true;
    case tree_data:
        append_data(buffer, object, walk->depth);
        return true;
    case tree_date:
        return append_date(buffer, object, fault);
    case tree_foreign:
        return false;
    default:
        invariant(tree_kind_is_container(kind));
        append_container(buffer, walk, object, kind);
        return true;
    }
}

static bool write_step(struct byte_buffer *buffer, struct tree_walk *walk, enum tree_step step, CFTypeRef object, enum tree_kind kind,
                       struct read_fault *fault)
{
    switch (step) {
    case tree_meets:
        return append_object(buffer, walk, object, kind, fault);
    case tree_meets_key:
        if (kind != tree_string) {
            return false;
        }
        append_tabs(buffer, walk->depth);
        byte_buffer_append_text(buffer, "<key>");
        append_string(buffer, object);
        byte_buffer_append_text(buffer, "</key>\n");
        return true;
    case tree_leaves:
        append_tabs(buffer, walk->depth);
        byte_buffer_append_text(buffer, kind == tree_array ? "</array>\n" : "</dict>\n");
        return true;
    default:
        return read_fault_set_no_memory(fault);
    }
}

/* The most bytes that the tree may have, or 0 if that is less than it has already. */
static size_t measure(CFTypeRef root, const struct byte_buffer *buffer, struct read_fault *fault)
{
    size_t most = tree_size_max(root);

    if (most == 0) {
        (void)read_fault_set_no_memory(fault);
    } else if (most < buffer->count) {
        (void)read_fault_set(fault, "Containers of the property list are repeated too often for XML");
    }
    return most < buffer->count ? 0 : most;
}

bool xml_write(CFTypeRef root, size_t depth_max, struct byte_buffer *buffer, struct read_fault *fault)
{
    struct tree_walk walk;
    CFTypeRef object = NULL;
    enum tree_kind kind = tree_foreign;
    enum tree_step step;

    size_t count_max = tree_measured_from;

    byte_buffer_append_text(buffer, head);
    tree_walk_begin(&walk, root, tree_sorted_pairs);
    do {
        step = tree_walk_next(&walk, &object, &kind);
        if (buffer->count > count_max) {
            count_max = measure(root, buffer, fault);
        }
    } while (step != tree_ends && count_max > 0 && walk.depth <= depth_max && !buffer->lacks_memory &&
             write_step(buffer, &walk, step, object, kind, fault));
    tree_walk_end(&walk);
    byte_buffer_append_text(buffer, "</plist>\n");
    if (buffer->lacks_memory) {
        return read_fault_set_no_memory(fault);
    }
    return step == tree_ends;
}
