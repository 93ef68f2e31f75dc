/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the objects of URLs. */
#include "Runtime/URL/url.h"

#include "Runtime/Object/allocator.h"
#include "Runtime/Text/string_storage.h"
#include "Runtime/URL/url_bytes.h"
#include "Runtime/URL/url_resolve.h"

static void finalize(CFTypeRef object)
{
    const struct url *url = object;

    object_release_if_any(url->string);
    object_release_if_any(url->given);
    object_release_if_any(url->base);
}

static Boolean equal(CFTypeRef one, CFTypeRef other)
{
    const struct url *url1 = one;
    const struct url *url2 = other;

    if (!CFEqual(url1->string, url2->string) || (url1->base == NULL) != (url2->base == NULL)) {
        return false;
    }
    return url1->base == NULL || CFEqual(url1->base, url2->base);
}

static CFHashCode hash(CFTypeRef object)
{
    return CFHash(((const struct url *)object)->string);
}

/* For %@: the string, and behind two hyphens that of the base. */
static CFStringRef copy_text(CFTypeRef object)
{
    const struct url *url = object;

    return url->base == NULL ? CFStringCreateCopy(NULL, url->string)
                             : CFStringCreateWithFormat(NULL, NULL, CFSTR("%@ -- %@"), url->string, url->base->string);
}

static CFStringRef copy_description(CFTypeRef object)
{
    const struct url *url = object;

    if (url->base == NULL) {
        return CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFURL %p>{string = %@, encoding = %u, base = (null)}"), object, url->string,
                                        (unsigned)url->encoding);
    }
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFURL %p>{string = %@, encoding = %u, base = %@}"), object, url->string,
                                    (unsigned)url->encoding, url->base->string);
}

static const struct object_class url_class = {
    .type_id = object_type_url,
    .name = "CFURL",
    .finalize = finalize,
    .equal = equal,
    .hash = hash,
    .copy_description = copy_description,
    .copy_text = copy_text,
};

const struct url *url_of(CFURLRef reference, const char *function)
{
    object_check(reference, &url_class, function, "URL");
    return (const struct url *)(const void *)reference;
}

CFURLRef url_reference(const struct url *url)
{
    return (CFURLRef)(const void *)url;
}

const struct url *url_create(CFAllocatorRef allocator, const char *bytes, CFIndex count, CFStringEncoding encoding, const struct url *base,
                             CFDataRef given)
{
    struct url *url = object_create(allocator, &url_class, sizeof *url);

    if (url == NULL) {
        return NULL;
    }
    struct text text = text_of_ascii(bytes, count);
    url->string = string_create(allocator, &text, CFRangeMake(0, count));
    if (url->string == NULL) {
        object_release(url);
        return NULL;
    }
    url->bytes = CFStringGetCStringPtr(url->string, kCFStringEncodingASCII);
    url->count = count;
    url->encoding = encoding;
    url->given = given != NULL ? CFRetain(given) : NULL;
    url_parts_find(url->bytes, count, &url->parts);
    if (base != NULL && url_part_is_missing(url->parts.scheme)) {
        url->base = url_copy_absolute(allocator, base);
        if (url->base == NULL) {
            object_release(url);
            return NULL;
        }
    }
    return url;
}

const struct url *url_copy_absolute(CFAllocatorRef allocator, const struct url *url)
{
    if (url->base == NULL) {
        object_retain(url);
        return url;
    }
    const struct url_view base = {.bytes = url->base->bytes, .count = url->base->count, .parts = &url->base->parts};
    const struct url_view reference = {.bytes = url->bytes, .count = url->count, .parts = &url->parts};
    char *bytes = allocator_allocate(kCFAllocatorSystemDefault, (size_t)(base.count + reference.count + url_resolve_extra));
    if (bytes == NULL) {
        return NULL;
    }
    CFIndex count = url_resolve(&base, &reference, bytes);
    const struct url *absolute = url_create(allocator, bytes, count, url->encoding, NULL, NULL);
    allocator_deallocate(kCFAllocatorSystemDefault, bytes);
    return absolute;
}

CFStringRef url_copy_part(const struct url *url, CFRange part)
{
    return url_part_is_missing(part) ? NULL : CFStringCreateWithSubstring(NULL, url->string, part);
}

CFStringRef url_copy_text(const struct url *url, CFRange part)
{
    if (url_part_is_missing(part)) {
        return NULL;
    }
    uint8_t *bytes = allocator_allocate(kCFAllocatorSystemDefault, (size_t)part.length + 1);
    if (bytes == NULL) {
        return NULL;
    }
    CFIndex count = url_write_unescaped(url->bytes + part.location, part.length, bytes);
    CFStringRef text = string_create_decoded(NULL, bytes, (size_t)count, url->encoding, false);
    allocator_deallocate(kCFAllocatorSystemDefault, bytes);
    return text;
}
