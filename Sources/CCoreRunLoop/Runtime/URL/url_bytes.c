/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the sets of bytes that parts of URLs may have, and how bytes are escaped. */
#include "Runtime/URL/url_bytes.h"

#include <string.h>

#include "Runtime/URL/url_parts.h"

static bool is_letter_or_digit(UniChar unit)
{
    UniChar small = unit | 0x20;

    return (small >= 'a' && small <= 'z' && unit < 0x80) || (unit >= '0' && unit <= '9');
}

bool url_set_has(enum url_set set, UniChar unit)
{
    static const char *const marks[] = {
        [url_set_host] = "-._~!$&'()*+,;=:",  [url_set_path] = "-._~!$&'()*+,;=:@/", [url_set_query] = "-._~!$&'()*+,;=:@/?",
        [url_set_file] = "-._~!$&'()*+,=:@/", [url_set_any] = "-._~!$&'()*+,;=:@/?",
    };

    return is_letter_or_digit(unit) || (unit > 0 && unit < 0x80 && strchr(marks[set], unit) != NULL);
}

int url_digit(UniChar unit)
{
    UniChar small = unit | 0x20;

    return unit >= '0' && unit <= '9' ? unit - '0' : small >= 'a' && small <= 'f' && unit < 0x80 ? small - 'a' + 10 : -1;
}

size_t url_write_escape(uint8_t byte, char *ret_bytes)
{
    static const char digits[] = "0123456789ABCDEF";

    ret_bytes[0] = '%';
    ret_bytes[1] = digits[byte >> 4];
    ret_bytes[2] = digits[byte & 15];
    return url_escape_length;
}

static bool is_escape(const uint8_t *bytes, CFIndex count)
{
    return count >= url_escape_length && bytes[0] == '%' && url_digit(bytes[1]) >= 0 && url_digit(bytes[2]) >= 0;
}

struct canonical {
    const uint8_t *bytes;
    char *next;
    bool is_strict;
    bool is_refused;
};

/* What the strict form does not refuse although it must be escaped where it stands. */
static bool is_tolerated(uint8_t byte)
{
    return byte != '\0' && strchr("[]@", byte) != NULL;
}

static void write_part(struct canonical *canonical, CFRange part, enum url_set set)
{
    CFIndex end = part.location + part.length;

    for (CFIndex i = part.location; i < end; i++) {
        uint8_t byte = canonical->bytes[i];

        if (url_set_has(set, byte) || is_escape(canonical->bytes + i, end - i)) {
            *canonical->next++ = (char)byte;
        } else {
            canonical->is_refused |= canonical->is_strict && !is_tolerated(byte);
            canonical->next += url_write_escape(byte, canonical->next);
        }
    }
}

static void write_byte(struct canonical *canonical, char byte)
{
    *canonical->next++ = byte;
}

/* An address within brackets keeps them. */
static void write_host(struct canonical *canonical, CFRange host)
{
    const uint8_t *bytes = canonical->bytes + host.location;
    bool is_literal = host.length >= 2 && bytes[0] == '[' && bytes[host.length - 1] == ']';

    if (is_literal) {
        write_byte(canonical, '[');
        write_part(canonical, CFRangeMake(host.location + 1, host.length - 2), url_set_host);
        write_byte(canonical, ']');
    } else {
        write_part(canonical, host, url_set_host);
    }
}

static void write_authority(struct canonical *canonical, const struct url_parts *parts)
{
    write_byte(canonical, '/');
    write_byte(canonical, '/');
    if (!url_part_is_missing(parts->user_info)) {
        write_part(canonical, parts->user_info, url_set_host);
        write_byte(canonical, '@');
    }
    write_host(canonical, parts->host);
    if (!url_part_is_missing(parts->port)) {
        write_byte(canonical, ':');
        write_part(canonical, parts->port, url_set_host);
    }
}

CFIndex url_write_canonical(const uint8_t *bytes, CFIndex count, bool is_strict, char *ret_bytes)
{
    struct canonical canonical = {.bytes = bytes, .next = ret_bytes, .is_strict = is_strict};
    struct url_parts parts;

    url_parts_find((const char *)bytes, count, &parts);
    if (!url_part_is_missing(parts.scheme)) {
        write_part(&canonical, parts.scheme, url_set_host);
        write_byte(&canonical, ':');
    }
    if (!url_part_is_missing(parts.authority)) {
        write_authority(&canonical, &parts);
    }
    write_part(&canonical, parts.path, url_set_path);
    if (!url_part_is_missing(parts.query)) {
        write_byte(&canonical, '?');
        write_part(&canonical, parts.query, url_set_query);
    }
    if (!url_part_is_missing(parts.fragment)) {
        write_byte(&canonical, '#');
        write_part(&canonical, parts.fragment, url_set_query);
    }
    return canonical.is_refused ? kCFNotFound : canonical.next - ret_bytes;
}

CFIndex url_write_unescaped(const char *bytes, CFIndex count, uint8_t *ret_bytes)
{
    CFIndex written = 0;

    for (CFIndex i = 0; i < count; i++) {
        if (is_escape((const uint8_t *)bytes + i, count - i)) {
            ret_bytes[written++] = (uint8_t)(url_digit((UniChar)bytes[i + 1]) << 4 | url_digit((UniChar)bytes[i + 2]));
            i += url_escape_length - 1;
        } else {
            ret_bytes[written++] = (uint8_t)bytes[i];
        }
    }
    return written;
}
