/* SPDX-License-Identifier: Apache-2.0 */
/* The counting allocator on top of malloc; the numbers stand in the test's own structure. */
#include "Runtime/Object/counting_allocator.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "CoreFoundation/CFString.h"
#include "harness.h"

static bool spend(struct counting *counting)
{
    if (counting->allowance == 0) {
        return false;
    }
    counting->allowance -= counting->allowance > 0;
    counting->calls++;
    return true;
}

static void *allocate(CFIndex size, CFOptionFlags hint, void *info)
{
    struct counting *counting = info;
    (void)hint;
    if (!spend(counting)) {
        return NULL;
    }
    counting->blocks++;
    char *block = malloc((size_t)size);
    for (CFIndex i = 0; block != NULL && i < size; i++) {
        block[i] = 0x5A; /* nobody may rely on zeros */
    }
    return block;
}

static void *reallocate(void *block, CFIndex size, CFOptionFlags hint, void *info)
{
    (void)hint;
    return spend(info) ? realloc(block, (size_t)size) : NULL;
}

static void deallocate(void *block, void *info)
{
    ((struct counting *)info)->blocks--;
    free(block);
}

static CFIndex preferred(CFIndex size, CFOptionFlags hint, void *info)
{
    (void)hint;
    ((struct counting *)info)->preferred_calls++;
    return (size + 63) / 64 * 64;
}

static const void *retain(const void *info)
{
    ((struct counting *)(uintptr_t)info)->references++;
    return info;
}

static void release(const void *info)
{
    ((struct counting *)(uintptr_t)info)->references--;
}

static CFStringRef copy_description(const void *info)
{
    (void)info;
    return CFSTR("counting");
}

void counting_open(struct counting *counting, long allowance, int reallocates)
{
    *counting = (struct counting){.allowance = allowance};
    CFAllocatorContext context = {0,          counting, retain, release, copy_description, allocate, reallocates ? reallocate : NULL,
                                  deallocate, preferred};
    counting->allocator = CFAllocatorCreate(NULL, &context);
    REQUIRE(counting->allocator != NULL);
}

void counting_close(struct counting *counting)
{
    EXPECT_EQ(CFGetRetainCount(counting->allocator), 1);
    CFRelease(counting->allocator);
    EXPECT_EQ(counting->blocks, 0);
    EXPECT_EQ(counting->references, 0);
}
