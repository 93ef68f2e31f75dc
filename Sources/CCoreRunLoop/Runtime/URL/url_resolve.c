/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the resolution of URLs. The functions follow the pseudocode of RFC 3986, 5.2.2 to 5.3. */
#include "Runtime/URL/url_resolve.h"

#include <string.h>

static char *write_bytes(char *next, const char *bytes, CFIndex count)
{
    if (count > 0) {
        memcpy(next, bytes, (size_t)count);
    }
    return next + count;
}

static char *write_part(char *next, const struct url_view *url, CFRange part)
{
    return write_bytes(next, url->bytes + part.location, part.length);
}

/* A scheme, authority, query or fragment that is missing leaves out its separator as well. */
static char *write_separated(char *next, const char *before, const struct url_view *url, CFRange part, const char *after)
{
    if (url_part_is_missing(part)) {
        return next;
    }
    next = write_bytes(next, before, (CFIndex)strlen(before));
    next = write_part(next, url, part);
    return write_bytes(next, after, (CFIndex)strlen(after));
}

/* The path of a reference without a slash begins where the last component of the base's path does. */
static char *write_merged(char *next, const struct url_view *base, const struct url_view *reference)
{
    CFRange path = base->parts->path;

    if (path.length == 0) {
        if (!url_part_is_missing(base->parts->authority)) {
            *next++ = '/';
        }
    } else {
        CFIndex end = path.location + path.length;

        while (end > path.location && base->bytes[end - 1] != '/') {
            end--;
        }
        next = write_part(next, base, CFRangeMake(path.location, end - path.location));
    }
    return write_part(next, reference, reference->parts->path);
}

/* Goes back in what was written to before the last component and its slash. What stands before `start` stays. */
static char *remove_component(char *start, char *next)
{
    while (next > start && *--next != '/') {
    }
    return next;
}

/*
 * Removes the segments "." and ".." of a path that stands in `start` to `end`, and returns its new end. ".." takes the component before it
 * away, if there is one. A path that does not begin with a slash does not begin with one afterwards.
 */
static char *remove_dot_segments(char *start, char *end)
{
    bool is_relative = start < end && *start != '/';
    char *next = start;
    char *from = start;

    while (from < end) {
        bool has_slash = *from == '/';
        char *name = from + has_slash;
        char *name_end = memchr(name, '/', (size_t)(end - name));

        name_end = name_end != NULL ? name_end : end;
        if (!url_is_dot_segment(name, CFRangeMake(0, name_end - name))) {
            memmove(next, from, (size_t)(name_end - from));
            next += name_end - from;
            from = name_end;
            continue;
        }
        if (name_end - name == 2) {
            next = remove_component(start, next);
        }
        /* The slash behind the segment takes the place of the one before it. At the end of the path that one stays. */
        from = name_end;
        if (is_relative && next == start) {
            from += from < end;
        } else if (from == end && has_slash) {
            *next++ = '/';
        }
    }
    return next;
}

/* What the beginning of a path must not be taken for: an authority, or a scheme. A dot segment in front of it prevents that. */
static const char *guard_of(const char *path, const char *end, const struct url_parts *base)
{
    const char *slash = memchr(path, '/', (size_t)(end - path));

    if (end - path >= 2 && path[0] == '/' && path[1] == '/') {
        return "/.";
    }
    bool has_colon = memchr(path, ':', (size_t)((slash != NULL ? slash : end) - path)) != NULL;
    return has_colon && url_part_is_missing(base->scheme) ? "./" : "";
}

static char *write_guarded_path(char *next, const struct url_view *base, const struct url_view *reference)
{
    CFRange path = reference->parts->path;
    bool has_authority = !url_part_is_missing(reference->parts->authority);
    char *start = next;

    if (has_authority || (path.length > 0 && reference->bytes[path.location] == '/')) {
        next = remove_dot_segments(start, write_part(next, reference, path));
    } else if (path.length > 0) {
        next = remove_dot_segments(start, write_merged(next, base, reference));
    } else {
        next = write_part(next, base, base->parts->path);
    }
    const char *guard = has_authority || !url_part_is_missing(base->parts->authority) ? "" : guard_of(start, next, base->parts);
    size_t length = strlen(guard);
    memmove(start + length, start, (size_t)(next - start));
    memcpy(start, guard, length);
    return next + length;
}

CFIndex url_resolve(const struct url_view *base, const struct url_view *reference, char *ret_bytes)
{
    const struct url_parts *parts = reference->parts;
    bool has_authority = !url_part_is_missing(parts->authority);
    bool has_own_query = has_authority || parts->path.length > 0 || !url_part_is_missing(parts->query);
    char *next = write_separated(ret_bytes, "", base, base->parts->scheme, ":");

    next = has_authority ? write_separated(next, "//", reference, parts->authority, "")
                         : write_separated(next, "//", base, base->parts->authority, "");
    next = write_guarded_path(next, base, reference);
    next =
        has_own_query ? write_separated(next, "?", reference, parts->query, "") : write_separated(next, "?", base, base->parts->query, "");
    next = write_separated(next, "#", reference, parts->fragment, "");
    return next - ret_bytes;
}
