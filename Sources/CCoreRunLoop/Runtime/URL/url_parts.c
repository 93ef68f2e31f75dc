/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a URL is taken apart. */
#include "Runtime/URL/url_parts.h"

#include <string.h>

static const CFRange missing = {.location = kCFNotFound};

static CFRange range_between(CFIndex start, CFIndex end)
{
    return CFRangeMake(start, end - start);
}

/* The first place in a range of any of these bytes, or the end of the range. */
static CFIndex find_any(const char *bytes, CFRange range, const char *wanted)
{
    CFIndex index = range.location;
    CFIndex end = range.location + range.length;

    while (index < end && (bytes[index] == '\0' || strchr(wanted, bytes[index]) == NULL)) {
        index++;
    }
    return index;
}

static bool is_letter(char byte)
{
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

static bool is_in_scheme(char byte)
{
    return is_letter(byte) || (byte >= '0' && byte <= '9') || byte == '+' || byte == '-' || byte == '.';
}

static CFRange find_scheme(const char *bytes, CFIndex count)
{
    CFIndex index = 0;

    while (index < count && is_in_scheme(bytes[index])) {
        index++;
    }
    return index > 0 && index < count && bytes[index] == ':' && is_letter(bytes[0]) ? CFRangeMake(0, index) : missing;
}

/* The last '@' ends the user info: what stands before it can then not pass for the host. */
static CFIndex find_user_info_end(const char *bytes, CFRange authority)
{
    for (CFIndex i = authority.location + authority.length; i > authority.location; i--) {
        if (bytes[i - 1] == '@') {
            return i - 1;
        }
    }
    return kCFNotFound;
}

static CFIndex find_host_end(const char *bytes, CFRange range)
{
    CFIndex end = range.location + range.length;

    if (range.length > 0 && bytes[range.location] == '[') {
        CFIndex bracket = find_any(bytes, range, "]");

        if (bracket < end) {
            return find_any(bytes, range_between(bracket, end), ":");
        }
    }
    return find_any(bytes, range, ":");
}

static void find_in_authority(const char *bytes, struct url_parts *parts)
{
    CFIndex start = parts->authority.location;
    CFIndex end = start + parts->authority.length;
    CFIndex at = find_user_info_end(bytes, parts->authority);

    if (at != kCFNotFound) {
        parts->user_info = range_between(start, at);
        CFIndex colon = find_any(bytes, parts->user_info, ":");
        parts->user = range_between(start, colon);
        parts->password = colon < at ? range_between(colon + 1, at) : missing;
        start = at + 1;
    }
    CFIndex host_end = find_host_end(bytes, range_between(start, end));
    parts->host = range_between(start, host_end);
    parts->port = host_end < end ? range_between(host_end + 1, end) : missing;
}

void url_parts_find(const char *bytes, CFIndex count, struct url_parts *ret_parts)
{
    *ret_parts = (struct url_parts){.scheme = find_scheme(bytes, count)};
    CFRange *const in_authority[] = {&ret_parts->authority, &ret_parts->user_info, &ret_parts->user,  &ret_parts->password,
                                     &ret_parts->host,      &ret_parts->port,      &ret_parts->query, &ret_parts->fragment};
    for (size_t i = 0; i < sizeof in_authority / sizeof in_authority[0]; i++) {
        *in_authority[i] = missing;
    }
    CFIndex start = url_part_is_missing(ret_parts->scheme) ? 0 : ret_parts->scheme.length + 1;
    ret_parts->is_opaque = start > 0 && (start == count || bytes[start] != '/');
    if (count - start >= 2 && bytes[start] == '/' && bytes[start + 1] == '/') {
        CFIndex end = find_any(bytes, range_between(start + 2, count), "/?#");

        ret_parts->authority = range_between(start + 2, end);
        find_in_authority(bytes, ret_parts);
        start = end;
    }
    CFIndex end = find_any(bytes, range_between(start, count), "?#");
    ret_parts->path = range_between(start, end);
    if (end < count && bytes[end] == '?') {
        start = end + 1;
        end = find_any(bytes, range_between(start, count), "#");
        ret_parts->query = range_between(start, end);
    }
    if (end < count) {
        ret_parts->fragment = range_between(end + 1, count);
    }
}

CFRange url_last_component(const char *bytes, CFRange path)
{
    CFIndex end = path.location + path.length;

    end -= path.length > 0 && bytes[end - 1] == '/';
    CFIndex start = end;
    while (start > path.location && bytes[start - 1] != '/') {
        start--;
    }
    return range_between(start, end);
}

CFRange url_extension(const char *bytes, CFRange component)
{
    CFIndex end = component.location + component.length;

    for (CFIndex dot = end - 1; dot > component.location; dot--) {
        if (bytes[dot] == '.') {
            return dot + 1 < end ? range_between(dot + 1, end) : missing;
        }
    }
    return missing;
}

bool url_is_dot_segment(const char *bytes, CFRange component)
{
    return component.length > 0 && component.length <= 2 && memcmp(bytes + component.location, "..", (size_t)component.length) == 0;
}
