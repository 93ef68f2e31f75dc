/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See query.h. Threads: any.
 *
 * The query's lock guards its lookup, because c-ares does not lock. It is held over calls of c-ares and of the loops, which run no code of
 * the program.
 *
 * The child of a fork asks again, with a wait set, a timer and sockets of its own: those that it shares with its parent are the parent's.
 */
#define _GNU_SOURCE /* dup3 */
#include "query.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFFileDescriptor.h"
#include "Support/invariant.h"
#include "host_lookup.h"
#include "plain_lock.h"
#include "resolver.h"

enum { most_events = 8 };

enum query_state { query_asking, query_answered, query_telling, query_told };

/* A mode of a loop in which the query makes progress. Guarded by the query's lock. */
struct query_place {
    CFRunLoopRef loop; /* a reference */
    CFStringRef mode; /* a reference */
    uint32_t joins; /* how often it was scheduled here: the two streams of a pair may both have done so */
};

struct query {
    struct plain_lock lock;
    pthread_cond_t told_or_freed; /* waited for with the lock */
    _Atomic uint32_t references; /* of the owner, of the descriptor, and of each call under way */
    int wait_set; /* constant; -1: not made */
    int timer; /* constant; -1: not made */
    CFFileDescriptorRef descriptor; /* constant: of the wait set, for the loops; NULL: not made */
    CFRunLoopSourceRef source; /* constant: of the descriptor; NULL: not made */
    UInt32 port; /* constant */
    CFDataRef address; /* constant: a reference, where names are asked for; else NULL */
    CRLStreamResolved completion; /* constant */
    void *context; /* constant: the completion's */
    struct host_lookup lookup GUARDED_BY(the_plain_lock);
    struct query_place *places GUARDED_BY(the_plain_lock);
    uint32_t place_count GUARDED_BY(the_plain_lock);
    enum query_state state GUARDED_BY(the_plain_lock);
    pthread_t teller GUARDED_BY(the_plain_lock); /* the thread that calls the completion, while the state is query_telling */
    bool is_freed GUARDED_BY(the_plain_lock); /* by its owner: the completion is not called any more */
    bool asks_again GUARDED_BY(the_plain_lock); /* in the child of a fork: the lookup is still the parent's */
    struct query *next; /* in `queries`, and guarded by their lock, as the next */
    struct query **place; /* where the list points at the query; NULL: it is not in the list */
};

static struct query *queries;
static pthread_mutex_t queries_lock = PTHREAD_MUTEX_INITIALIZER; /* held with a query's lock, so not over a fork; no other is taken then */

/* What query_set_configuration has set. A query reads it once, when it is made. */
static _Atomic(const struct dns_configuration *) configuration_for_tests;

void query_set_configuration(const struct dns_configuration *configuration)
{
    configuration_for_tests = configuration;
}

/* ---- references ---- */

static void release_place(struct query_place place)
{
    CFRelease(place.loop);
    CFRelease(place.mode);
}

static void close_if_open(int descriptor)
{
    if (descriptor >= 0) {
        (void)uncancelled(close(descriptor));
    }
}

static void query_retain(struct query *q)
{
    uint32_t before = atomic_fetch_add_explicit(&q->references, 1, memory_order_relaxed);

    invariant(before > 0);
}

static void list_query(struct query *q)
{
    (void)pthread_mutex_lock(&queries_lock);
    q->next = queries;
    q->place = &queries;
    if (queries) {
        queries->place = &q->next;
    }
    queries = q;
    (void)pthread_mutex_unlock(&queries_lock);
}

static void unlist_query(struct query *q)
{
    (void)pthread_mutex_lock(&queries_lock);
    if (q->place) {
        *q->place = q->next;
    }
    if (q->next) {
        q->next->place = q->place;
    }
    (void)pthread_mutex_unlock(&queries_lock);
}

/* Nobody else refers to the query, so that most of it needs no lock (NOT_CHECKED). Ending the lookup closes its sockets. */
NOT_CHECKED static void query_destroy(struct query *q)
{
    int cancel_state;

    invariant(atomic_load_explicit(&q->references, memory_order_relaxed) == 0 && q->state != query_telling);
    cancel_state = plain_lock_take(&q->lock); /* so that the thread is not cancelled in c-ares */
    host_lookup_destroy(&q->lookup);
    unlist_query(q);
    plain_lock_drop(&q->lock, cancel_state);
    while (q->place_count > 0) {
        release_place(q->places[--q->place_count]);
    }
    free(q->places);
    if (q->address) {
        CFRelease(q->address);
    }
    close_if_open(q->timer);
    close_if_open(q->wait_set);
    plain_lock_destroy(&q->lock);
    pthread_cond_destroy(&q->told_or_freed);
    free(q);
}

static void query_release(struct query *q)
{
    uint32_t before = atomic_fetch_sub_explicit(&q->references, 1, memory_order_acq_rel);

    invariant(before > 0);
    if (before == 1) {
        query_destroy(q);
    }
}

/* ---- progress ---- */

/* Notes whether there is an answer. Sets the timer to the lookup's next deadline, or to now, so that the completion is called. */
REQUIRES(the_plain_lock) static void note_progress(struct query *q)
{
    int64_t wait_ns;
    struct itimerspec next;

    invariant(q->timer >= 0 && q->state == query_asking);
    q->state = q->lookup.is_over ? query_answered : query_asking;
    wait_ns = q->lookup.is_over ? 0 : host_lookup_wait_ns(&q->lookup);
    next = (struct itimerspec){.it_value = {wait_ns / 1000000000, wait_ns % 1000000000 + 1}};
    if (wait_ns >= 0) {
        (void)timerfd_settime(q->timer, 0, &next, NULL);
    }
}

/* Lets the lookup read and write its sockets where that does not wait, and give up on servers whose deadlines have passed. */
REQUIRES(the_plain_lock) static void process_sockets(struct query *q)
{
    struct epoll_event events[most_events];
    int count = epoll_wait(q->wait_set, events, most_events, 0);
    uint64_t ticks;

    invariant(q->state == query_asking);
    if (q->asks_again) {
        q->asks_again = false;
        host_lookup_ask_again(&q->lookup, q->address);
        count = 0;
    }
    for (int i = 0; i < count; i++) {
        int socket = events[i].data.fd;

        if (socket == q->timer) {
            (void)!read(q->timer, &ticks, sizeof ticks);
        } else {
            host_lookup_process(&q->lookup, events[i].events & ~(uint32_t)EPOLLOUT ? socket : ARES_SOCKET_BAD,
                                events[i].events & EPOLLOUT ? socket : ARES_SOCKET_BAD);
        }
    }
    host_lookup_process(&q->lookup, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    host_lookup_advance(&q->lookup);
    note_progress(q);
}

/* Makes the calling thread the teller. Returns false if there is no answer yet, another thread has it, or the query is freed. */
REQUIRES(the_plain_lock) static bool take_turn(struct query *q)
{
    if (q->state != query_answered || q->is_freed) {
        return false;
    }
    q->state = query_telling;
    q->teller = pthread_self();
    return true;
}

/* Calls the completion. What it reads changes no more while the calling thread is the teller (NOT_CHECKED). */
NOT_CHECKED static void tell_answer(struct query *q)
{
    const struct host_lookup *l = &q->lookup;
    CFStreamError error = resolver_error(l->status);
    CFArrayRef answer = NULL;
    int cancel_state;

    invariant(q->state == query_telling && pthread_equal(q->teller, pthread_self()));
    if (error.domain == 0) {
        answer = l->names ? CFRetain(l->names) : resolver_create_addresses(l->families[1].found, l->families[0].found, q->port);
    }
    if (!answer && error.domain == 0) {
        error = resolver_error(ARES_ENOMEM);
    }
    q->completion(q->context, answer, error);
    if (answer) {
        CFRelease(answer);
    }
    cancel_state = plain_lock_take(&q->lock);
    q->state = query_told;
    pthread_cond_broadcast(&q->told_or_freed);
    plain_lock_drop(&q->lock, cancel_state);
}

void query_advance(void *query)
{
    struct query *q = query;
    int cancel_state;
    bool tells;

    query_retain(q); /* the completion may free the query */
    cancel_state = plain_lock_take(&q->lock);
    if (q->state == query_asking) {
        process_sockets(q);
    }
    tells = take_turn(q);
    plain_lock_drop(&q->lock, cancel_state);
    if (tells) {
        CFFileDescriptorInvalidate(q->descriptor); /* loops need not serve the query any more */
        tell_answer(q);
    }
    query_release(q);
}

int query_descriptor(void *query)
{
    return ((struct query *)query)->wait_set;
}

/* A loop has found the wait set ready. The descriptor keeps its reference to the query until this returns. */
static void serve_ready(CFFileDescriptorRef descriptor, CFOptionFlags types, void *info)
{
    (void)types;
    query_advance(info);
    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack);
}

/* ---- making ---- */

static void *retain_info(void *info)
{
    query_retain(info);
    return info;
}

static void release_info(void *info)
{
    query_release(info);
}

static int make_timer(void)
{
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

static bool make_descriptor(struct query *q)
{
    CFFileDescriptorContext context = {.info = q, .retain = retain_info, .release = release_info};
    struct epoll_event event = {.events = EPOLLIN};

    q->wait_set = epoll_create1(EPOLL_CLOEXEC);
    q->timer = make_timer();
    event.data.fd = q->timer;
    if (q->wait_set < 0 || q->timer < 0 || epoll_ctl(q->wait_set, EPOLL_CTL_ADD, q->timer, &event) < 0) {
        return false;
    }
    q->descriptor = CFFileDescriptorCreate(kCFAllocatorSystemDefault, q->wait_set, false, serve_ready, &context);
    q->source = q->descriptor ? CFFileDescriptorCreateRunLoopSource(kCFAllocatorSystemDefault, q->descriptor, 0) : NULL;
    if (q->source) {
        CFFileDescriptorEnableCallBacks(q->descriptor, kCFFileDescriptorReadCallBack);
    }
    return q->source;
}

static struct query *query_create(UInt32 port, CRLStreamResolved completion, void *context)
{
    struct query *q = calloc(1, sizeof *q);

    if (!q) {
        return NULL;
    }
    plain_lock_init(&q->lock);
    pthread_cond_init(&q->told_or_freed, NULL);
    atomic_init(&q->references, 1);
    q->wait_set = q->timer = -1;
    q->port = port;
    q->completion = completion;
    q->context = context;
    if (!make_descriptor(q)) {
        query_free(q);
        return NULL;
    }
    return q;
}

/* ---- forks ---- */

static const struct itimerspec at_once = {.it_value = {.tv_nsec = 1}};

static bool renew(int descriptor, int made)
{
    bool is_renewed = made >= 0 && dup3(made, descriptor, O_CLOEXEC) == descriptor;

    close_if_open(made);
    return is_renewed;
}

/*
 * Gives the query descriptors of the child's own under its numbers, before loops add the wait set to theirs. Without descriptors it has no
 * answer: its timer would be the parent's. Other threads, that were telling the answer or waiting for it, do not exist here.
 */
NOT_CHECKED static void part_query(struct query *q)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = q->timer};

    if (q->state == query_telling && !pthread_equal(q->teller, pthread_self())) {
        q->state = query_told;
    }
    plain_lock_init(&q->lock); /* threads that wait for a teller may have it, and changed nothing */
    (void)pthread_cond_init(&q->told_or_freed, NULL);
    if (!renew(q->wait_set, epoll_create1(EPOLL_CLOEXEC)) || !renew(q->timer, make_timer()) ||
        epoll_ctl(q->wait_set, EPOLL_CTL_ADD, q->timer, &event) < 0) {
        return;
    }
    q->asks_again = q->state == query_asking;
    if (q->state == query_asking || q->state == query_answered) {
        (void)timerfd_settime(q->timer, 0, &at_once, NULL);
    }
}

/* Nobody was changing a query: see fork_gate.h. */
static void part_queries(void)
{
    for (struct query *q = queries; q; q = q->next) {
        part_query(q);
    }
}

static __attribute__((constructor)) void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, part_queries);
}

/* Of the addresses of a host, or of the names of an address. */
static struct query *ask(struct query *q, CFStringRef host)
{
    int cancel_state;

    if (!q) {
        return NULL;
    }
    cancel_state = plain_lock_take(&q->lock);
    host_lookup_init(&q->lookup, q->wait_set, configuration_for_tests);
    if (host) {
        host_lookup_ask_addresses(&q->lookup, host);
    } else {
        host_lookup_ask_names(&q->lookup, q->address);
    }
    note_progress(q);
    list_query(q);
    plain_lock_drop(&q->lock, cancel_state);
    return q;
}

void *query_resolve(CFStringRef host, UInt32 port, CRLStreamResolved completion, void *context)
{
    return ask(query_create(port, completion, context), host);
}

void *query_resolve_address(CFDataRef address, CRLStreamResolved completion, void *context)
{
    struct query *q = query_create(0, completion, context);

    if (q) {
        q->address = CFRetain(address);
    }
    return ask(q, NULL);
}

/* ---- modes ---- */

/* Returns the index of the place, or the count of places if it is not there. */
REQUIRES(the_plain_lock) static uint32_t find_place(const struct query *q, CFRunLoopRef loop, CFStringRef mode)
{
    uint32_t i = 0;

    while (i < q->place_count && (q->places[i].loop != loop || !CFEqual(q->places[i].mode, mode))) {
        i++;
    }
    return i;
}

/* Without memory the mode is not added. The query makes progress in its other modes, or when somebody waits for it. */
REQUIRES(the_plain_lock) static void add_place(struct query *q, CFRunLoopRef loop, CFStringRef mode)
{
    struct query_place *grown = realloc(q->places, (q->place_count + 1) * sizeof *grown);
    CFStringRef copy = CFStringCreateCopy(kCFAllocatorSystemDefault, mode);

    invariant(q->source);
    if (grown) {
        q->places = grown;
    }
    if (grown && copy) {
        grown[q->place_count++] = (struct query_place){(CFRunLoopRef)(uintptr_t)CFRetain(loop), copy, 1};
        CFRunLoopAddSource(loop, q->source, mode);
    } else if (copy) {
        CFRelease(copy);
    }
}

void query_schedule(void *query, CFRunLoopRef loop, CFStringRef mode)
{
    struct query *q = query;
    int cancel_state = plain_lock_take(&q->lock);
    uint32_t index = find_place(q, loop, mode);

    if (index < q->place_count) {
        q->places[index].joins++;
    } else {
        add_place(q, loop, mode);
    }
    plain_lock_drop(&q->lock, cancel_state);
}

void query_unschedule(void *query, CFRunLoopRef loop, CFStringRef mode)
{
    struct query *q = query;
    int cancel_state = plain_lock_take(&q->lock);
    uint32_t index = find_place(q, loop, mode);

    invariant(index == q->place_count || q->places[index].joins > 0);
    if (index < q->place_count && --q->places[index].joins == 0) {
        CFRunLoopRemoveSource(loop, q->source, mode);
        release_place(q->places[index]);
        q->places[index] = q->places[--q->place_count];
    }
    plain_lock_drop(&q->lock, cancel_state);
}

/* ---- waiting, freeing ---- */

/* Waits while another thread calls the completion, which may fork. */
REQUIRES(the_plain_lock) static void wait_for_teller(struct query *q, int *cancel_state)
{
    while (q->state == query_telling && !pthread_equal(q->teller, pthread_self())) {
        plain_lock_wait(&q->lock, &q->told_or_freed, cancel_state);
    }
}

void query_wait(void *query)
{
    struct query *q = query;
    bool is_over = false;

    query_retain(q);
    while (!is_over) {
        struct pollfd wait_set = {.fd = q->wait_set, .events = POLLIN};
        int could_cancel;

        query_advance(q);
        could_cancel = plain_lock_take(&q->lock);
        wait_for_teller(q, &could_cancel);
        is_over = q->state != query_asking;
        plain_lock_drop(&q->lock, could_cancel);
        if (!is_over) {
            (void)uncancelled(poll(&wait_set, 1, -1));
        }
    }
    query_release(q);
}

void query_free(void *query)
{
    struct query *q = query;
    int cancel_state = plain_lock_take(&q->lock);

    invariant(!q->is_freed);
    q->is_freed = true;
    wait_for_teller(q, &cancel_state);
    plain_lock_drop(&q->lock, cancel_state);
    if (q->source) {
        CFRunLoopSourceInvalidate(q->source);
        CFRelease(q->source);
    }
    if (q->descriptor) {
        CFFileDescriptorInvalidate(q->descriptor);
        CFRelease(q->descriptor);
    }
    query_release(q);
}
