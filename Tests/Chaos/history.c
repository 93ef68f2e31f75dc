/* SPDX-License-Identifier: Apache-2.0 */
/* The history, read once from its beginning; see chaos.h. */
#include "chaos.h"

#include <stdlib.h>

/* The latest message of a client that each name's owners have handled. */
struct record {
    uint32_t handled[chaos_names];
};

static bool was_handled_before(uint32_t end, const struct event *event)
{
    for (uint32_t i = 0; i < end; i++) {
        const struct event *earlier = &chaos->events[i];

        if (earlier->kind == event_handled && earlier->client == event->client && earlier->number == event->number) {
            return true;
        }
    }
    return false;
}

static void judge_handled(uint32_t place, const struct event *event, struct record *record, struct verdict *verdict)
{
    uint32_t *latest = &record->handled[event->name];

    if (event->number > *latest) {
        *latest = event->number;
    } else if (was_handled_before(place, event)) {
        chaos_violation("message %u of client %u was handled twice, the second time by server %u", event->number, event->client,
                        event->server);
    } else if (chaos->breaks_order) {
        verdict->reordered++;
    } else {
        chaos_violation("message %u of client %u was handled after its message %u, by server %u", event->number, event->client, *latest,
                        event->server);
    }
}

static void judge_answered(uint32_t place, const struct event *event, const struct record *record)
{
    if (record->handled[event->name] != event->number && !(chaos->breaks_order && was_handled_before(place, event))) {
        chaos_violation("client %u has an answer to its message %u, but message %u is the last of it that was handled", event->client,
                        event->number, record->handled[event->name]);
    }
}

struct verdict judge_history(void)
{
    struct verdict verdict = {0, 0, 0, 0};
    struct record *records = calloc(atomic_load(&chaos->lives) + 1, sizeof *records);
    uint32_t count = atomic_load(&chaos->event_count);

    if (!records) {
        chaos_violation("there is no memory to judge the history");
        return verdict;
    }
    for (uint32_t i = 0; i < count && i < chaos_events_max; i++) {
        const struct event *event = &chaos->events[i];

        switch (event->kind) {
        case event_handled:
            verdict.handled++;
            judge_handled(i, event, &records[event->client], &verdict);
            break;
        case event_answered:
            verdict.answered++;
            judge_answered(i, event, &records[event->client]);
            break;
        default:
            verdict.lost++;
        }
    }
    free(records);
    return verdict;
}
