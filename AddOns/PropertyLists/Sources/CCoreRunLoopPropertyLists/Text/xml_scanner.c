/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through XML, tag by tag (xml_scanner.h). */
#define _GNU_SOURCE /* memmem */
#include "Text/xml_scanner.h"

static const char *const names[] = {"plist", "array", "dict", "key", "string", "data", "date", "real", "integer", "true", "false"};

const char *xml_element_name(enum xml_element element)
{
    return names[element];
}

bool xml_scanner_fail(struct xml_scanner *scanner, const char *words)
{
    return read_fault_set_at(scanner->fault, scanner->start, scanner->at, "%s", words);
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static bool begins_with(const struct xml_scanner *scanner, const char *text)
{
    size_t length = strlen(text);

    return (size_t)(scanner->end - scanner->at) >= length && memcmp(scanner->at, text, length) == 0;
}

/* Passes over what ends with `text`; `words` say that it does not end. */
static bool skip_behind(struct xml_scanner *scanner, size_t first, const char *text, const char *words)
{
    const uint8_t *from = scanner->at + first;
    const uint8_t *found = memmem(from, (size_t)(scanner->end - from), text, strlen(text));

    if (!found) {
        return xml_scanner_fail(scanner, words);
    }
    scanner->at = found + strlen(text);
    return true;
}

/* The next of two characters that stands in no quotes; the end if there is none. */
static const uint8_t *find_unquoted(const struct xml_scanner *scanner, uint8_t one, uint8_t other)
{
    const uint8_t *at = scanner->at;
    uint8_t quote = 0;

    for (; at < scanner->end && (quote || (*at != one && *at != other)); at++) {
        if (quote) {
            quote = *at == quote ? 0 : quote;
        } else if (*at == '"' || *at == '\'') {
            quote = *at;
        }
    }
    return at;
}

/* Names of entities must not be declared: each could stand for a million others. */
static bool skip_document_type(struct xml_scanner *scanner)
{
    const uint8_t *at = find_unquoted(scanner, '[', '>');

    if (at == scanner->end) {
        return xml_scanner_fail(scanner, "The document type does not end");
    }
    if (*at == '[') {
        scanner->at = at;
        return xml_scanner_fail(scanner, "The document type declares something of its own");
    }
    scanner->at = at + 1;
    return true;
}

bool xml_scanner_skip(struct xml_scanner *scanner, bool may_be_document_type)
{
    bool is_done = true;

    while (is_done) {
        while (scanner->at < scanner->end && is_blank(*scanner->at)) {
            scanner->at++;
        }
        if (scanner->at == scanner->end || *scanner->at != '<') {
            return true;
        }
        if (begins_with(scanner, "<!--")) {
            is_done = skip_behind(scanner, 4, "-->", "A comment does not end that begins");
        } else if (begins_with(scanner, "<?")) {
            is_done = skip_behind(scanner, 2, "?>", "A processing instruction does not end that begins");
        } else if (may_be_document_type && begins_with(scanner, "<!DOCTYPE")) {
            is_done = skip_document_type(scanner);
        } else {
            return true;
        }
    }
    return false;
}

static enum xml_element element_named(const uint8_t *name, size_t length)
{
    for (int element = xml_plist; element < xml_unknown; element++) {
        if (strlen(names[element]) == length && memcmp(names[element], name, length) == 0) {
            return (enum xml_element)element;
        }
    }
    return xml_unknown;
}

static bool fail_at_name(struct xml_scanner *scanner, const uint8_t *name, size_t length)
{
    if (length == 0) {
        return xml_scanner_fail(scanner, "There is a tag without a name");
    }
    return read_fault_set_at(scanner->fault, scanner->start, name, "No element of a property list is named '%.*s', but one is",
                             (int)(length < 40 ? length : 40), (const char *)name);
}

/* Passes over attributes and the end of a tag. */
static bool skip_to_end_of_tag(struct xml_scanner *scanner, bool *ret_is_empty)
{
    const uint8_t *at = find_unquoted(scanner, '>', '>');

    if (at == scanner->end) {
        return xml_scanner_fail(scanner, "A tag does not end that begins");
    }
    *ret_is_empty = at[-1] == '/';
    scanner->at = at + 1;
    return true;
}

bool xml_scanner_tag(struct xml_scanner *scanner, struct xml_tag *ret_tag)
{
    const uint8_t *name;
    size_t length;

    if (scanner->at == scanner->end) {
        return xml_scanner_fail(scanner, "The document ends too early");
    }
    if (*scanner->at != '<') {
        return xml_scanner_fail(scanner, "There is text where a tag has to be");
    }
    ret_tag->is_end = begins_with(scanner, "</");
    scanner->at += ret_tag->is_end ? 2 : 1;
    name = scanner->at;
    while (scanner->at < scanner->end && *scanner->at >= 'a' && *scanner->at <= 'z') {
        scanner->at++;
    }
    length = (size_t)(scanner->at - name);
    ret_tag->element = element_named(name, length);
    if (scanner->at < scanner->end && *scanner->at == '>') {
        ret_tag->is_empty = false;
        scanner->at++;
    } else if (scanner->at < scanner->end && *scanner->at != '/' && !is_blank(*scanner->at)) {
        while (scanner->at < scanner->end && *scanner->at != '>' && *scanner->at != '/' && !is_blank(*scanner->at)) {
            scanner->at++;
        }
        return fail_at_name(scanner, name, (size_t)(scanner->at - name));
    } else if (ret_tag->element != xml_unknown && !skip_to_end_of_tag(scanner, &ret_tag->is_empty)) {
        return false;
    }
    return ret_tag->element != xml_unknown || fail_at_name(scanner, name, length);
}

bool xml_scanner_end_tag(struct xml_scanner *scanner, enum xml_element element)
{
    const char *name = names[element];
    size_t length = strlen(name);

    if (scanner->at == scanner->end) {
        return xml_scanner_fail(scanner, "The document ends too early");
    }
    if ((size_t)(scanner->end - scanner->at) < length + 3 || scanner->at[1] != '/' || memcmp(scanner->at + 2, name, length) != 0) {
        return read_fault_set_at(scanner->fault, scanner->start, scanner->at, "An element '%s' contains something else or does not end",
                                 name);
    }
    scanner->at += length + 2;
    while (scanner->at < scanner->end && is_blank(*scanner->at)) {
        scanner->at++;
    }
    if (scanner->at == scanner->end || *scanner->at != '>') {
        return xml_scanner_fail(scanner, "A tag does not end");
    }
    scanner->at++;
    return true;
}

bool xml_scanner_raw_text(struct xml_scanner *scanner, const uint8_t **ret_text, size_t *ret_length)
{
    const uint8_t *tag = memchr(scanner->at, '<', (size_t)(scanner->end - scanner->at));

    if (!tag) {
        return xml_scanner_fail(scanner, "The document ends in an element that begins");
    }
    *ret_text = scanner->at;
    *ret_length = (size_t)(tag - scanner->at);
    scanner->at = tag;
    return true;
}

/* ---- text with entities ---- */

static bool append_numbered_character(struct xml_scanner *scanner, const uint8_t *name, const uint8_t *end)
{
    bool is_hexadecimal = name < end && *name == 'x';
    uint32_t character = 0;

    for (name += is_hexadecimal; name < end; name++) {
        int digit = *name >= '0' && *name <= '9'                                       ? *name - '0'
                    : is_hexadecimal && (*name | 0x20) >= 'a' && (*name | 0x20) <= 'f' ? (*name | 0x20) - 'a' + 10
                                                                                       : -1;

        if (digit < 0) {
            return xml_scanner_fail(scanner, "A reference to a character has no number");
        }
        character = character * (is_hexadecimal ? 16 : 10) + (uint32_t)digit;
        if (character > 0x10FFFF) {
            return xml_scanner_fail(scanner, "There is no character of that number");
        }
    }
    if (character >= 0xD800 && character <= 0xDFFF) {
        return xml_scanner_fail(scanner, "There is no character of that number");
    }
    byte_buffer_append_character(&scanner->text, character);
    return true;
}

static bool append_entity(struct xml_scanner *scanner, const uint8_t *limit)
{
    static const struct {
        const char *name;
        char character;
    } entities[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    const uint8_t *name = scanner->at + 1;
    const uint8_t *end = memchr(name, ';', (size_t)(limit - name));

    if (!end) {
        return xml_scanner_fail(scanner, "An entity does not end");
    }
    if (name < end && *name == '#') {
        if (!append_numbered_character(scanner, name + 1, end)) {
            return false;
        }
        scanner->at = end + 1;
        return true;
    }
    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++) {
        if (strlen(entities[i].name) == (size_t)(end - name) && memcmp(entities[i].name, name, (size_t)(end - name)) == 0) {
            byte_buffer_append_byte(&scanner->text, (uint8_t)entities[i].character);
            scanner->at = end + 1;
            return true;
        }
    }
    return xml_scanner_fail(scanner, "There is an entity that no property list has");
}

/* Text up to `end`, in which there may be entities. */
static bool append_text(struct xml_scanner *scanner, const uint8_t *end)
{
    while (scanner->at < end) {
        const uint8_t *entity = memchr(scanner->at, '&', (size_t)(end - scanner->at));

        entity = entity ? entity : end;
        byte_buffer_append(&scanner->text, scanner->at, (size_t)(entity - scanner->at));
        scanner->at = entity;
        if (entity < end && !append_entity(scanner, end)) {
            return false;
        }
    }
    return true;
}

static bool append_quoted_section(struct xml_scanner *scanner)
{
    const uint8_t *text = scanner->at + strlen("<![CDATA[");

    if (!skip_behind(scanner, strlen("<![CDATA["), "]]>", "A quoted section does not end that begins")) {
        return false;
    }
    byte_buffer_append(&scanner->text, text, (size_t)(scanner->at - text) - strlen("]]>"));
    return true;
}

bool xml_scanner_text(struct xml_scanner *scanner, const uint8_t **ret_text, size_t *ret_length, bool *ret_is_raw)
{
    if (!xml_scanner_raw_text(scanner, ret_text, ret_length)) {
        return false;
    }
    *ret_is_raw = !begins_with(scanner, "<![CDATA[") && !memchr(*ret_text, '&', *ret_length);
    if (*ret_is_raw) {
        return true;
    }
    scanner->text.count = 0;
    scanner->at = *ret_text;
    do {
        const uint8_t *end = memchr(scanner->at, '<', (size_t)(scanner->end - scanner->at));

        if (!end) {
            return xml_scanner_fail(scanner, "The document ends in an element that begins");
        }
        if (!append_text(scanner, end)) {
            return false;
        }
    } while (begins_with(scanner, "<![CDATA[") && append_quoted_section(scanner));
    *ret_text = scanner->text.bytes;
    *ret_length = scanner->text.count;
    if (scanner->text.lacks_memory) {
        return read_fault_set_no_memory(scanner->fault);
    }
    return scanner->fault->words[0] == '\0';
}
