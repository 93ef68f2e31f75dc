/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of property lists. Any thread; those with a stream wait for it. */
#include "CoreFoundation/CFPropertyList.h"

#include <stdlib.h>

#include "Binary/binary_reader.h"
#include "Binary/binary_writer.h"
#include "Format/byte_buffer.h"
#include "Text/old_reader.h"
#include "Format/plist_error.h"
#include "Text/text_input.h"
#include "Text/xml_reader.h"
#include "Text/xml_writer.h"
#include "Tree/tree_check.h"
#include "Tree/tree_copy.h"

enum { stream_piece = 65536 }; /* bytes that are read at once */

/* ---- reading ---- */

/* Data of the old format begin as a tag may, but a digit or the end follows. */
static bool may_be_old_data(const uint8_t *at, const uint8_t *end)
{
    for (at++; at < end && (*at == ' ' || (*at >= '\t' && *at <= '\r')); at++) {
    }
    return at < end && (*at == '>' || (*at >= '0' && *at <= '9') || ((*at | 0x20) >= 'a' && (*at | 0x20) <= 'f'));
}

static CFTypeRef read_text(CFAllocatorRef allocator, const struct text_input *input, CFOptionFlags options,
                           CFPropertyListFormat *ret_format, struct read_fault *fault)
{
    const uint8_t *at = input->bytes;
    const uint8_t *end = at + input->length;
    struct read_fault old_fault = {{0}};
    CFTypeRef tree;

    while (at < end && (*at == ' ' || (*at >= '\t' && *at <= '\r'))) {
        at++;
    }
    *ret_format = kCFPropertyListOpenStepFormat;
    if (at == end || *at != '<') {
        return old_read(allocator, input->bytes, input->length, options, fault);
    }
    if (may_be_old_data(at, end)) {
        tree = old_read(allocator, input->bytes, input->length, options, &old_fault);
        if (tree) {
            return tree;
        }
    }
    *ret_format = kCFPropertyListXMLFormat_v1_0;
    return xml_read(allocator, input->bytes, input->length, options, fault);
}

static CFTypeRef read_bytes(CFAllocatorRef allocator, const uint8_t *bytes, size_t length, CFOptionFlags options,
                            CFPropertyListFormat *format, struct read_fault *fault)
{
    CFPropertyListFormat found = kCFPropertyListBinaryFormat_v1_0;
    struct text_input input;
    CFTypeRef tree = NULL;

    if (length == 0) {
        (void)read_fault_set(fault, "There are no bytes");
        return NULL;
    }
    if (binary_is_meant(bytes, length)) {
        tree = binary_read(allocator, bytes, length, options, fault);
    } else {
        if (text_input_begin(&input, bytes, length, fault)) {
            tree = read_text(allocator, &input, options, &found, fault);
        }
        text_input_end(&input);
    }
    if (tree && format) {
        *format = found;
    }
    return tree;
}

/* No data is as data without bytes. */
static CFTypeRef read_data(CFAllocatorRef allocator, CFDataRef data, CFOptionFlags options, CFPropertyListFormat *format,
                           struct read_fault *fault)
{
    return read_bytes(allocator, data ? CFDataGetBytePtr(data) : NULL, data ? (size_t)CFDataGetLength(data) : 0, options, format, fault);
}

/* Reads `limit` bytes of a stream, or all up to its end if it is 0. */
static bool read_stream(CFReadStreamRef stream, size_t limit, struct byte_buffer *buffer, struct read_fault *fault)
{
    CFIndex count = 1;

    while (count > 0 && (limit == 0 || buffer->count < limit)) {
        size_t wanted = limit == 0 || limit - buffer->count > stream_piece ? stream_piece : limit - buffer->count;
        uint8_t *end = byte_buffer_reserve(buffer, wanted);

        if (!end) {
            return read_fault_set_no_memory(fault);
        }
        count = CFReadStreamRead(stream, end, (CFIndex)wanted);
        buffer->count += count > 0 ? (size_t)count : 0;
    }
    if (count < 0) {
        return read_fault_set(fault, "The stream could not be read");
    }
    return buffer->count > 0 || read_fault_set(fault, "The stream has no bytes");
}

static CFTypeRef read_from_stream(CFAllocatorRef allocator, CFReadStreamRef stream, CFIndex length, CFOptionFlags options,
                                  CFPropertyListFormat *format, struct read_fault *fault, CFIndex *ret_code)
{
    struct byte_buffer buffer = {0};
    CFTypeRef tree = NULL;

    *ret_code = kCFPropertyListReadStreamError;
    if (read_stream(stream, length > 0 ? (size_t)length : 0, &buffer, fault)) {
        *ret_code = kCFPropertyListReadCorruptError;
        tree = read_bytes(allocator, buffer.bytes, buffer.count, options, format, fault);
    }
    byte_buffer_free(&buffer);
    return tree;
}

CFPropertyListRef CFPropertyListCreateWithData(CFAllocatorRef allocator, CFDataRef data, CFOptionFlags options,
                                               CFPropertyListFormat *format, CFErrorRef *error)
{
    struct read_fault fault = {{0}};
    CFTypeRef tree = read_data(allocator, data, options, format, &fault);

    if (!tree) {
        plist_error_set(error, kCFPropertyListReadCorruptError, &fault, NULL);
    }
    return tree;
}

CFPropertyListRef CFPropertyListCreateWithStream(CFAllocatorRef allocator, CFReadStreamRef stream, CFIndex streamLength,
                                                 CFOptionFlags options, CFPropertyListFormat *format, CFErrorRef *error)
{
    struct read_fault fault = {{0}};
    CFIndex code;
    CFTypeRef tree = read_from_stream(allocator, stream, streamLength, options, format, &fault, &code);

    if (!tree) {
        plist_error_set(error, code, &fault, code == kCFPropertyListReadStreamError ? CFReadStreamCopyError(stream) : NULL);
    }
    return tree;
}

/* Sets the words of the older calls, unless nobody wants them. */
static void give_words(CFStringRef *errorString, const struct read_fault *fault)
{
    if (errorString) {
        *errorString = fault->words[0] != '\0' ? plist_error_create_words(fault) : NULL;
    }
}

CFPropertyListRef CFPropertyListCreateFromXMLData(CFAllocatorRef allocator, CFDataRef xmlData, CFOptionFlags mutabilityOption,
                                                  CFStringRef *errorString)
{
    struct read_fault fault = {{0}};
    CFTypeRef tree = read_data(allocator, xmlData, mutabilityOption, NULL, &fault);

    give_words(errorString, &fault);
    return tree;
}

CFPropertyListRef CFPropertyListCreateFromStream(CFAllocatorRef allocator, CFReadStreamRef stream, CFIndex streamLength,
                                                 CFOptionFlags mutabilityOption, CFPropertyListFormat *format, CFStringRef *errorString)
{
    struct read_fault fault = {{0}};
    CFIndex code;
    CFTypeRef tree = read_from_stream(allocator, stream, streamLength, mutabilityOption, format, &fault, &code);

    give_words(errorString, &fault);
    return tree;
}

/* ---- writing ---- */

static bool set_fault_of_type(struct read_fault *fault, const char *format, CFTypeRef object)
{
    CFStringRef type = CFCopyTypeIDDescription(CFGetTypeID(object));
    char name[64] = "unknown type";

    if (type) {
        (void)CFStringGetCString(type, name, sizeof name, kCFStringEncodingUTF8);
        CFRelease(type);
    }
    return read_fault_set(fault, format, name);
}

static bool require_valid(CFTypeRef tree, CFPropertyListFormat format, struct read_fault *fault)
{
    CFTypeRef object;

    switch (tree_check(tree, format, &object, NULL)) {
    case tree_is_valid:
        return true;
    case tree_has_null:
        return read_fault_set(fault, "A property list cannot contain NULL");
    case tree_has_foreign:
        return set_fault_of_type(fault, "A property list cannot contain an object of type %s", object);
    case tree_has_foreign_key:
        return object ? set_fault_of_type(fault, "A key of a property list has to be a string, not of type %s", object)
                      : read_fault_set(fault, "A property list cannot contain NULL");
    case tree_has_cycle:
        return read_fault_set(fault, "A container in a property list cannot contain itself");
    default:
        return read_fault_set_no_memory(fault);
    }
}

/* Of most trees the writer itself sees that they are valid; the others are checked. */
static bool write_xml(CFTypeRef tree, struct byte_buffer *buffer, struct read_fault *fault)
{
    if (tree && xml_write(tree, tree_depth_max, buffer, fault)) {
        return true;
    }
    buffer->count = 0;
    return fault->words[0] == '\0' && require_valid(tree, kCFPropertyListXMLFormat_v1_0, fault) && xml_write(tree, SIZE_MAX, buffer, fault);
}

static bool write_bytes(CFTypeRef tree, CFPropertyListFormat format, struct byte_buffer *buffer, struct read_fault *fault)
{
    if (format != kCFPropertyListXMLFormat_v1_0 && format != kCFPropertyListBinaryFormat_v1_0) {
        return read_fault_set(fault, "Property lists are not written in the format %ld", (long)format);
    }
    if (format == kCFPropertyListXMLFormat_v1_0) {
        return write_xml(tree, buffer, fault);
    }
    return require_valid(tree, format, fault) && binary_write(tree, buffer, fault);
}

/* Makes data of the bytes, which it takes. They are moved where the data have memory of another allocator. */
static CFDataRef create_data(CFAllocatorRef allocator, struct byte_buffer *buffer)
{
    bool is_kept = allocator == NULL && CFAllocatorGetDefault() == kCFAllocatorSystemDefault;
    uint8_t *bytes = is_kept ? realloc(buffer->bytes, buffer->count) : NULL;
    CFDataRef data;

    if (!bytes) {
        return CFDataCreate(allocator, buffer->bytes, (CFIndex)buffer->count);
    }
    buffer->bytes = bytes;
    data = CFDataCreateWithBytesNoCopy(allocator, bytes, (CFIndex)buffer->count, kCFAllocatorMalloc);
    buffer->bytes = data ? NULL : bytes;
    return data;
}

static CFDataRef write_data(CFAllocatorRef allocator, CFTypeRef tree, CFPropertyListFormat format, struct read_fault *fault)
{
    struct byte_buffer buffer = {0};
    CFDataRef data = NULL;

    if (write_bytes(tree, format, &buffer, fault)) {
        data = create_data(allocator, &buffer);
        if (!data) {
            (void)read_fault_set_no_memory(fault);
        }
    }
    byte_buffer_free(&buffer);
    return data;
}

/* Returns how many bytes were written, 0 if not all were. */
static CFIndex write_stream(CFTypeRef tree, CFWriteStreamRef stream, CFPropertyListFormat format, struct read_fault *fault,
                            bool *ret_is_stream)
{
    struct byte_buffer buffer = {0};
    size_t written = 0;
    CFIndex count = 1;

    *ret_is_stream = write_bytes(tree, format, &buffer, fault);
    while (*ret_is_stream && written < buffer.count && count > 0) {
        count = CFWriteStreamWrite(stream, buffer.bytes + written, (CFIndex)(buffer.count - written));
        written += count > 0 ? (size_t)count : 0;
    }
    if (*ret_is_stream && written < buffer.count) {
        (void)read_fault_set(fault, count == 0 ? "The stream is full" : "The stream could not be written");
        written = 0;
    }
    byte_buffer_free(&buffer);
    return (CFIndex)written;
}

CFDataRef CFPropertyListCreateData(CFAllocatorRef allocator, CFPropertyListRef propertyList, CFPropertyListFormat format,
                                   CFOptionFlags options, CFErrorRef *error)
{
    struct read_fault fault = {{0}};
    CFDataRef data = write_data(allocator, propertyList, format, &fault);

    (void)options;
    if (!data) {
        plist_error_set(error, kCFPropertyListWriteStreamError, &fault, NULL);
    }
    return data;
}

CFIndex CFPropertyListWrite(CFPropertyListRef propertyList, CFWriteStreamRef stream, CFPropertyListFormat format, CFOptionFlags options,
                            CFErrorRef *error)
{
    struct read_fault fault = {{0}};
    bool is_stream;
    CFIndex written = write_stream(propertyList, stream, format, &fault, &is_stream);

    (void)options;
    if (written == 0) {
        plist_error_set(error, kCFPropertyListWriteStreamError, &fault, is_stream ? CFWriteStreamCopyError(stream) : NULL);
    }
    return written;
}

CFDataRef CFPropertyListCreateXMLData(CFAllocatorRef allocator, CFPropertyListRef propertyList)
{
    struct read_fault fault = {{0}};

    return write_data(allocator, propertyList, kCFPropertyListXMLFormat_v1_0, &fault);
}

CFIndex CFPropertyListWriteToStream(CFPropertyListRef propertyList, CFWriteStreamRef stream, CFPropertyListFormat format,
                                    CFStringRef *errorString)
{
    struct read_fault fault = {{0}};
    bool is_stream;
    CFIndex written = write_stream(propertyList, stream, format, &fault, &is_stream);

    give_words(errorString, &fault);
    return written;
}

/* ---- trees ---- */

Boolean CFPropertyListIsValid(CFPropertyListRef plist, CFPropertyListFormat format)
{
    CFTypeRef object;

    return tree_check(plist, format, &object, NULL) == tree_is_valid;
}

CFPropertyListRef CFPropertyListCreateDeepCopy(CFAllocatorRef allocator, CFPropertyListRef propertyList, CFOptionFlags mutabilityOption)
{
    CFTypeRef object;

    if (tree_check(propertyList, kCFPropertyListBinaryFormat_v1_0, &object, NULL) != tree_is_valid) {
        return NULL;
    }
    return tree_copy(allocator, propertyList, mutabilityOption);
}
