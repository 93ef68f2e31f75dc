/* SPDX-License-Identifier: Apache-2.0 */
/* This library's side of the two loops of a thread: Foundation's loop is the companion of its loops. */

#include "foundation_loop.h"

#include <stdlib.h>
#include <string.h>

#include "CoreFoundation/CFRunLoop.h"
#include "CoreFoundation/CFString.h"
#include "Overlay/overlay.h"

enum { short_size = 128 };

/* Returns the text of a mode, in `short_text` if it fits there; otherwise the caller frees it. NULL without memory. */
static char *mode_text(CFStringRef mode, char *short_text)
{
    CFIndex size = CFStringGetMaximumSizeForEncoding(CFStringGetLength(mode), kCFStringEncodingUTF8) + 1;
    char *text;

    if (CFStringGetCString(mode, short_text, short_size, kCFStringEncodingUTF8)) {
        return short_text;
    }
    text = malloc((size_t)size);
    if (text && !CFStringGetCString(mode, text, size, kCFStringEncodingUTF8)) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Calls `use` with the text of a mode. Without memory it does nothing and returns false. */
static bool with_text(CFRunLoopMode mode, bool (*use)(const char *text, int descriptor, bool ends_after_source, bool ends_when_empty),
                      int descriptor, bool ends_after_source, bool ends_when_empty)
{
    char short_text[short_size];
    char *text;
    bool result = false;

    if (mode == kCFRunLoopDefaultMode) {
        return use(foundation_default_mode, descriptor, ends_after_source, ends_when_empty);
    }
    text = mode_text(mode, short_text);
    if (text) {
        result = use(text, descriptor, ends_after_source, ends_when_empty);
    }
    if (text != short_text) {
        free(text);
    }
    return result;
}

static bool serve(CFRunLoopMode mode, int descriptor, bool ends_after_source, bool ends_when_empty)
{
    return with_text(mode, foundation_loop_serve, descriptor, ends_after_source, ends_when_empty);
}

static bool has_items(const char *text, int descriptor, bool ends_after_source, bool ends_when_empty)
{
    (void)descriptor;
    (void)ends_after_source;
    (void)ends_when_empty;
    return !foundation_loop_is_empty(text);
}

static bool is_empty(CFRunLoopMode mode)
{
    return !with_text(mode, has_items, -1, false, false);
}

static const struct companion foundation = {
    .exists = foundation_loop_exists, .join = foundation_loop_join, .serve = serve, .is_empty = is_empty};

void library_loop_set_companion(bool is_joined)
{
    overlay_set_companion(is_joined ? &foundation : NULL);
}

void library_loop_gain_companion(bool is_main)
{
    overlay_companion_appears(is_main);
}

bool library_loop_exists(void)
{
    return overlay_loop_if_any() != NULL;
}

void *library_loop_copy(void)
{
    CFRunLoopRef loop = overlay_loop_if_any();

    return loop ? (void *)CFRetain(loop) : NULL;
}

void library_loop_release(void *loop)
{
    if (loop) {
        CFRelease(loop);
    }
}

void library_loop_each_common_mode(bool is_main, void (*use)(const char *text, void *info), void *info)
{
    CFRunLoopRef loop = is_main ? CFRunLoopGetMain() : overlay_loop_if_any();
    CFStringRef mode;

    if (!loop) {
        use(foundation_default_mode, info);
        return;
    }
    for (CFIndex i = 0; (mode = overlay_copy_common_mode(loop, i)) != NULL; i++) {
        char short_text[short_size];
        char *text = mode_text(mode, short_text);

        if (text) {
            use(text, info);
        }
        if (text != short_text) {
            free(text);
        }
        CFRelease(mode);
    }
}

bool library_loop_stop(void *loop)
{
    return overlay_stop_run(loop);
}

static CFStringRef create_name(const char *text)
{
    return strcmp(text, foundation_default_mode) == 0 ? CFRetain(kCFRunLoopDefaultMode)
                                                      : CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);
}

bool both_are_empty(const char *mode)
{
    CFStringRef name = create_name(mode);
    bool is_empty = !name || overlay_mode_is_empty(overlay_loop_if_any(), name);

    if (name) {
        CFRelease(name);
    }
    return is_empty;
}

int32_t library_loop_run(const char *mode, double seconds, bool returns_after_source)
{
    CFStringRef name = create_name(mode);
    int32_t result = kCFRunLoopRunFinished;

    if (name) {
        result = CFRunLoopRunInMode(name, seconds, returns_after_source);
        CFRelease(name);
    }
    return result;
}
