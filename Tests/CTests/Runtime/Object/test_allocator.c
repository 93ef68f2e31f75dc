/* SPDX-License-Identifier: Apache-2.0 */
/* Allocators: the built-in ones, a caller's, one that lives in its own memory, and each thread's default. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFString.h"
#include "Runtime/Object/allocator.h"
#include "Runtime/Object/counting_allocator.h"
#include "harness.h"

TEST(the_built_in_allocators_are_immortal_objects_of_one_type, "")
{
    CFAllocatorRef all[] = {kCFAllocatorSystemDefault, kCFAllocatorMalloc, kCFAllocatorMallocZone, kCFAllocatorNull,
                            kCFAllocatorUseContext};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        EXPECT_EQ(CFGetTypeID(all[i]), CFAllocatorGetTypeID());
        CFRelease(all[i]);
        CFRelease(all[i]);
        EXPECT(CFRetain(all[i]) == all[i]);
    }
    EXPECT(kCFAllocatorDefault == NULL);
    EXPECT(CFAllocatorGetDefault() == kCFAllocatorSystemDefault);
}

TEST(memory_of_the_default_allocator_grows_shrinks_and_goes, "")
{
    char *block = CFAllocatorAllocate(NULL, 8, 0);
    REQUIRE(block != NULL);
    memcpy(block, "1234567", 8);
    block = CFAllocatorReallocate(NULL, block, 4000, 0);
    EXPECT_STR(block, "1234567");
    EXPECT(CFAllocatorReallocate(NULL, block, -1, 0) == NULL);
    EXPECT(CFAllocatorReallocate(NULL, block, 0, 0) == NULL);
    block = CFAllocatorReallocate(kCFAllocatorMalloc, NULL, 16, 0);
    EXPECT(block != NULL);
    CFAllocatorDeallocate(kCFAllocatorMalloc, block);
    CFAllocatorDeallocate(NULL, NULL);
    EXPECT_EQ(CFAllocatorGetPreferredSizeForSize(NULL, 100, 0), 100);
}

TEST(sizes_that_no_memory_has_give_null, "")
{
    EXPECT(CFAllocatorAllocate(NULL, 0, 0) == NULL);
    EXPECT(CFAllocatorAllocate(NULL, -5, 0) == NULL);
    EXPECT(CFAllocatorReallocate(NULL, NULL, -5, 0) == NULL);
    EXPECT(allocator_allocate(kCFAllocatorSystemDefault, SIZE_MAX) == NULL);
    EXPECT(allocator_allocate(kCFAllocatorSystemDefault, 0) == NULL);
}

TEST(the_null_allocator_has_no_memory_and_frees_nothing, "")
{
    char byte;
    EXPECT(CFAllocatorAllocate(kCFAllocatorNull, 8, 0) == NULL);
    EXPECT(CFAllocatorReallocate(kCFAllocatorNull, &byte, 8, 0) == NULL);
    CFAllocatorDeallocate(kCFAllocatorNull, &byte);
    EXPECT(CFStringCreateWithCString(kCFAllocatorNull, "x", kCFStringEncodingUTF8) == NULL);
    EXPECT(CFStringCreateWithCString(kCFAllocatorUseContext, "x", kCFStringEncodingUTF8) == NULL);
}

TEST(a_callers_allocator_is_retained_by_its_objects, "")
{
    struct counting counting;
    counting_open(&counting, -1, true);
    EXPECT_EQ(counting.references, 1);
    CFDataRef data = CFDataCreate(counting.allocator, (const UInt8 *)"abc", 3);
    EXPECT(CFGetAllocator(data) == counting.allocator);
    EXPECT_EQ(CFGetRetainCount(counting.allocator), 2);
    EXPECT_EQ(counting.blocks, 1);
    CFRelease(data);
    EXPECT_EQ(CFAllocatorGetPreferredSizeForSize(counting.allocator, 65, 0), 128);
    EXPECT_EQ(CFAllocatorGetPreferredSizeForSize(counting.allocator, 0, 0), 0);
    EXPECT_EQ(counting.preferred_calls, 1);
    CFAllocatorContext context;
    CFAllocatorGetContext(counting.allocator, &context);
    EXPECT(context.info == &counting && context.allocate != NULL && context.version == 0);
    CFStringRef words = CFCopyDescription(counting.allocator);
    EXPECT(CFStringFind(words, CFSTR("info = counting"), 0).location != kCFNotFound);
    CFRelease(words);
    counting_close(&counting);
    words = CFCopyDescription(kCFAllocatorSystemDefault);
    EXPECT(CFStringHasPrefix(words, CFSTR("<CFAllocator 0x")));
    CFRelease(words);
}

static void *own_allocate(CFIndex size, CFOptionFlags hint, void *info)
{
    (void)hint;
    ++*(int *)info;
    return malloc((size_t)size);
}

static void own_deallocate(void *block, void *info)
{
    --*(int *)info;
    free(block);
}

static int info_releases;

static void own_release(const void *info)
{
    (void)info;
    info_releases++;
}

TEST(an_allocator_may_live_in_its_own_memory, "")
{
    int blocks = 0;
    CFAllocatorContext context = {.info = &blocks, .release = own_release, .allocate = own_allocate, .deallocate = own_deallocate};
    CFAllocatorRef allocator = CFAllocatorCreate(kCFAllocatorUseContext, &context);
    REQUIRE(allocator != NULL);
    EXPECT_EQ(blocks, 1);
    EXPECT(CFGetAllocator(allocator) == allocator);
    CFDataRef data = CFDataCreate(allocator, NULL, 0);
    EXPECT_EQ(blocks, 2);
    CFRelease(allocator);
    EXPECT_EQ(blocks, 2);
    CFRelease(data);
    EXPECT_EQ(blocks, 0);
    EXPECT_EQ(info_releases, 1);
}

TEST(an_allocator_that_cannot_be_made_gives_its_info_back, "")
{
    CFAllocatorContext context = {.release = own_release};
    EXPECT(CFAllocatorCreate(kCFAllocatorUseContext, &context) == NULL);
    EXPECT(CFAllocatorCreate(kCFAllocatorNull, &context) == NULL);
    EXPECT_EQ(info_releases, 2);
}

TEST(blocks_of_allocators_that_cannot_reallocate_are_copied, "")
{
    struct counting counting;
    counting_open(&counting, -1, false);
    char *block = allocator_allocate(counting.allocator, 4);
    memcpy(block, "abc", 4);
    block = allocator_resize(counting.allocator, block, 4, 100);
    EXPECT_STR(block, "abc");
    block = allocator_resize(counting.allocator, block, 100, 4);
    EXPECT_STR(block, "abc");
    EXPECT(allocator_resize(counting.allocator, block, 4, SIZE_MAX) == NULL);
    EXPECT(CFAllocatorReallocate(counting.allocator, block, 100, 0) == NULL);
    allocator_deallocate(counting.allocator, block);
    counting_close(&counting);
}

static void *default_of_another_thread(void *unused)
{
    (void)unused;
    return (void *)(uintptr_t)CFAllocatorGetDefault();
}

TEST(the_default_allocator_is_each_threads_own, "")
{
    struct counting counting;
    counting_open(&counting, -1, true);
    CFAllocatorSetDefault(NULL);
    CFAllocatorSetDefault(kCFAllocatorUseContext);
    EXPECT(CFAllocatorGetDefault() == kCFAllocatorSystemDefault);
    CFAllocatorSetDefault(counting.allocator);
    EXPECT(CFAllocatorGetDefault() == counting.allocator);
    CFDataRef data = CFDataCreate(NULL, NULL, 0);
    EXPECT(CFGetAllocator(data) == counting.allocator);
    CFRelease(data);
    pthread_t thread;
    void *other = NULL;
    REQUIRE(pthread_create(&thread, NULL, default_of_another_thread, NULL) == 0);
    pthread_join(thread, &other);
    EXPECT(other == kCFAllocatorSystemDefault);
    CFAllocatorSetDefault(kCFAllocatorSystemDefault);
    EXPECT_EQ(CFGetRetainCount(counting.allocator), 2);
    CFRelease(counting.allocator);
    counting_close(&counting);
}

/* Where the piece of memory ends that the kernel has given for `block`. */
static uintptr_t end_of_piece(const void *block)
{
    static char text[1 << 16];
    size_t length = 0;
    ssize_t more;
    int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

    while (maps >= 0 && (more = read(maps, text + length, sizeof text - 1 - length)) > 0) {
        length += (size_t)more;
    }
    close(maps);
    text[length] = '\0';
    for (char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        uintptr_t begin = strtoul(line, &line, 16);
        uintptr_t end = strtoul(line + 1, &line, 16);

        if (begin <= (uintptr_t)block && (uintptr_t)block < end) {
            return end;
        }
    }
    return 0;
}

enum { small_blocks = 2000 };

/* How often the kernel is asked for memory for them. */
static void *count_extensions(void *ret_count)
{
    static void *blocks[small_blocks];
    uintptr_t end = 0;

    for (size_t i = 0; i < small_blocks; i++) {
        blocks[i] = allocator_allocate(kCFAllocatorSystemDefault, 100);
        if (end_of_piece(blocks[i]) != end) {
            end = end_of_piece(blocks[i]);
            ++*(int *)ret_count;
        }
    }
    for (size_t i = 0; i < small_blocks; i++) {
        allocator_deallocate(kCFAllocatorSystemDefault, blocks[i]);
    }
    return NULL;
}

TEST(small_blocks_of_a_thread_do_not_ask_the_kernel_for_each_page, "")
{
    pthread_t thread;
    int count = 0;

    if (test_is_instrumented()) {
        SKIP("the tool has a malloc of its own");
    }
    REQUIRE(pthread_create(&thread, NULL, count_extensions, &count) == 0);
    pthread_join(thread, NULL);
    EXPECT(count > 0);
    EXPECT(count < small_blocks * 100 / 4096 / 2);
}

TEST(lined_blocks_begin_at_lines_and_have_all_their_bytes, "")
{
    enum { count = 40 };
    unsigned char *blocks[count];

    for (size_t i = 0; i < count; i++) {
        blocks[i] = allocator_allocate(allocator_lined, 1 + i * 100);
        REQUIRE(blocks[i] != NULL);
        EXPECT_EQ((uintptr_t)blocks[i] % 64, 0);
        memset(blocks[i], (int)i, 1 + i * 100);
    }
    for (size_t i = 0; i < count; i++) {
        EXPECT_EQ(blocks[i][0], i);
        EXPECT_EQ(blocks[i][i * 100], i);
        allocator_deallocate(allocator_lined, blocks[i]);
    }
    EXPECT(allocator_allocate(allocator_lined, PTRDIFF_MAX) == NULL);
}

TEST(the_last_large_block_is_kept_for_the_next_of_about_its_size, "")
{
    const size_t mebibyte = 1 << 20;
    char *first = allocator_allocate(allocator_large, 8 * mebibyte);
    char *second = allocator_allocate(allocator_large, 8 * mebibyte);
    char *other;

    REQUIRE(first != NULL && second != NULL && first != second);
    EXPECT_EQ((uintptr_t)first % (2 * mebibyte), 0);
    memset(first, 1, 8 * mebibyte);
    memset(second, 2, 8 * mebibyte);
    allocator_deallocate(allocator_large, first);
    EXPECT_EQ(second[8 * mebibyte - 1], 2);
    if (test_is_instrumented()) {
        allocator_deallocate(allocator_large, second);
        return; /* the tool is to see what is used after it was given back */
    }
    other = allocator_allocate(allocator_large, 16 * mebibyte); /* more than it has */
    EXPECT(other != first);
    memset(other, 3, 16 * mebibyte);
    allocator_deallocate(allocator_large, other); /* takes its place */
    EXPECT(allocator_allocate(allocator_large, 10 * mebibyte) == other);
    memset(other, 4, 10 * mebibyte);
    allocator_deallocate(allocator_large, other);
    first = allocator_allocate(allocator_large, 3 * mebibyte); /* too much for so little */
    EXPECT(first != other);
    allocator_deallocate(allocator_large, first);
    allocator_deallocate(allocator_large, second);
    EXPECT(allocator_allocate(allocator_large, 7 * mebibyte) == second);
    allocator_deallocate(allocator_large, second);
}

TEST(a_block_above_64_mebibytes_is_not_kept, "")
{
    const size_t size = (size_t)80 << 20;
    char *block = allocator_allocate(allocator_large, size);

    REQUIRE(block != NULL);
    block[0] = block[size - 1] = 1;
    allocator_deallocate(allocator_large, block);
    block = allocator_allocate(allocator_large, size);
    REQUIRE(block != NULL);
    EXPECT(test_is_instrumented() || block[0] + block[size - 1] == 0); /* from the kernel, which clears */
    allocator_deallocate(allocator_large, block);
}

TEST(misuse_of_allocators_stops_with_a_sentence, "")
{
    CFAllocatorRef wrong = (CFAllocatorRef)(const void *)kCFNull;
    EXPECT_STOPS("CFAllocatorCreate: the context is NULL", { CFAllocatorCreate(NULL, NULL); });
    EXPECT_STOPS("CFAllocatorGetContext: the context is NULL", { CFAllocatorGetContext(NULL, NULL); });
    EXPECT_STOPS("CFAllocatorAllocate: the allocator is a CFNull", { CFAllocatorAllocate(wrong, 1, 0); });
    EXPECT_STOPS("CFAllocatorSetDefault: the allocator is a CFNull", { CFAllocatorSetDefault(wrong); });
}
