/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See question.h. A query of the add-on library is freed with its question, when nobody uses it any more: its completion is called with the
 * question, and freeing it waits for a completion that is under way on another thread.
 */
#include "Host/question.h"

#include <stdlib.h>

#include "Stream/Connection/stream_connection.h"

struct question *question_create(CFHostRef host, CFHostInfoType info, CFHostInfoType asked)
{
    struct question *question = calloc(1, sizeof *question);

    if (question) {
        atomic_init(&question->references, 2); /* the host's and the caller's */
        host_link_init(&question->link, host);
        question->info = info;
        question->asked = asked;
    }
    return question;
}

void question_release(struct question *question)
{
    void *query;

    invariant(atomic_load_explicit(&question->references, memory_order_relaxed) > 0);
    if (atomic_fetch_sub_explicit(&question->references, 1, memory_order_acq_rel) > 1) {
        return;
    }
    query = atomic_load_explicit(&question->query, memory_order_acquire);
    if (query) {
        connection_network()->freeQuery(query);
    }
    free(question);
}

void question_abandon(struct question *question)
{
    host_link_cut(&question->link);
    question_release(question);
}

struct question *question_retain_current(CFHostRef host)
{
    struct question *question;

    host_lock(host);
    question = host->question;
    if (question) {
        atomic_fetch_add_explicit(&question->references, 1, memory_order_relaxed);
    }
    host_unlock(host);
    return question;
}

/* Calls a function of the add-on library with the query of the host's question, if there is one. */
EXCLUDES(the_item_lock)
static void with_query(CFHostRef host, scheduled_mode_function *function, CFRunLoopRef loop, CFStringRef mode)
{
    struct question *question = question_retain_current(host);
    void *query = question ? atomic_load_explicit(&question->query, memory_order_acquire) : NULL;

    if (query) {
        function(query, loop, mode);
    }
    if (question) {
        question_release(question);
    }
}

void question_schedule(CFHostRef host, CFRunLoopRef loop, CFStringRef mode)
{
    const CRLStreamNetwork *network = connection_network();

    if (network) { /* without it there are no queries */
        with_query(host, network->scheduleQuery, loop, mode);
    }
}

void question_unschedule(CFHostRef host, CFRunLoopRef loop, CFStringRef mode)
{
    const CRLStreamNetwork *network = connection_network();

    if (network) {
        with_query(host, network->unscheduleQuery, loop, mode);
    }
}
