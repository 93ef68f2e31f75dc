/* SPDX-License-Identifier: Apache-2.0 */
/* A merge sort from below: neighbours of one value, of two, of four ... */
#include "Runtime/Collection/sort.h"

#include <string.h>

/* Merges two sorted neighbours; `spare` has room for both. */
static void merge(const void **values, CFIndex middle, CFIndex count, const void **spare, CFComparatorFunction comparator, void *context)
{
    memcpy(spare, values, (size_t)middle * sizeof *values);
    CFIndex left = 0;
    CFIndex right = middle;
    for (CFIndex i = 0; left < middle; i++) {
        bool takes_right = right < count && comparator(values[right], spare[left], context) == kCFCompareLessThan;

        values[i] = takes_right ? values[right++] : spare[left++];
    }
}

void sort_stably(const void **values, CFIndex count, const void **spare, CFComparatorFunction comparator, void *context)
{
    for (CFIndex width = 1; width < count; width *= 2) {
        for (CFIndex start = 0; start + width < count; start += 2 * width) {
            CFIndex end = start + 2 * width < count ? start + 2 * width : count;

            merge(values + start, width, end - start, spare, comparator, context);
        }
    }
}
