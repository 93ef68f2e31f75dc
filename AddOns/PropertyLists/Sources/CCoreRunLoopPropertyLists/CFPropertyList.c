/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of property lists: each checks its arguments and makes one call inward. Any thread. */
#include "CoreFoundation/CFPropertyList.h"

#include "Tree/tree_check.h"
#include "Tree/tree_copy.h"

Boolean CFPropertyListIsValid(CFPropertyListRef plist, CFPropertyListFormat format)
{
    CFTypeRef object;

    return tree_check(plist, format, &object) == tree_is_valid;
}

CFPropertyListRef CFPropertyListCreateDeepCopy(CFAllocatorRef allocator, CFPropertyListRef propertyList, CFOptionFlags mutabilityOption)
{
    CFTypeRef object;

    if (tree_check(propertyList, kCFPropertyListBinaryFormat_v1_0, &object) != tree_is_valid) {
        return NULL;
    }
    return tree_copy(allocator, propertyList, mutabilityOption);
}
