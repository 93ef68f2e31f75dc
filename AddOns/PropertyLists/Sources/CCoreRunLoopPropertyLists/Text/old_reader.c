/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a tree from the old format of OpenStep (old_reader.h):
 *
 *     { key = value; "other key" = (value, "value"); alone; }     a key alone is its own value
 *     <00ff 0a>     'text'     text without blanks, of letters, digits and _ $ / : . -
 *
 * A file of strings is a dictionary without its brackets, or nothing at all. Containers are open in the builder.
 */
#define _GNU_SOURCE /* memmem */
#include "Text/old_reader.h"

#include "Encoding/nextstep.h"
#include "Format/byte_buffer.h"
#include "Text/string_pool.h"
#include "Text/text_input.h"
#include "Support/invariant.h"
#include "Tree/tree_builder.h"

struct old_reader {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
    struct read_fault *fault;
    struct tree_builder builder;
    struct string_pool pool;
    struct byte_buffer bytes; /* of a text with escapes, or of data */
};

static bool fail(struct old_reader *reader, const char *words)
{
    return read_fault_set_at(reader->fault, reader->start, reader->at, "%s", words);
}

static bool is_added(struct old_reader *reader, bool is_added)
{
    return is_added || read_fault_set_no_memory(reader->fault);
}

static bool begins_with(const struct old_reader *reader, const char *text)
{
    size_t length = strlen(text);

    return (size_t)(reader->end - reader->at) >= length && memcmp(reader->at, text, length) == 0;
}

/* Passes over blanks, of which two have three bytes, and comments. A comment may end with the text. */
static void skip(struct old_reader *reader)
{
    while (reader->at < reader->end) {
        if ((*reader->at >= '\t' && *reader->at <= '\r') || *reader->at == ' ') {
            reader->at++;
        } else if (begins_with(reader, "\xE2\x80\xA8") || begins_with(reader, "\xE2\x80\xA9")) {
            reader->at += 3;
        } else if (begins_with(reader, "//")) {
            while (reader->at < reader->end && *reader->at != '\n' && *reader->at != '\r') {
                reader->at++;
            }
        } else if (begins_with(reader, "/*")) {
            const uint8_t *end = memmem(reader->at + 2, (size_t)(reader->end - reader->at - 2), "*/", 2);

            reader->at = end ? end + 2 : reader->end;
        } else {
            return;
        }
    }
}

/* ---- strings ---- */

static bool is_plain(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '_' || byte == '$' ||
           byte == '/' || byte == ':' || byte == '.' || byte == '-';
}

static int hex_value(uint8_t digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
           : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                          : -1;
}

/* Reads up to four hexadecimal digits. */
static uint32_t read_unit(struct old_reader *reader)
{
    uint32_t unit = 0;

    for (int i = 0; i < 4 && reader->at < reader->end && hex_value(*reader->at) >= 0; i++) {
        unit = unit << 4 | (uint32_t)hex_value(*reader->at++);
    }
    return unit;
}

/* Behind \U. The second half of a pair has to follow the first in the same form. */
static void append_unit(struct old_reader *reader)
{
    uint32_t character = read_unit(reader);
    const uint8_t *behind = reader->at;

    if (CFStringIsSurrogateHighCharacter((UniChar)character) && begins_with(reader, "\\U")) {
        uint32_t low;

        reader->at += 2;
        low = read_unit(reader);
        if (CFStringIsSurrogateLowCharacter((UniChar)low)) {
            character = CFStringGetLongCharacterForSurrogatePair((UniChar)character, (UniChar)low);
        } else {
            reader->at = behind;
        }
    }
    byte_buffer_append_character(&reader->bytes, character >= 0xD800 && character <= 0xDFFF ? 0xFFFD : character);
}

/* Up to three octal digits, which say a byte of NextStep's characters. */
static void append_octal(struct old_reader *reader)
{
    UInt8 byte = 0;
    UniChar character;

    for (int i = 0; i < 3 && reader->at < reader->end && *reader->at >= '0' && *reader->at <= '7'; i++) {
        byte = (UInt8)(byte << 3 | (*reader->at++ - '0'));
    }
    byte_buffer_append_character(&reader->bytes, nextstep_decode(&byte, 1, &character) ? character : 0xFFFD);
}

static void append_escape(struct old_reader *reader)
{
    static const char letters[] = "abfnrtv";
    static const char meanings[] = "\a\b\f\n\r\t\v";
    uint8_t letter = *reader->at;
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;

    if (letter >= '0' && letter <= '7') {
        append_octal(reader);
        return;
    }
    reader->at++;
    if (letter == 'U') {
        append_unit(reader);
    } else {
        byte_buffer_append_byte(&reader->bytes, found ? (uint8_t)meanings[found - letters] : letter);
    }
}

static bool read_quoted_string(struct old_reader *reader, CFStringRef *ret_string)
{
    uint8_t quote = *reader->at++;
    const uint8_t *first = reader->at;
    bool has_escapes = false;

    reader->bytes.count = 0;
    while (reader->at < reader->end && *reader->at != quote) {
        if (*reader->at != '\\') {
            reader->at++;
            continue;
        }
        byte_buffer_append(&reader->bytes, first, (size_t)(reader->at - first));
        has_escapes = true;
        if (++reader->at == reader->end) {
            break;
        }
        append_escape(reader);
        first = reader->at;
    }
    if (reader->at == reader->end) {
        return fail(reader, "A quoted string does not end");
    }
    byte_buffer_append(&reader->bytes, first, has_escapes ? (size_t)(reader->at - first) : 0);
    if (reader->bytes.lacks_memory) {
        return read_fault_set_no_memory(reader->fault);
    }
    *ret_string = has_escapes ? CFStringCreateWithBytes(reader->builder.allocator, reader->bytes.bytes, (CFIndex)reader->bytes.count,
                                                        kCFStringEncodingUTF8, false)
                              : string_pool_copy(&reader->pool, first, (size_t)(reader->at - first));
    reader->at++;
    if (!*ret_string) {
        return has_escapes ? text_input_set_fault(reader->fault, reader->bytes.bytes, reader->bytes.bytes, reader->bytes.count)
                           : text_input_set_fault(reader->fault, reader->start, first, (size_t)(reader->at - 1 - first));
    }
    return true;
}

static bool read_string(struct old_reader *reader, CFStringRef *ret_string)
{
    const uint8_t *first = reader->at;

    if (*reader->at == '"' || *reader->at == '\'') {
        return read_quoted_string(reader, ret_string);
    }
    while (reader->at < reader->end && is_plain(*reader->at)) {
        reader->at++;
    }
    if (reader->at == first) {
        return fail(reader, "There is a character that begins nothing");
    }
    *ret_string = string_pool_copy(&reader->pool, first, (size_t)(reader->at - first));
    return is_added(reader, *ret_string);
}

/* ---- values ---- */

static bool read_data(struct old_reader *reader)
{
    reader->bytes.count = 0;
    for (reader->at++; reader->at < reader->end && *reader->at != '>';) {
        int upper = hex_value(*reader->at);
        int lower = upper >= 0 && reader->end - reader->at >= 2 ? hex_value(reader->at[1]) : -1;

        if ((*reader->at >= '\t' && *reader->at <= '\r') || *reader->at == ' ') {
            reader->at++;
            continue;
        }
        if (upper < 0 || lower < 0) {
            return fail(reader, "Data are not in pairs of hexadecimal digits");
        }
        byte_buffer_append_byte(&reader->bytes, (uint8_t)(upper << 4 | lower));
        reader->at += 2;
    }
    if (reader->at == reader->end) {
        return fail(reader, "Data do not end");
    }
    reader->at++;
    return is_added(reader,
                    !reader->bytes.lacks_memory && tree_builder_add_data(&reader->builder, reader->bytes.bytes, reader->bytes.count));
}

static bool open_container(struct old_reader *reader, enum tree_kind kind)
{
    if (reader->builder.depth == tree_depth_max) {
        return fail(reader, "Arrays and dictionaries are nested too deep");
    }
    return is_added(reader, tree_builder_open(&reader->builder, kind));
}

static bool close_container(struct old_reader *reader)
{
    CFTypeRef container;

    return is_added(reader, tree_builder_close(&reader->builder, &container));
}

/* Reads a leaf, or begins a container. */
static bool read_value(struct old_reader *reader)
{
    CFStringRef string;

    if (reader->at == reader->end) {
        return fail(reader, "The text ends where a value has to be");
    }
    switch (*reader->at) {
    case '{':
    case '(':
        return open_container(reader, *reader->at++ == '{' ? tree_dictionary : tree_array);
    case '<':
        return read_data(reader);
    default:
        return read_string(reader, &string) && is_added(reader, tree_builder_add_string(&reader->builder, string));
    }
}

static bool read_key(struct old_reader *reader)
{
    CFStringRef key;

    if (!read_string(reader, &key)) {
        return false;
    }
    if (!is_added(reader, tree_builder_add_key(&reader->builder, key))) {
        return false;
    }
    skip(reader);
    if (reader->at < reader->end && *reader->at == '=') {
        reader->at++;
        skip(reader);
        return read_value(reader);
    }
    return is_added(reader, tree_builder_add_string(&reader->builder, CFRetain(key)));
}

/* What comes behind a value: a comma in an array, a semicolon in a dictionary. */
static bool read_separator(struct old_reader *reader, enum tree_kind kind)
{
    if (reader->at < reader->end && *reader->at == (kind == tree_array ? ',' : ';')) {
        reader->at++;
        return true;
    }
    if (kind == tree_array && reader->at < reader->end && *reader->at == ')') {
        return true;
    }
    return fail(reader, kind == tree_array ? "There is no comma or bracket behind a value" : "There is no semicolon behind a value");
}

/* Reads the next part of the innermost container, which may be its end. `level` is that of a dictionary without brackets, or 0. */
static bool advance(struct old_reader *reader, size_t bare_level)
{
    struct open_container *open = &reader->builder.open[reader->builder.depth - 1];
    enum tree_kind kind = open->kind;
    bool is_bare = reader->builder.depth == bare_level;
    size_t depth = reader->builder.depth;

    skip(reader);
    if (reader->builder.count > open->first + open->separated) {
        open->separated++;
        return read_separator(reader, kind);
    }
    if (reader->at == reader->end) {
        return is_bare ? close_container(reader) : fail(reader, "The text ends in an array or a dictionary");
    }
    if (!is_bare && *reader->at == (kind == tree_array ? ')' : '}')) {
        reader->at++;
        return close_container(reader);
    }
    invariant(depth > 0);
    return kind == tree_array ? read_value(reader) : read_key(reader);
}

/* Says whether the text is a file of strings: nothing, or a string that something follows. */
static bool is_strings_file(struct old_reader *reader)
{
    const uint8_t *first = reader->at;
    CFStringRef string;
    bool is_one = false;

    if (reader->at == reader->end) {
        return true;
    }
    if ((is_plain(*first) || *first == '"' || *first == '\'') && read_string(reader, &string)) {
        CFRelease(string);
        skip(reader);
        is_one = reader->at < reader->end;
    }
    reader->at = first;
    return is_one;
}

CFTypeRef old_read(CFAllocatorRef allocator, const uint8_t *bytes, size_t length, CFOptionFlags mutability, struct read_fault *fault)
{
    struct old_reader reader = {.start = bytes, .at = bytes, .end = bytes + length, .fault = fault, .pool = {.allocator = allocator}};
    CFTypeRef root = NULL;
    size_t bare_level;
    bool is_going_on;

    tree_builder_begin(&reader.builder, allocator, mutability);
    skip(&reader);
    bare_level = is_strings_file(&reader) ? 1 : 0;
    is_going_on = fault->words[0] == '\0' && (bare_level ? open_container(&reader, tree_dictionary) : read_value(&reader));
    while (is_going_on && reader.builder.depth > 0) {
        is_going_on = advance(&reader, bare_level);
    }
    skip(&reader);
    if (is_going_on && reader.at < reader.end) {
        is_going_on = fail(&reader, "There is something behind the property list");
    }
    if (is_going_on) {
        root = tree_builder_take(&reader.builder);
    }
    tree_builder_end(&reader.builder);
    string_pool_free(&reader.pool);
    byte_buffer_free(&reader.bytes);
    return root;
}
