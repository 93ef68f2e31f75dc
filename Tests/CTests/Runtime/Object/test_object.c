/* SPDX-License-Identifier: Apache-2.0 */
/* What all objects have in common: counting, immortality, the sentence for a release too many, dispatch to the class, the pools. */
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/Object/autorelease.h"
#include "Runtime/Object/object.h"
#include "harness.h"

struct counter {
    struct object object;
    int *finalized;
};

static void note_finalized(CFTypeRef object)
{
    const struct counter *counter = object;
    /* A finalizer may use the object as long as it gives back what it takes. */
    CFRetain(object);
    CFRelease(object);
    ++*counter->finalized;
}

static const struct object_class counter_class = {.type_id = object_type_count, .name = "Counter", .finalize = note_finalized};

static struct counter *counter_create(int *finalized)
{
    struct counter *counter = object_create(NULL, &counter_class, sizeof *counter);
    REQUIRE(counter != NULL);
    counter->finalized = finalized;
    return counter;
}

TEST(an_object_is_finalized_once_when_its_last_reference_goes, "")
{
    int finalized = 0;
    struct counter *counter = counter_create(&finalized);
    long live = object_live_count();
    EXPECT_EQ(CFGetRetainCount(counter), 1);
    EXPECT(CFRetain(counter) == counter);
    EXPECT_EQ(CFGetRetainCount(counter), 2);
    CFRelease(counter);
    EXPECT_EQ(finalized, 0);
    CFRelease(counter);
    EXPECT_EQ(finalized, 1);
    EXPECT_EQ(object_live_count(), live - 1);
}

TEST(new_objects_are_zeroed_and_aligned, "")
{
    struct large {
        struct object object;
        unsigned char bytes[1000];
    };
    static const struct object_class large_class = {.type_id = object_type_count, .name = "Large"};
    struct large *large = object_create(kCFAllocatorMalloc, &large_class, sizeof *large);
    EXPECT_EQ((uintptr_t)large % _Alignof(max_align_t), 0);
    EXPECT_EQ(large->object.info, 0);
    int sum = 0;
    for (size_t i = 0; i < sizeof large->bytes; i++) {
        sum |= large->bytes[i];
    }
    EXPECT_EQ(sum, 0);
    EXPECT(CFGetAllocator(large) == kCFAllocatorMalloc);
    CFRelease(large);
    EXPECT(object_create(NULL, &counter_class, SIZE_MAX) == NULL);
}

static const void *immortals(int index)
{
    const void *all[] = {kCFNull, kCFBooleanTrue, kCFBooleanFalse, kCFAllocatorSystemDefault, CFSTR("literal"), L"\1wide"};
    return index < (int)(sizeof all / sizeof all[0]) ? all[index] : NULL;
}

TEST(constants_and_literals_are_never_counted, "")
{
    for (int i = 0; immortals(i) != NULL; i++) {
        CFTypeRef object = immortals(i);
        EXPECT_EQ(CFGetRetainCount(object), LONG_MAX);
        CFRetain(object);
        CFRelease(object);
        CFRelease(object);
        CFRelease(object);
        EXPECT_EQ(CFGetRetainCount(object), LONG_MAX);
        EXPECT(CFGetAllocator(object) == kCFAllocatorSystemDefault);
    }
}

TEST(an_object_made_immortal_survives_all_releases, "")
{
    int finalized = 0;
    struct counter *counter = counter_create(&finalized);
    object_make_immortal(counter);
    CFRelease(counter);
    CFRelease(counter);
    EXPECT_EQ(finalized, 0);
    object_discard_immortal(counter);
    EXPECT_EQ(finalized, 1);
}

static int owner_count;

static void owner_retain(void *owner)
{
    EXPECT(owner == &owner_count);
    ++owner_count;
}

static void owner_release(void *owner)
{
    EXPECT(owner == &owner_count);
    --owner_count;
}

TEST(an_owned_object_is_counted_by_its_owner, "")
{
    static const struct object_owner_class owner_class = {.retain = owner_retain, .release = owner_release};
    int finalized = 0;
    struct counter *counter = counter_create(&finalized);
    CFRetain(counter);
    EXPECT(!object_is_owned(counter));

    /* One of the two references is the owner's own, and is not counted. */
    owner_count = 1;
    object_give_to_owner(counter, &owner_count, &owner_class);
    EXPECT(object_is_owned(counter));
    EXPECT_EQ(owner_count, 2);
    EXPECT_EQ(CFGetRetainCount(counter), 1);
    CFRetain(counter);
    EXPECT_EQ(owner_count, 3);
    CFRelease(counter);
    CFRelease(counter);
    EXPECT_EQ(owner_count, 1);
    EXPECT_EQ(finalized, 0);

    object_take_from_owner(counter);
    EXPECT(!object_is_owned(counter));
    CFRelease(counter);
    EXPECT_EQ(finalized, 1);
    EXPECT_EQ(owner_count, 1);
}

TEST(null_stops_with_a_sentence_that_names_the_function, "")
{
    EXPECT_STOPS("CoreRunLoop: CFRelease: the object is NULL\n", { CFRelease(NULL); });
    EXPECT_STOPS("CFRetain: the object is NULL", { CFRetain(NULL); });
    EXPECT_STOPS("CFGetRetainCount: the object is NULL", { CFGetRetainCount(NULL); });
    EXPECT_STOPS("CFGetTypeID: the object is NULL", { CFGetTypeID(NULL); });
    EXPECT_STOPS("CFEqual: the object is NULL", { CFEqual(kCFNull, NULL); });
    EXPECT_STOPS("CFHash: the object is NULL", { CFHash(NULL); });
    EXPECT_STOPS("CFAutorelease: the object is NULL", { CFAutorelease(NULL); });
    EXPECT(CFCopyDescription(NULL) == NULL);
    EXPECT(CFMakeCollectable(NULL) == NULL);
    EXPECT(CFGetAllocator(NULL) == kCFAllocatorSystemDefault);
}

static void *keep_allocate(CFIndex size, CFOptionFlags hint, void *info)
{
    static _Alignas(16) char memory[1024];
    (void)hint;
    (void)info;
    return (size_t)size <= sizeof memory ? memory : NULL;
}

/* An allocator that never frees, so that a freed object can be looked at under sanitizers too. */
static CFAllocatorRef keeping_allocator(void)
{
    CFAllocatorContext context = {.allocate = keep_allocate};
    return CFAllocatorCreate(NULL, &context);
}

TEST(a_release_too_many_stops_with_a_sentence_that_names_the_type, "")
{
    CFAllocatorRef allocator = keeping_allocator();
    CFDataRef data = CFDataCreate(allocator, NULL, 0);
    CFRelease(data);
    EXPECT_STOPS("CFRelease: this CFData has already been freed", { CFRelease(data); });
    EXPECT_STOPS("CFRetain: this CFData has already been freed", { CFRetain(data); });
    CFRelease(allocator);
}

static void release_itself(CFTypeRef object)
{
    CFRelease(object);
}

static void retain_itself(CFTypeRef object)
{
    CFRetain(object);
}

TEST(a_finalizer_out_of_balance_stops_with_a_sentence, "")
{
    static const struct object_class releasing = {.type_id = object_type_count, .name = "Releasing", .finalize = release_itself};
    static const struct object_class retaining = {.type_id = object_type_count, .name = "Retaining", .finalize = retain_itself};
    EXPECT_STOPS("CFRelease: this Releasing is being freed, and was released once too often",
                 { CFRelease(object_create(NULL, &releasing, sizeof(struct object))); });
    EXPECT_STOPS("CFRelease: this Retaining was retained while it was being freed",
                 { CFRelease(object_create(NULL, &retaining, sizeof(struct object))); });
}

TEST(a_count_that_cannot_be_true_stops_with_a_sentence, "")
{
    int finalized = 0;
    struct counter *counter = counter_create(&finalized);
    EXPECT_STOPS("CFRetain: this Counter has too many references, or its memory was overwritten", {
        atomic_store(&counter->object.count, 0x7FFFFFFF);
        CFRetain(counter);
    });
    CFRelease(counter);
}

TEST(a_pointer_to_zeros_is_not_an_object, "")
{
    static const struct object nothing;
    EXPECT_STOPS("CFGetTypeID: the pointer does not point to an object", { CFGetTypeID(&nothing); });
}

TEST(an_object_of_another_type_is_refused_by_name, "")
{
    EXPECT_STOPS("CFArrayGetCount: the array is NULL", { CFArrayGetCount(NULL); });
    EXPECT_STOPS("CFArrayGetCount: the array is a CFNull", { CFArrayGetCount((CFArrayRef)(const void *)kCFNull); });
    EXPECT_STOPS("CFDataGetLength: the data is a CFString", { CFDataGetLength((CFDataRef)(const void *)CFSTR("text")); });
}

TEST(types_have_numbers_and_names, "")
{
    struct {
        CFTypeID number;
        const char *name;
    } types[] = {
        {CFAllocatorGetTypeID(), "CFAllocator"},
        {CFNullGetTypeID(), "CFNull"},
        {CFBooleanGetTypeID(), "CFBoolean"},
        {CFNumberGetTypeID(), "CFNumber"},
        {CFStringGetTypeID(), "CFString"},
        {CFDataGetTypeID(), "CFData"},
        {CFDateGetTypeID(), "CFDate"},
        {CFArrayGetTypeID(), "CFArray"},
        {CFDictionaryGetTypeID(), "CFDictionary"},
        {CFSetGetTypeID(), "CFSet"},
        {object_type_run_loop_timer, "CFRunLoopTimer"},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        CFStringRef name = CFCopyTypeIDDescription(types[i].number);
        EXPECT_STR(CFStringGetCStringPtr(name, kCFStringEncodingUTF8), types[i].name);
        CFRelease(name);
        for (size_t j = 0; j < i; j++) {
            EXPECT(types[i].number != types[j].number);
        }
    }
    EXPECT(CFCopyTypeIDDescription(0) == NULL);
    EXPECT(CFCopyTypeIDDescription(object_type_count) == NULL);
    EXPECT(CFCopyTypeIDDescription((CFTypeID)-1) == NULL);
    EXPECT(kCFCoreFoundationVersionNumber >= kCFCoreFoundationVersionNumber10_9);
}

TEST(objects_without_a_value_are_equal_to_themselves_only, "")
{
    int finalized = 0;
    struct counter *one = counter_create(&finalized);
    struct counter *other = counter_create(&finalized);
    EXPECT(CFEqual(one, one));
    EXPECT(!CFEqual(one, other));
    EXPECT(CFHash(one) != CFHash(other));
    EXPECT(!CFEqual(kCFNull, kCFBooleanTrue));
    EXPECT(CFEqual(kCFNull, kCFNull));
    EXPECT(CFMakeCollectable(one) == one);
    CFRelease(one);
    CFRelease(other);
}

static void expect_description(CFTypeRef object, const char *fragment)
{
    CFStringRef words = CFCopyDescription(object);
    CFStringRef wanted = CFStringCreateWithCString(NULL, fragment, kCFStringEncodingUTF8);
    if (CFStringFind(words, wanted, 0).location == kCFNotFound) {
        CFShow(words);
        EXPECT_STR("the description above", fragment);
    }
    CFRelease(words);
    CFRelease(wanted);
}

TEST(every_object_can_be_described, "")
{
    int finalized = 0;
    struct counter *counter = counter_create(&finalized);
    expect_description(counter, "<Counter 0x");
    expect_description(kCFNull, "<null>");
    expect_description(kCFBooleanTrue, "{value = true}");
    expect_description(CFSTR("some text"), "{contents = \"some text\"}");
    CFStringRef text = CFStringCreateWithFormat(NULL, NULL, CFSTR("%@|%@|%@|%@"), kCFNull, kCFBooleanFalse, CFSTR("x"), counter);
    EXPECT(CFStringHasPrefix(text, CFSTR("<null>|false|x|<Counter 0x")));
    CFRelease(text);
    CFRelease(counter);
}

TEST(a_collection_that_holds_itself_is_described_once, "")
{
    CFMutableArrayRef array = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    for (int i = 0; i < 20; i++) {
        CFArrayAppendValue(array, array);
    }
    CFStringRef words = CFCopyDescription(array);
    EXPECT(CFStringGetLength(words) < 2000);
    CFRelease(words);
    for (int i = 0; i < 20; i++) {
        CFRelease(array); /* what the array itself retained */
    }
    EXPECT_EQ(CFGetRetainCount(array), 1);
    for (int i = 0; i < 20; i++) {
        CFRetain(array);
    }
    CFArrayRemoveAllValues(array);
    CFRelease(array);
}

TEST(deep_nesting_is_described_to_a_limit, "")
{
    CFArrayRef innermost = CFArrayCreate(NULL, NULL, 0, &kCFTypeArrayCallBacks);
    for (int i = 0; i < 100; i++) {
        const void *values[] = {innermost};
        CFArrayRef outer = CFArrayCreate(NULL, values, 1, &kCFTypeArrayCallBacks);
        CFRelease(innermost);
        innermost = outer;
    }
    CFStringRef words = CFCopyDescription(innermost);
    EXPECT(words != NULL && CFStringGetLength(words) < 10000);
    CFRelease(words);
    CFRelease(innermost);
}

TEST(lent_objects_live_until_the_pool_is_drained, "187c")
{
    int finalized = 0;
    for (int i = 0; i < 100; i++) {
        struct counter *counter = counter_create(&finalized);
        EXPECT(CFAutorelease(counter) == counter);
    }
    EXPECT_EQ(finalized, 0);
    autorelease_drain();
    EXPECT_EQ(finalized, 100);
    autorelease_drain();
    EXPECT_EQ(finalized, 100);
}

static void lend_again(CFTypeRef object)
{
    static int lent;
    (void)object;
    if (lent++ == 0) {
        static const struct object_class last = {.type_id = object_type_count, .name = "Last"};
        CFAutorelease(object_create(NULL, &last, sizeof(struct object)));
    }
}

TEST(what_a_finalizer_lends_goes_in_the_same_drain, "")
{
    static const struct object_class lending = {.type_id = object_type_count, .name = "Lending", .finalize = lend_again};
    long live = object_live_count();
    CFAutorelease(object_create(NULL, &lending, sizeof(struct object)));
    autorelease_drain();
    EXPECT_EQ(object_live_count(), live);
}

static void *lend_and_end(void *finalized)
{
    CFAutorelease(counter_create(finalized));
    CFAutorelease(counter_create(finalized));
    return NULL;
}

TEST(a_threads_end_drains_its_pool, "187c")
{
    int finalized = 0;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, lend_and_end, &finalized) == 0);
    pthread_join(thread, NULL);
    EXPECT_EQ(finalized, 2);
}

enum { sharing_threads = 4, sharing_rounds = 20000 };

static void *retain_and_release(void *object)
{
    for (int i = 0; i < sharing_rounds; i++) {
        CFRetain(object);
        CFRelease(object);
    }
    CFRelease(object);
    return NULL;
}

TEST(counting_is_atomic, "")
{
    int finalized = 0;
    struct counter *counter = counter_create(&finalized);
    pthread_t threads[sharing_threads];
    for (int i = 0; i < sharing_threads; i++) {
        CFRetain(counter);
        REQUIRE(pthread_create(&threads[i], NULL, retain_and_release, counter) == 0);
    }
    CFRelease(counter);
    for (int i = 0; i < sharing_threads; i++) {
        pthread_join(threads[i], NULL);
    }
    EXPECT_EQ(finalized, 1);
}
