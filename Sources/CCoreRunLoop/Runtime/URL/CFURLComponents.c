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

/* Where a missing part would stand. */
static CFIndex place_of_missing(const struct url *url, CFURLComponentType component)
{
    const struct url_parts *parts = &url->parts;
    CFIndex after_path = parts->is_opaque ? url->count : parts->path.location + parts->path.length;
    CFIndex in_authority = url_part_is_missing(parts->authority) ? parts->path.location : parts->authority.location;

    switch (component) {
    case kCFURLComponentScheme:
        return 0;
    case kCFURLComponentPath:
    case kCFURLComponentNetLocation:
    case kCFURLComponentUser:
    case kCFURLComponentUserInfo:
        return in_authority;
    case kCFURLComponentPassword:
        return url_part_is_missing(parts->user) ? in_authority : parts->user.location + parts->user.length;
    case kCFURLComponentHost:
    case kCFURLComponentPort:
        return url_part_is_missing(parts->host) ? in_authority : parts->host.location + parts->host.length;
    case kCFURLComponentFragment:
        return url->count;
    case kCFURLComponentParameterString:
        return kCFNotFound;
    default:
        return after_path;
    }
}

static CFRange range_of_component(const struct url *url, CFURLComponentType component)
{
    const struct url_parts *parts = &url->parts;

    if (parts->is_opaque && component != kCFURLComponentScheme && component != kCFURLComponentResourceSpecifier) {
        return missing;
    }
    switch (component) {
    case kCFURLComponentScheme:
        return parts->scheme;
    case kCFURLComponentNetLocation:
        return unless_empty(parts->authority);
    case kCFURLComponentPath:
        return unless_empty(parts->path);
    case kCFURLComponentResourceSpecifier: {
        CFRange all = resource_specifier(url);
        return all.length > 0 && !parts->is_opaque ? CFRangeMake(all.location + 1, all.length - 1) : all;
    }
    case kCFURLComponentUser:
        return parts->user;
    case kCFURLComponentPassword:
        return parts->password;
    case kCFURLComponentUserInfo:
        return parts->user_info;
    case kCFURLComponentHost:
        return unless_empty(parts->host);
    case kCFURLComponentPort:
        return parts->port;
    case kCFURLComponentQuery:
        return parts->query;
    case kCFURLComponentFragment:
        return parts->fragment;
    default:
        return missing;
    }
}

static bool is_separator(char byte)
{
    return byte == ':' || byte == '/' || byte == '@' || byte == '?' || byte == '#';
}

/* The separators of a part are those between it and its neighbours. A slash belongs to the path, but for the two before a net location. */
static CFRange with_separators(const struct url *url, CFURLComponentType component, CFRange part)
{
    CFIndex start = part.location;
    CFIndex end = part.location + part.length;
    bool is_path = component == kCFURLComponentPath;

    while (!is_path && start > 0 && is_separator(url->bytes[start - 1])) {
        start--;
    }
    CFIndex path = url->parts.path.location;
    CFIndex most = start < path && component != kCFURLComponentScheme ? path : url->count;
    while (end < most && is_separator(url->bytes[end]) && !(is_path && url->bytes[end] == '/')) {
        end++;
    }
    return CFRangeMake(start, end - start);
}

CFRange CFURLGetByteRangeForComponent(CFURLRef reference, CFURLComponentType component, CFRange *rangeIncludingSeparators)
{
    const struct url *url = url_of(reference, "CFURLGetByteRangeForComponent");
    CFRange part = range_of_component(url, component);

    if (rangeIncludingSeparators != NULL) {
        *rangeIncludingSeparators =
            url_part_is_missing(part) ? CFRangeMake(place_of_missing(url, component), 0) : with_separators(url, component, part);
    }
    return part;
}
