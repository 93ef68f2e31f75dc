/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Type ids, descriptions, equality, contexts and ownership: rules 183 to 188. The text of a description is not part of the API; what is
 * checked is that it names what a reader needs.
 */
#include <stdio.h>
#include <string.h>

#include "Loop/loop_trace.h"

static void describe(CFTypeRef object, char *buffer, size_t size)
{
    CFStringRef description = CFCopyDescription(object);
    buffer[0] = '\0';
    EXPECT(description != NULL);
    EXPECT(CFStringGetCString(description, buffer, (CFIndex)size, kCFStringEncodingUTF8));
    CFRelease(description);
}

TEST(each_class_has_its_type_id, "183")
{
    static struct probe probe = PROBE("A", NULL);
    CFTypeRef objects[] = {LOOP, probe_source(&probe, 0), probe_timer(&probe, 100, 0), probe_observer(&probe, kCFRunLoopEntry, true, 0)};
    const CFTypeID types[] = {CFRunLoopGetTypeID(), CFRunLoopSourceGetTypeID(), CFRunLoopTimerGetTypeID(), CFRunLoopObserverGetTypeID()};
    for (int i = 0; i < 4; i++) {
        EXPECT(types[i] != 0);
        EXPECT_EQ(CFGetTypeID(objects[i]), types[i]);
        for (int j = 0; j < i; j++) {
            EXPECT(types[i] != types[j]);
        }
        EXPECT(types[i] != CFStringGetTypeID());
    }
    for (int i = 1; i < 4; i++) {
        CFRelease(objects[i]);
    }
}

static CFStringRef describes_info(const void *info)
{
    return CFStringCreateWithCString(NULL, info, kCFStringEncodingUTF8);
}

TEST(a_description_contains_the_contexts_own, "184")
{
    static char info[] = "<what the context says>";
    char text[2048];
    CFRunLoopSourceContext source = {.info = info, .copyDescription = describes_info};
    CFRunLoopSourceContext1 port = {.version = 1, .info = info, .copyDescription = describes_info};
    CFRunLoopTimerContext timer = {.info = info, .copyDescription = describes_info};
    CFRunLoopObserverContext observer = {.info = info, .copyDescription = describes_info};
    CFTypeRef objects[] = {CFRunLoopSourceCreate(NULL, 7654, &source),
                           CFRunLoopSourceCreate(NULL, 7654, (CFRunLoopSourceContext *)(void *)&port),
                           CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 100, 0, 0, 7654, NULL, &timer),
                           CFRunLoopObserverCreate(NULL, kCFRunLoopEntry, true, 7654, NULL, &observer)};
    for (int i = 0; i < 4; i++) {
        describe(objects[i], text, sizeof text);
        EXPECT(strstr(text, info) != NULL);
        EXPECT(strstr(text, "7654") != NULL);
        char valid[2048];
        memcpy(valid, text, sizeof text);
        if (CFGetTypeID(objects[i]) == CFRunLoopSourceGetTypeID()) {
            CFRunLoopSourceInvalidate((CFRunLoopSourceRef)(uintptr_t)objects[i]);
        } else if (CFGetTypeID(objects[i]) == CFRunLoopTimerGetTypeID()) {
            CFRunLoopTimerInvalidate((CFRunLoopTimerRef)(uintptr_t)objects[i]);
        } else {
            CFRunLoopObserverInvalidate((CFRunLoopObserverRef)(uintptr_t)objects[i]);
        }
        describe(objects[i], text, sizeof text);
        EXPECT(strcmp(valid, text) != 0); /* validity is told */
        CFRelease(objects[i]);
    }
}

TEST(a_generated_description_has_the_info_pointer, "184")
{
    static int info;
    char text[2048];
    char pointer[64];
    CFRunLoopSourceContext source = {.info = &info};
    CFRunLoopSourceRef a = CFRunLoopSourceCreate(NULL, 0, &source);
    describe(a, text, sizeof text);
    snprintf(pointer, sizeof pointer, "%p", (void *)&info);
    EXPECT(strstr(text, pointer) != NULL);
    CFRelease(a);
    CFRunLoopTimerRef t = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 100, 0, 0, 0, NULL, NULL);
    describe(t, text, sizeof text);
    EXPECT(text[0] != '\0');
    CFRelease(t);
}

TEST(a_loop_describes_its_modes, "184")
{
    static struct probe probe = PROBE("A", NULL);
    char text[8192];
    probe_source_add(&probe, 0, LOOP, CFSTR("an unlikely mode"));
    describe(LOOP, text, sizeof text);
    EXPECT(strstr(text, "an unlikely mode") != NULL);
}

TEST(loops_timers_and_observers_are_equal_by_identity, "185")
{
    CFAbsoluteTime date = CFAbsoluteTimeGetCurrent() + 100;
    CFRunLoopTimerRef t = CFRunLoopTimerCreate(NULL, date, 0, 0, 0, NULL, NULL);
    CFRunLoopTimerRef u = CFRunLoopTimerCreate(NULL, date, 0, 0, 0, NULL, NULL);
    CFRunLoopObserverRef o = CFRunLoopObserverCreate(NULL, kCFRunLoopEntry, true, 0, NULL, NULL);
    CFRunLoopObserverRef p = CFRunLoopObserverCreate(NULL, kCFRunLoopEntry, true, 0, NULL, NULL);
    EXPECT(CFEqual(t, t));
    EXPECT(!CFEqual(t, u));
    EXPECT(CFHash(t) == CFHash(t));
    EXPECT(CFEqual(o, o));
    EXPECT(!CFEqual(o, p));
    EXPECT(CFEqual(LOOP, CFRunLoopGetMain()));
    CFRelease(t);
    CFRelease(u);
    CFRelease(o);
    CFRelease(p);
}

TEST(contexts_are_copied_with_the_retained_info, "186")
{
    static struct probe probe = PROBE("A", NULL);
    CFRunLoopTimerRef t = probe_timer(&probe, 100, 0);
    CFRunLoopObserverRef o = probe_observer(&probe, kCFRunLoopEntry, true, 0);
    for (CFIndex version = 0; version <= 5; version += 5) { /* what is not 0 is made 0 */
        CFRunLoopTimerContext timer = {.version = version};
        CFRunLoopObserverContext observer = {.version = version};
        CFRunLoopTimerGetContext(t, &timer);
        CFRunLoopObserverGetContext(o, &observer);
        EXPECT(timer.version == 0 && timer.info == &probe && timer.retain != NULL && timer.release != NULL);
        EXPECT(observer.version == 0 && observer.info == &probe && observer.retain != NULL && observer.release != NULL);
    }
    EXPECT_STOPS("CFRunLoopTimerGetContext", { CFRunLoopTimerGetContext(t, NULL); });
    EXPECT_STOPS("CFRunLoopObserverGetContext", { CFRunLoopObserverGetContext(o, NULL); });
    CFRelease(t);
    CFRelease(o);
}

TEST(created_and_copied_objects_are_owned, "187 188")
{
    static struct probe probe = PROBE("A", NULL);
    CFRunLoopSourceRef a = probe_source(&probe, 0);
    CFRunLoopTimerRef t = probe_timer(&probe, 100, 0);
    CFRunLoopObserverRef o = probe_observer(&probe, kCFRunLoopEntry, true, 0);
    CFArrayRef modes = CFRunLoopCopyAllModes(LOOP);
    EXPECT_EQ(CFGetRetainCount(a), 1);
    EXPECT_EQ(CFGetRetainCount(t), 1);
    EXPECT_EQ(CFGetRetainCount(o), 1);
    EXPECT_EQ(CFGetRetainCount(modes), 1);
    CFRunLoopAddSource(LOOP, a, MODE);
    CFRunLoopAddTimer(LOOP, t, MODE);
    CFRunLoopAddObserver(LOOP, o, MODE);
    CFRunLoopSourceInvalidate(a);
    CFRunLoopTimerInvalidate(t);
    CFRunLoopObserverInvalidate(o);
    EXPECT_EQ(CFGetRetainCount(a), 1);
    EXPECT_EQ(CFGetRetainCount(t), 1);
    EXPECT_EQ(CFGetRetainCount(o), 1);
    CFRelease(a);
    CFRelease(t);
    CFRelease(o);
    CFRelease(modes);
}
