/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of a story: who waited for a reply from which port and how that ended, which thread answers for the port, and the circles of
 * threads that wait for each other.
 */
#include "requests.h"

#include <stdlib.h>

enum { nested_most = 64, circle_most = 64 };

static uint64_t *server_place(struct request_teller *teller, uint32_t name, uint64_t process)
{
    return pair_table_value(&teller->servers, name + UINT64_C(1), process);
}

void requests_begin(struct request_teller *teller, struct story *story)
{
    *teller = (struct request_teller){.story = story};
    teller->innermost = make_room(story->traces->thread_count, sizeof *teller->innermost);
}

void request_begins(struct request_teller *teller, const struct event *event, uint32_t name)
{
    struct story *story = teller->story;
    uint32_t outer = teller->innermost[event->thread];

    story->requests = grow_array(story->requests, story->request_count, &story->request_capacity, sizeof *story->requests);
    story->requests[story->request_count++] = (struct awaited_request){.begin_ns = event->time_ns,
                                                                       .end_ns = INT64_MAX,
                                                                       .thread = event->thread,
                                                                       .name = name,
                                                                       .message = (int32_t)(uint32_t)event->object,
                                                                       .server = no_thread,
                                                                       .outer = outer,
                                                                       .depth = outer > 0 ? story->requests[outer - 1].depth + 1 : 0};
    teller->innermost[event->thread] = (uint32_t)story->request_count;
}

/* Ends the innermost request of that number, and those in it, which were left by a jump. */
void request_ends(struct request_teller *teller, const struct event *event)
{
    struct awaited_request *requests = teller->story->requests;
    uint32_t found = teller->innermost[event->thread];

    while (found > 0 && requests[found - 1].message != (int32_t)(uint32_t)event->object) {
        found = requests[found - 1].outer;
    }
    for (uint32_t at = teller->innermost[event->thread]; found > 0 && at > 0; at = requests[at - 1].outer) {
        requests[at - 1].end_ns = event->time_ns;
        requests[at - 1].result = event->detail < request_result_count ? (uint8_t)event->detail : request_result_count;
        teller->innermost[event->thread] = requests[at - 1].outer;
        if (at == found) {
            break;
        }
    }
}

void request_is_left(struct request_teller *teller, const struct event *event)
{
    uint32_t left = teller->innermost[event->thread];

    if (left > 0) {
        teller->story->requests[left - 1].end_ns = event->time_ns;
        teller->story->requests[left - 1].result = request_result_count;
        teller->innermost[event->thread] = teller->story->requests[left - 1].outer;
    }
}

void request_port_is_served(struct request_teller *teller, const struct event *event, uint32_t name)
{
    uint32_t process = teller->story->traces->threads[event->thread].process;

    *server_place(teller, name, process + UINT64_C(1)) = event->thread + UINT64_C(1);
    *server_place(teller, name, 0) = event->thread + UINT64_C(1); /* for the other processes */
}

/* The request that the thread waits for at that time: the innermost one. The last request that began by then, or one around it. */
static uint32_t pending_at(const struct story *story, const uint32_t *last, uint32_t thread, int64_t time_ns)
{
    uint32_t at = last[thread];
    int left = nested_most;

    while (at > 0 && left-- > 0 && (story->requests[at - 1].begin_ns > time_ns || story->requests[at - 1].end_ns <= time_ns)) {
        at = story->requests[at - 1].outer;
    }
    return left < 0 ? 0 : at;
}

/* Notes a deadlock if the request, which began last, closes a circle of requests that all wait for long. */
static void look_for_circle(struct story *story, const uint32_t *last, uint32_t number)
{
    const struct awaited_request *first = &story->requests[number - 1];
    int64_t end_ns = first->end_ns;
    uint32_t at = number;
    uint32_t members = 1;

    for (; members < circle_most; members++) {
        uint32_t server = story->requests[at - 1].server;

        if (server == no_thread || server == first->thread) {
            break;
        }
        at = pending_at(story, last, server, first->begin_ns);
        if (at == 0) {
            return;
        }
        end_ns = story->requests[at - 1].end_ns < end_ns ? story->requests[at - 1].end_ns : end_ns;
    }
    if (story->requests[at - 1].server == first->thread && end_ns - first->begin_ns >= story->stall_ns) {
        story->deadlocks = grow_array(story->deadlocks, story->deadlock_count, &story->deadlock_capacity, sizeof *story->deadlocks);
        story->deadlocks[story->deadlock_count++] = (struct deadlock){first->begin_ns, end_ns, number - 1, members};
    }
}

void requests_end(struct request_teller *teller)
{
    struct story *story = teller->story;
    uint32_t *last = make_room(story->traces->thread_count, sizeof *last);

    for (size_t i = 0; i < story->request_count; i++) {
        struct awaited_request *request = &story->requests[i];
        uint32_t process = story->traces->threads[request->thread].process;
        uint64_t server = *server_place(teller, request->name, process + UINT64_C(1));

        server = server > 0 ? server : *server_place(teller, request->name, 0);
        request->server = server > 0 ? (uint32_t)(server - 1) : no_thread;
        if (request->end_ns == INT64_MAX) {
            request->end_ns = story->traces->end_ns;
            request->result = request_unfinished;
        }
    }
    for (size_t i = 0; i < story->request_count; i++) {
        last[story->requests[i].thread] = (uint32_t)i + 1;
        look_for_circle(story, last, (uint32_t)i + 1);
    }
    free(last);
    free(teller->innermost);
    free(teller->servers.entries);
}
