/* SPDX-License-Identifier: Apache-2.0 */
/* Brings text in any of the usual encodings into UTF-8 (text_input.h). */
#define _GNU_SOURCE /* memmem */
#include "Text/text_input.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "CoreFoundation/CoreFoundation.h"

enum { declaration_max = 200 }; /* bytes of a declaration of XML that are looked at */

/* The first bytes of a text, and the encoding that they say. Longer ones come first. */
static const struct text_beginning {
    const char *bytes;
    size_t length;
    size_t mark_length; /* which is no part of the text */
    CFStringEncoding encoding;
} beginnings[] = {
    {"\xFF\xFE\0\0", 4, 4, kCFStringEncodingUTF32LE}, {"\0\0\xFE\xFF", 4, 4, kCFStringEncodingUTF32BE},
    {"\xEF\xBB\xBF", 3, 3, kCFStringEncodingUTF8},    {"\xFF\xFE", 2, 2, kCFStringEncodingUTF16LE},
    {"\xFE\xFF", 2, 2, kCFStringEncodingUTF16BE},     {"<\0", 2, 0, kCFStringEncodingUTF16LE},
    {"\0<", 2, 0, kCFStringEncodingUTF16BE},
};

static const struct named_encoding {
    const char *name;
    CFStringEncoding encoding;
} named_encodings[] = {
    {"UTF-8", kCFStringEncodingUTF8},           {"US-ASCII", kCFStringEncodingASCII},
    {"ISO-8859-1", kCFStringEncodingISOLatin1}, {"WINDOWS-1252", kCFStringEncodingWindowsLatin1},
    {"MACINTOSH", kCFStringEncodingMacRoman},
};

static const uint8_t *find(const uint8_t *bytes, const uint8_t *end, const char *text)
{
    return memmem(bytes, (size_t)(end - bytes), text, strlen(text));
}

/* The name in encoding="NAME" of the declaration of XML with which the text begins; NULL if there is none. */
static const uint8_t *declared_name(const uint8_t *bytes, size_t length, size_t *ret_length)
{
    const uint8_t *end = bytes + (length < declaration_max ? length : declaration_max);
    const uint8_t *name, *behind;

    if (length < 5 || memcmp(bytes, "<?xml", 5) != 0) {
        return NULL;
    }
    end = find(bytes, end, "?>");
    name = end ? find(bytes, end, "encoding=") : NULL;
    if (!name || end - name < 11 || (name[9] != '"' && name[9] != '\'')) {
        return NULL;
    }
    name += 10;
    behind = memchr(name, name[-1], (size_t)(end - name));
    *ret_length = behind ? (size_t)(behind - name) : 0;
    return behind ? name : NULL;
}

static bool find_encoding(const uint8_t *bytes, size_t length, CFStringEncoding *ret_encoding, struct read_fault *fault)
{
    size_t name_length = 0;
    const uint8_t *name = declared_name(bytes, length, &name_length);

    *ret_encoding = kCFStringEncodingUTF8;
    if (!name) {
        return true;
    }
    for (size_t i = 0; i < sizeof named_encodings / sizeof named_encodings[0]; i++) {
        if (strlen(named_encodings[i].name) == name_length && strncasecmp(named_encodings[i].name, (const char *)name, name_length) == 0) {
            *ret_encoding = named_encodings[i].encoding;
            return true;
        }
    }
    return read_fault_set(fault, "The encoding '%.*s' is not known", (int)(name_length < 40 ? name_length : 40), (const char *)name);
}

static bool convert(struct text_input *input, CFStringEncoding encoding, struct read_fault *fault)
{
    CFStringRef text = CFStringCreateWithBytes(kCFAllocatorSystemDefault, input->bytes, (CFIndex)input->length, encoding, false);
    CFIndex length = text ? CFStringGetLength(text) : 0;
    CFIndex size = 0;
    CFIndex taken;

    if (!text) {
        return read_fault_set(fault, "The text is not in the encoding that it begins with, or there is no memory");
    }
    (void)CFStringGetBytes(text, CFRangeMake(0, length), kCFStringEncodingUTF8, '?', false, NULL, 0, &size);
    input->converted = malloc((size_t)size + 1);
    taken = input->converted
                ? CFStringGetBytes(text, CFRangeMake(0, length), kCFStringEncodingUTF8, '?', false, input->converted, size, &size)
                : 0;
    CFRelease(text);
    input->bytes = input->converted;
    input->length = (size_t)size;
    return taken == length && input->converted ? true : read_fault_set_no_memory(fault);
}

bool text_input_begin(struct text_input *input, const uint8_t *bytes, size_t length, struct read_fault *fault)
{
    CFStringEncoding encoding = kCFStringEncodingUTF8;

    *input = (struct text_input){bytes, length, NULL};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        if (length >= beginnings[i].length && memcmp(bytes, beginnings[i].bytes, beginnings[i].length) == 0) {
            input->bytes += beginnings[i].mark_length;
            input->length -= beginnings[i].mark_length;
            return beginnings[i].encoding == kCFStringEncodingUTF8 || convert(input, beginnings[i].encoding, fault);
        }
    }
    return find_encoding(bytes, length, &encoding, fault) && (encoding == kCFStringEncodingUTF8 || convert(input, encoding, fault));
}

void text_input_end(struct text_input *input)
{
    free(input->converted);
}

/* Returns how many bytes a valid character has, or 0. */
static size_t character_length(const uint8_t *at, const uint8_t *end)
{
    size_t count = *at < 0x80 ? 1 : *at >= 0xC2 && *at < 0xE0 ? 2 : *at >= 0xE0 && *at < 0xF0 ? 3 : *at >= 0xF0 && *at < 0xF5 ? 4 : 0;

    if ((size_t)(end - at) < count) {
        return 0;
    }
    for (size_t i = 1; i < count; i++) {
        if ((at[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    if ((*at == 0xE0 && at[1] < 0xA0) || (*at == 0xED && at[1] > 0x9F) || (*at == 0xF0 && at[1] < 0x90) || (*at == 0xF4 && at[1] > 0x8F)) {
        return 0;
    }
    return count;
}

bool text_input_set_fault(struct read_fault *fault, const uint8_t *start, const uint8_t *bytes, size_t length)
{
    const uint8_t *end = bytes + length;
    size_t count = 0;

    while (bytes < end && (count = character_length(bytes, end)) > 0) {
        bytes += count;
    }
    return bytes < end ? read_fault_set_at(fault, start, bytes, "There is text that is no UTF-8") : read_fault_set_no_memory(fault);
}
