/* SPDX-License-Identifier: Apache-2.0 */
/* Types, descriptions, equality, contexts and ownership: rules 183 to 187, and 139. */
#define CONFORMANCE_GROUP "objects"
#include "conformance.h"

#include <string.h>

#define MODE kCFRunLoopDefaultMode
#define LOOP CFRunLoopGetCurrent()

CASE(type_identifiers, "183", on_thread)
{
    static struct probe source = PROBE("A", NULL);
    static struct probe timer = PROBE("T", NULL);
    static struct probe observer = PROBE("O", NULL);
    CFTypeRef objects[] = {LOOP, probe_source(&source, 0), probe_timer(&timer, 100, 0),
                           probe_observer(&observer, kCFRunLoopEntry, true, 0)};
    const CFTypeID types[] = {CFRunLoopGetTypeID(), CFRunLoopSourceGetTypeID(), CFRunLoopTimerGetTypeID(), CFRunLoopObserverGetTypeID()};
    for (int i = 0; i < 4; i++) {
        bool distinct = types[i] != 0;
        for (int j = 0; j < i; j++) {
            distinct = distinct && types[i] != types[j];
        }
        probe_note_bool("distinct", distinct);
        probe_note_bool("own", CFGetTypeID(objects[i]) == types[i]);
    }
}

static Boolean letters_are_equal(const void *value1, const void *value2)
{
    return ((uintptr_t)value1 & 0xF) == ((uintptr_t)value2 & 0xF);
}

static CFHashCode hash_letter(const void *value)
{
    return (uintptr_t)value & 0xF;
}

static void note_pairs(CFDictionaryRef dictionary)
{
    const void *key = NULL;
    const void *value = NULL;
    CFDictionaryGetKeysAndValues(dictionary, &key, &value);
    probe_note("%lx=%lx", (unsigned long)(uintptr_t)key, (unsigned long)(uintptr_t)value);
}

CASE(a_key_that_is_set_again_takes_the_place_of_its_equal, "", on_thread)
{
    const CFDictionaryKeyCallBacks keys = {.equal = letters_are_equal, .hash = hash_letter};
    CFMutableDictionaryRef dictionary = CFDictionaryCreateMutable(NULL, 0, &keys, NULL);
    CFDictionaryAddValue(dictionary, (const void *)0x1A, (const void *)1);
    CFDictionaryAddValue(dictionary, (const void *)0x2A, (const void *)2);
    note_pairs(dictionary);
    CFDictionarySetValue(dictionary, (const void *)0x3A, (const void *)3);
    note_pairs(dictionary);
    CFDictionaryReplaceValue(dictionary, (const void *)0x4A, (const void *)4);
    note_pairs(dictionary);
    CFRelease(dictionary);
}

CASE(a_copy_of_data_outlives_bytes_that_were_lent, "", on_thread)
{
    UInt8 bytes[] = "abc";
    CFDataRef lent = CFDataCreateWithBytesNoCopy(NULL, bytes, 3, kCFAllocatorNull);
    CFDataRef copy = CFDataCreateCopy(NULL, lent);
    CFRelease(lent);
    bytes[0] = 'x';
    probe_note("%.3s", (const char *)CFDataGetBytePtr(copy));
    CFRelease(copy);
}

CASE(escapes_and_the_order_of_bytes, "", on_thread)
{
    const UniChar characters[] = {0, 1, '\t', '\n', '\r', 0x1B, ' ', '~', '\\', 0x7F, 0xE9, 0x20AC};
    const UInt8 big_endian[] = {0, 0, 0, 'a', 0, 0, 0, 'b'};
    UInt8 bytes[100];
    CFIndex used = 0;
    CFStringRef text = CFStringCreateWithCharacters(NULL, characters, 12);
    CFStringGetBytes(text, CFRangeMake(0, 12), kCFStringEncodingNonLossyASCII, 0, false, bytes, sizeof bytes, &used);
    for (CFIndex i = 0; i < used; i++) {
        probe_note("%02x", bytes[i]);
    }
    CFRelease(text);
    text = CFStringCreateWithBytes(NULL, big_endian, sizeof big_endian, kCFStringEncodingUTF32, true);
    probe_note_string("text", text);
    CFRelease(text);
}

static CFStringRef describes(const void *info)
{
    (void)info;
    return CFStringCreateWithCString(NULL, "<what the context says>", kCFStringEncodingUTF8);
}

static void note_description(CFTypeRef object)
{
    char text[1024] = "";
    CFStringRef description = CFCopyDescription(object);
    CFStringGetCString(description, text, sizeof text, kCFStringEncodingUTF8);
    probe_note_bool("described", strstr(text, "<what the context says>") != NULL);
    CFRelease(description);
}

CASE(descriptions_use_the_context, "184", on_thread)
{
    CFRunLoopSourceContext source = {.copyDescription = describes};
    CFRunLoopTimerContext timer = {.copyDescription = describes};
    CFRunLoopObserverContext observer = {.copyDescription = describes};
    note_description(CFRunLoopSourceCreate(NULL, 0, &source));
    note_description(CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 100, 0, 0, 0, NULL, &timer));
    note_description(CFRunLoopObserverCreate(NULL, kCFRunLoopEntry, true, 0, NULL, &observer));
}

CASE(identity_of_timers_and_observers, "185", on_thread)
{
    CFAbsoluteTime date = CFAbsoluteTimeGetCurrent() + 100;
    CFRunLoopTimerRef t = CFRunLoopTimerCreate(NULL, date, 0, 0, 0, NULL, NULL);
    CFRunLoopTimerRef u = CFRunLoopTimerCreate(NULL, date, 0, 0, 0, NULL, NULL);
    CFRunLoopObserverRef o = CFRunLoopObserverCreate(NULL, kCFRunLoopEntry, true, 0, NULL, NULL);
    CFRunLoopObserverRef p = CFRunLoopObserverCreate(NULL, kCFRunLoopEntry, true, 0, NULL, NULL);
    probe_note_bool("timer", CFEqual(t, t));
    probe_note_bool("timers", CFEqual(t, u));
    probe_note_bool("observer", CFEqual(o, o));
    probe_note_bool("observers", CFEqual(o, p));
    probe_note_bool("loop", CFEqual(LOOP, LOOP));
    probe_note_bool("loops", CFEqual(LOOP, CFRunLoopGetMain()));
}

static const void *retains_another(const void *info)
{
    return (const char *)info + 1;
}

CASE(contexts_are_copied_with_the_retained_info, "186", on_thread)
{
    static char infos[2];
    CFRunLoopTimerContext timer = {.info = infos, .retain = retains_another};
    CFRunLoopObserverContext observer = {.info = infos, .retain = retains_another};
    CFRunLoopTimerRef t = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 100, 0, 0, 0, NULL, &timer);
    CFRunLoopObserverRef o = CFRunLoopObserverCreate(NULL, kCFRunLoopEntry, true, 0, NULL, &observer);
    memset(&timer, 0, sizeof timer);
    memset(&observer, 0, sizeof observer);
    CFRunLoopTimerGetContext(t, &timer);
    CFRunLoopObserverGetContext(o, &observer);
    probe_note_bool("timer", timer.info == infos + 1 && timer.retain == retains_another);
    probe_note_bool("observer", observer.info == infos + 1 && observer.retain == retains_another);
}

CASE(copies_are_owned_and_gets_are_not, "2 187", on_thread)
{
    static struct probe idle = PROBE("idle", NULL);
    probe_source_add(&idle, 0, LOOP, MODE);
    for (int i = 0; i < 100; i++) {
        CFArrayRef modes = CFRunLoopCopyAllModes(LOOP);
        CFRelease(modes);
        CFStringRef mode = CFRunLoopCopyCurrentMode(LOOP);
        probe_note_bool("current", mode != NULL);
        say_nothing_of_that();
    }
    CFRetain(LOOP);
    CFRelease(LOOP);
    probe_run(MODE, 0, false);
}

CASE(numbers_have_one_order, "", on_thread)
{
    const double values[] = {-1, -0.0, 0.0, 1, (double)NAN, (double)INFINITY, -(double)INFINITY};
    enum { doubles = sizeof values / sizeof values[0], count = doubles + 1 };
    int zero = 0;
    CFNumberRef numbers[count];

    for (int i = 0; i < doubles; i++) {
        numbers[i] = CFNumberCreate(NULL, kCFNumberDoubleType, &values[i]);
    }
    numbers[doubles] = CFNumberCreate(NULL, kCFNumberIntType, &zero);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            probe_note("%d", (int)CFNumberCompare(numbers[i], numbers[j], NULL));
        }
    }
}

CASE(a_c_string_that_does_not_fit_is_empty, "", on_thread)
{
    for (int size = 1; size < 6; size++) {
        char buffer[8] = "#######";
        probe_note_bool("fits", CFStringGetCString(CFSTR("abcd"), buffer, size, kCFStringEncodingASCII));
        probe_note_bool("empty", buffer[0] == '\0');
    }
}
