/* SPDX-License-Identifier: Apache-2.0 */
/* How late the timers of a story were. */
#include <stdlib.h>

#include "runloop.h"

static int by_number(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one;
    int64_t b = *(const int64_t *)other;

    return a < b ? -1 : a > b;
}

/* The smallest of the sorted numbers that at least `percent` of them do not exceed. */
static int64_t percentile(const int64_t *sorted, size_t count, unsigned percent)
{
    size_t rank = (count * percent + 99) / 100;

    invariant(rank <= count && sorted[0] <= sorted[count - 1]);
    return sorted[rank > 0 ? rank - 1 : 0];
}

void story_tell_lateness(struct story *story)
{
    int64_t *all = make_room(story->span_count, sizeof *all);
    size_t count = 0;

    for (size_t i = 0; i < story->span_count; i++) {
        const struct span *span = &story->spans[i];

        if (span->due_ns != INT64_MIN) {
            int64_t late_ns = span->begin_ns > span->due_ns ? span->begin_ns - span->due_ns : 0;
            int bucket = late_ns > 0 ? 64 - __builtin_clzll((unsigned long long)late_ns) : 0;

            invariant(late_ns >= 0 && count < story->span_count);
            all[count++] = late_ns;
            story->lateness.buckets[bucket < lateness_buckets ? bucket : lateness_buckets - 1]++;
        }
    }
    story->lateness.count = count;
    if (count > 0) {
        qsort(all, count, sizeof *all, by_number);
        story->lateness.p50_ns = percentile(all, count, 50);
        story->lateness.p99_ns = percentile(all, count, 99);
        story->lateness.most_ns = all[count - 1];
    }
    free(all);
}
