/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words for an object. Classes bring their own, but for those that strings themselves are made of (allocators, data, strings): these
 * lie below the formatting of strings, so their words stand here.
 *
 * Each thread knows which objects it is describing just now, so that a collection that holds itself comes to an end.
 */
#include "Runtime/Text/description.h"

#include "CoreFoundation/CFData.h"
#include "Runtime/Object/added_types.h"
#include "Runtime/Object/object.h"

enum { description_depth_max = 32, data_shown_max = 24 };

static const char *const type_names[object_type_count] = {
    [object_type_allocator] = "CFAllocator",
    [object_type_null] = "CFNull",
    [object_type_boolean] = "CFBoolean",
    [object_type_number] = "CFNumber",
    [object_type_string] = "CFString",
    [object_type_data] = "CFData",
    [object_type_date] = "CFDate",
    [object_type_array] = "CFArray",
    [object_type_dictionary] = "CFDictionary",
    [object_type_set] = "CFSet",
    [object_type_run_loop] = "CFRunLoop",
    [object_type_run_loop_mode] = "CFRunLoopMode",
    [object_type_run_loop_source] = "CFRunLoopSource",
    [object_type_run_loop_observer] = "CFRunLoopObserver",
    [object_type_run_loop_timer] = "CFRunLoopTimer",
    [object_type_file_descriptor] = "CFFileDescriptor",
    [object_type_socket] = "CFSocket",
    [object_type_message_port] = "CFMessagePort",
    [object_type_mach_port] = "CFMachPort",
    [object_type_uuid] = "CFUUID",
    [object_type_error] = "CFError",
    [object_type_url] = "CFURL",
    [object_type_host] = "CFHost",
    [object_type_read_stream] = "CFReadStream",
    [object_type_write_stream] = "CFWriteStream",
};

static CFStringRef copy_allocator_description(CFTypeRef object)
{
    CFAllocatorContext context = {.version = 0};

    CFAllocatorGetContext((CFAllocatorRef)object, &context);
    CFStringRef info = context.copyDescription != NULL ? context.copyDescription(context.info) : NULL;
    CFStringRef words = info != NULL ? CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFAllocator %p>{info = %@}"), object, info)
                                     : CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFAllocator %p>{info = %p}"), object, context.info);
    object_release_if_any(info);
    return words;
}

static CFStringRef copy_data_description(CFTypeRef object)
{
    static const char digits[] = "0123456789abcdef";
    const UInt8 *bytes = CFDataGetBytePtr(object);
    CFIndex length = CFDataGetLength(object);
    CFIndex shown = length < data_shown_max ? length : data_shown_max;
    char hexadecimal[2 * data_shown_max + 1];

    for (CFIndex i = 0; i < shown; i++) {
        hexadecimal[2 * i] = digits[bytes[i] >> 4];
        hexadecimal[2 * i + 1] = digits[bytes[i] & 15];
    }
    hexadecimal[2 * shown] = '\0';
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFData %p>{length = %ld, bytes = 0x%s%s}"), object, length, hexadecimal,
                                    shown < length ? "..." : "");
}

static CFStringRef copy_string_description(CFTypeRef object)
{
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFString %p>{contents = \"%@\"}"), object, object);
}

typedef CFStringRef (*describing_function)(CFTypeRef object);

static describing_function description_of_class(const struct object_class *isa)
{
    switch (isa->type_id) {
    case object_type_allocator:
        return copy_allocator_description;
    case object_type_data:
        return copy_data_description;
    case object_type_string:
        return copy_string_description;
    default:
        return isa->copy_description;
    }
}

/* The objects that this thread is describing just now, the innermost first. */
struct described {
    CFTypeRef object;
    const struct described *outer;
    int depth;
};

static _Thread_local const struct described *described;

static bool is_being_described(CFTypeRef object)
{
    for (const struct described *each = described; each != NULL; each = each->outer) {
        if (each->object == object) {
            return true;
        }
    }
    return described != NULL && described->depth >= description_depth_max;
}

static CFStringRef copy_words(CFTypeRef object, CFStringRef (*copy)(CFTypeRef), const char *name)
{
    if (copy == NULL || is_being_described(object)) {
        return CFStringCreateWithFormat(NULL, NULL, CFSTR("<%s %p>"), name, object);
    }
    struct described innermost = {.object = object, .outer = described, .depth = described != NULL ? described->depth + 1 : 0};
    described = &innermost;
    CFStringRef words = copy(object);
    described = innermost.outer;
    return words;
}

CFStringRef CFCopyDescription(CFTypeRef object)
{
    if (object == NULL) {
        return NULL;
    }
    const struct object_class *isa = object_class_of(object, "CFCopyDescription");
    return copy_words(object, description_of_class(isa), isa->name);
}

CFStringRef description_copy_text(CFTypeRef object)
{
    const struct object_class *isa = object_class_of(object, "CFStringCreateWithFormat");

    if (isa->type_id == object_type_string) {
        return CFStringCreateCopy(NULL, object);
    }
    return isa->copy_text != NULL ? isa->copy_text(object) : copy_words(object, description_of_class(isa), isa->name);
}

CFStringRef CFCopyTypeIDDescription(CFTypeID type_id)
{
    const char *name = type_id < object_type_count ? type_names[type_id] : added_type_name(type_id);

    return name != NULL ? CFStringCreateWithCString(NULL, name, kCFStringEncodingASCII) : NULL;
}
