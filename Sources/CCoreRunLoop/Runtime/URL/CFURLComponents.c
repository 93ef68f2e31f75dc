/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the functions that give parts of URLs. */
#include "CoreFoundation/CFURL.h"

#include "Runtime/URL/url.h"
#include "Runtime/URL/url_bytes.h"

static const CFRange missing = {.location = kCFNotFound};

/* The URL whose scheme is that of `url`. */
static const struct url *scheme_owner(const struct url *url)
{
    return url->base != NULL ? url->base : url;
}

/* The URL whose net location is that of `url`. */
static const struct url *authority_owner(const struct url *url)
{
    return url_part_is_missing(url->parts.authority) ? scheme_owner(url) : url;
}

static const struct url *query_owner(const struct url *url)
{
    bool has_own = url->parts.path.length > 0 || !url_part_is_missing(url->parts.authority) || !url_part_is_missing(url->parts.query);

    return has_own ? url : scheme_owner(url);
}

/* A part that is empty is as good as missing. */
static CFRange unless_empty(CFRange part)
{
    return part.length == 0 ? missing : part;
}

CFStringRef CFURLCopyScheme(CFURLRef url)
{
    const struct url *owner = scheme_owner(url_of(url, "CFURLCopyScheme"));

    return url_copy_part(owner, owner->parts.scheme);
}

CFStringRef CFURLCopyNetLocation(CFURLRef url)
{
    const struct url *owner = authority_owner(url_of(url, "CFURLCopyNetLocation"));

    return url_copy_part(owner, unless_empty(owner->parts.authority));
}

CFStringRef CFURLCopyHostName(CFURLRef url)
{
    const struct url *owner = authority_owner(url_of(url, "CFURLCopyHostName"));
    CFRange host = unless_empty(owner->parts.host);

    if (host.length > 2 && owner->bytes[host.location] == '[') {
        host = CFRangeMake(host.location + 1, host.length - 2);
    }
    return url_copy_text(owner, host);
}

SInt32 CFURLGetPortNumber(CFURLRef url)
{
    const struct url *owner = authority_owner(url_of(url, "CFURLGetPortNumber"));
    CFRange port = unless_empty(owner->parts.port);
    int64_t number = url_part_is_missing(port) ? -1 : 0;

    for (CFIndex i = 0; i < port.length; i++) {
        char digit = owner->bytes[port.location + i];

        if (digit < '0' || digit > '9') {
            return -1;
        }
        number = number * 10 + digit - '0';
        number = number > INT32_MAX ? INT32_MAX : number;
    }
    return (SInt32)number;
}

CFStringRef CFURLCopyUserName(CFURLRef url)
{
    const struct url *owner = authority_owner(url_of(url, "CFURLCopyUserName"));

    return url_copy_text(owner, owner->parts.user);
}

CFStringRef CFURLCopyPassword(CFURLRef url)
{
    const struct url *owner = authority_owner(url_of(url, "CFURLCopyPassword"));

    return url_copy_text(owner, owner->parts.password);
}

static bool has_path(const struct url *url)
{
    const struct url_parts *parts = &url->parts;

    return !parts->is_opaque && (parts->path.length > 0 || unless_empty(parts->authority).length > 0);
}

CFStringRef CFURLCopyPath(CFURLRef reference)
{
    const struct url *url = url_of(reference, "CFURLCopyPath");

    return url_copy_part(url, has_path(url) ? url->parts.path : missing);
}

CFStringRef CFURLCopyStrictPath(CFURLRef reference, Boolean *isAbsolute)
{
    const struct url *url = url_of(reference, "CFURLCopyStrictPath");
    CFRange path = url->parts.is_opaque ? missing : unless_empty(url->parts.path);
    bool has_slash = path.length > 0 && url->bytes[path.location] == '/';

    if (isAbsolute != NULL) {
        *isAbsolute = has_slash;
    }
    return url_copy_part(url, has_slash ? CFRangeMake(path.location + 1, path.length - 1) : path);
}

Boolean CFURLHasDirectoryPath(CFURLRef reference)
{
    const struct url *url = url_of(reference, "CFURLHasDirectoryPath");
    CFRange path = url->parts.path;

    if (url->parts.is_opaque || path.length == 0) {
        return false;
    }
    return url->bytes[path.location + path.length - 1] == '/' || url_is_dot_segment(url->bytes, url_last_component(url->bytes, path));
}

CFStringRef CFURLCopyFileSystemPath(CFURLRef reference, CFURLPathStyle pathStyle)
{
    const struct url *url = url_of(reference, "CFURLCopyFileSystemPath");
    CFRange path = has_path(url) && pathStyle == kCFURLPOSIXPathStyle ? url->parts.path : missing;

    if (path.length > 1 && url->bytes[path.location + path.length - 1] == '/') {
        path.length--;
    }
    return url_copy_text(url, path);
}

/* What follows the path with its separator, or the scheme of a URL that cannot be decomposed. */
static CFRange resource_specifier(const struct url *url)
{
    CFRange path = url->parts.path;
    CFIndex start = url->parts.is_opaque ? path.location : path.location + path.length;

    return start < url->count ? CFRangeMake(start, url->count - start) : missing;
}

CFStringRef CFURLCopyResourceSpecifier(CFURLRef reference)
{
    const struct url *url = url_of(reference, "CFURLCopyResourceSpecifier");

    return url_copy_part(url, resource_specifier(url));
}

CFStringRef CFURLCopyParameterString(CFURLRef url, CFStringRef charactersToLeaveEscaped)
{
    (void)url_of(url, "CFURLCopyParameterString");
    (void)charactersToLeaveEscaped;
    return NULL;
}

static CFStringRef copy_with_escapes(const struct url *url, CFRange part, CFStringRef left)
{
    CFStringRef text = url->parts.is_opaque ? NULL : url_copy_part(url, part);

    if (text == NULL || left == NULL) {
        return text;
    }
    CFStringRef replaced = CFURLCreateStringByReplacingPercentEscapesUsingEncoding(NULL, text, left, url->encoding);
    CFRelease(text);
    return replaced;
}

CFStringRef CFURLCopyQueryString(CFURLRef url, CFStringRef charactersToLeaveEscaped)
{
    const struct url *owner = query_owner(url_of(url, "CFURLCopyQueryString"));

    return copy_with_escapes(owner, owner->parts.query, charactersToLeaveEscaped);
}

CFStringRef CFURLCopyFragment(CFURLRef reference, CFStringRef charactersToLeaveEscaped)
{
    const struct url *url = url_of(reference, "CFURLCopyFragment");

    return copy_with_escapes(url, url->parts.fragment, charactersToLeaveEscaped);
}

CFStringRef CFURLCopyLastPathComponent(CFURLRef reference)
{
    const struct url *url = url_of(reference, "CFURLCopyLastPathComponent");
    CFRange path = url->parts.path;

    if (url->parts.is_opaque) {
        return CFStringCreateCopy(NULL, CFSTR(""));
    }
    bool is_root = path.length == 1 && url->bytes[path.location] == '/';
    return url_copy_text(url, is_root ? path : url_last_component(url->bytes, path));
}

CFStringRef CFURLCopyPathExtension(CFURLRef reference)
{
    const struct url *url = url_of(reference, "CFURLCopyPathExtension");
    CFRange extension = url->parts.is_opaque ? missing : url_extension(url->bytes, url_last_component(url->bytes, url->parts.path));
    CFStringRef text = url_copy_text(url, extension);

    if (text != NULL && CFStringFind(text, CFSTR(" "), 0).location != kCFNotFound) {
        CFRelease(text);
        return NULL;
    }
    return text;
}

/* The parts of a URL without those that are made of others, in the order in which they stand in it. */
enum place { place_scheme, place_user, place_password, place_host, place_port, place_path, place_query, place_fragment, place_count };

/* Where the parts stand in the bytes that the URL was made of. */
struct places {
    CFIndex count; /* of the bytes */
    CFIndex after_scheme; /* behind its separators */
    bool is_opaque;
    CFRange parts[place_count];
};

static void find_places(const struct url *url, struct places *ret_places)
{
    struct url_parts parts = url->parts;
    CFIndex count = url->count;

    if (url->given != NULL) {
        count = CFDataGetLength(url->given);
        url_parts_find((const char *)CFDataGetBytePtr(url->given), count, &parts);
    }
    bool has_authority = unless_empty(parts.authority).length > 0;
    CFIndex after_scheme = url_part_is_missing(parts.scheme) ? 0 : parts.scheme.length + 1;
    *ret_places = (struct places){
        .count = count,
        .after_scheme = url_part_is_missing(parts.scheme) || url_part_is_missing(parts.authority) ? after_scheme : parts.authority.location,
        .is_opaque = parts.is_opaque,
        .parts = {parts.scheme, parts.user, parts.password, has_authority ? parts.host : missing, parts.port,
                  has_authority ? parts.path : unless_empty(parts.path), parts.query, parts.fragment},
    };
    if (parts.is_opaque) { /* what follows the scheme takes the place of the query */
        for (int i = place_user; i < place_count; i++) {
            ret_places->parts[i] = missing;
        }
        ret_places->parts[place_query] = unless_empty(CFRangeMake(after_scheme, count - after_scheme));
    }
}

/* The first and the last place of a component; false for one that no URL has. */
static bool places_of_component(CFURLComponentType component, bool is_opaque, int *ret_first, int *ret_last)
{
    static const struct {
        signed char first, last;
    } all[] = {
        [kCFURLComponentScheme] = {place_scheme, place_scheme},
        [kCFURLComponentNetLocation] = {place_user, place_port},
        [kCFURLComponentPath] = {place_path, place_path},
        [kCFURLComponentResourceSpecifier] = {place_query, place_fragment},
        [kCFURLComponentUser] = {place_user, place_user},
        [kCFURLComponentPassword] = {place_password, place_password},
        [kCFURLComponentUserInfo] = {place_user, place_password},
        [kCFURLComponentHost] = {place_host, place_host},
        [kCFURLComponentPort] = {place_port, place_port},
        [kCFURLComponentQuery] = {place_query, place_query},
        [kCFURLComponentFragment] = {place_fragment, place_fragment},
    };
    bool is_known =
        component >= kCFURLComponentScheme && component <= kCFURLComponentFragment && component != kCFURLComponentParameterString;
    bool is_in_opaque = component == kCFURLComponentScheme || component == kCFURLComponentResourceSpecifier;

    if (!is_known || (is_opaque && !is_in_opaque)) {
        return false;
    }
    *ret_first = all[component].first;
    *ret_last = all[component].last;
    return true;
}

/* The separators of a part are all the bytes between it and its neighbours. */
CFRange CFURLGetByteRangeForComponent(CFURLRef reference, CFURLComponentType component, CFRange *rangeIncludingSeparators)
{
    struct places places;
    CFRange part = missing;
    CFRange wide = missing;
    int first;
    int last;

    find_places(url_of(reference, "CFURLGetByteRangeForComponent"), &places);
    if (places_of_component(component, places.is_opaque, &first, &last)) {
        int before = first - 1;
        int after = last + 1;

        for (int i = first; i <= last; i++) {
            CFRange next = places.parts[i];

            if (!url_part_is_missing(next)) {
                part = url_part_is_missing(part) ? next : CFRangeMake(part.location, next.location + next.length - part.location);
            }
        }
        while (before >= 0 && url_part_is_missing(places.parts[before])) {
            before--;
        }
        while (after < place_count && url_part_is_missing(places.parts[after])) {
            after++;
        }
        wide.location = before < 0 ? 0 : places.parts[before].location + places.parts[before].length;
        if (!url_part_is_missing(part)) {
            CFIndex end = places.is_opaque ? places.count : part.location + part.length;

            wide.length = (after < place_count ? places.parts[after].location : end) - wide.location;
        } else if (before == place_scheme) {
            wide.location = places.after_scheme;
        }
    }
    if (rangeIncludingSeparators != NULL) {
        *rangeIncludingSeparators = wide;
    }
    return part;
}
