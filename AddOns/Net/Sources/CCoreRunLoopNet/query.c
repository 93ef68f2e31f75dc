/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See query.h. The query's lock guards its channel, which c-ares does not. It is held over calls of c-ares and of the loops, none of which
 * runs code of the program; c-ares's own callbacks note what has happened and no more. Threads: any.
 */
#define _GNU_SOURCE /* EAI_NODATA */
#include "query.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "CoreFoundation/CFData.h"
#include "CoreFoundation/CFFileDescriptor.h"
#include "plain_lock.h"
#include "resolver.h"

enum { most_events = 8, longest_name = 256 };

enum query_state { query_asking, query_answered, query_telling, query_told };

/* A mode that the query goes on in. */
struct query_place {
    CFRunLoopRef loop; /* a reference, as the mode */
    CFStringRef mode;
    uint32_t joins; /* the two streams of a pair may both be there */
};

struct query {
    struct plain_lock lock;
    pthread_cond_t told_or_freed; /* of the lock */
    _Atomic uint32_t references; /* of the owner, of the descriptor, and of each call under way */
    ares_channel channel GUARDED_BY(the_plain_lock); /* NULL: it could not be made */
    int wait_set; /* constant, as the timer and the descriptor; -1: not made */
    int timer;
    CFFileDescriptorRef descriptor; /* of the wait set, in the loops; NULL: not made */
    CFRunLoopSourceRef source;
    struct query_place *places GUARDED_BY(the_plain_lock);
    uint32_t place_count GUARDED_BY(the_plain_lock);
    enum query_state state GUARDED_BY(the_plain_lock);
    pthread_t teller GUARDED_BY(the_plain_lock); /* while telling */
    bool is_freed GUARDED_BY(the_plain_lock); /* by its owner: nobody is told any more */
    int status GUARDED_BY(the_plain_lock); /* of c-ares; ARES_SUCCESS with the addresses */
    struct ares_addrinfo *found GUARDED_BY(the_plain_lock); /* addresses; NULL: none were asked for, or found */
    CFArrayRef names GUARDED_BY(the_plain_lock); /* a reference, or NULL */
    UInt32 port; /* constant, as the completion and its context */
    CRLStreamResolved completion;
    void *context;
};

static _Atomic(const char *) servers_for_tests;
static _Atomic int patience_for_tests;
static _Atomic int tries_for_tests;

void query_set_servers(const char *servers, int patience_ms, int tries)
{
    patience_for_tests = patience_ms;
    tries_for_tests = tries;
    servers_for_tests = servers;
}

/* ---- its life ---- */

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

static void retain(struct query *q)
{
    atomic_fetch_add_explicit(&q->references, 1, memory_order_relaxed);
}

/* Nobody else refers to the query (NOT_CHECKED). Ending the channel closes its sockets. */
NOT_CHECKED static void destroy(struct query *q)
{
    if (q->channel) {
        int cancel_state = plain_lock_take(&q->lock); /* c-ares makes system calls */

        ares_destroy(q->channel);
        plain_lock_drop(&q->lock, cancel_state);
    }
    if (q->found) {
        ares_freeaddrinfo(q->found);
    }
    if (q->names) {
        CFRelease(q->names);
    }
    while (q->place_count > 0) {
        release_place(q->places[--q->place_count]);
    }
    free(q->places);
    close_if_open(q->timer);
    close_if_open(q->wait_set);
    plain_lock_destroy(&q->lock);
    pthread_cond_destroy(&q->told_or_freed);
    free(q);
}

static void release(struct query *q)
{
    if (atomic_fetch_sub_explicit(&q->references, 1, memory_order_acq_rel) == 1) {
        destroy(q);
    }
}

/* ---- what c-ares tells; the lock is held, which clang cannot see (NOT_CHECKED) ---- */

/* Puts a socket of the channel into the wait set, or takes it out. A failure shows as a deadline that passes. */
NOT_CHECKED static void watch_socket(void *info, ares_socket_t socket, int reads, int writes)
{
    struct query *q = info;
    struct epoll_event event = {.events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u), .data.fd = socket};

    if (event.events == 0) {
        (void)epoll_ctl(q->wait_set, EPOLL_CTL_DEL, socket, &event);
    } else if (epoll_ctl(q->wait_set, EPOLL_CTL_MOD, socket, &event) < 0) {
        (void)epoll_ctl(q->wait_set, EPOLL_CTL_ADD, socket, &event);
    }
}

NOT_CHECKED static void note_names(void *info, int status, int timeouts, struct hostent *host)
{
    struct query *q = info;

    (void)timeouts;
    if (status == ARES_EDESTRUCTION || q->state != query_asking) {
        return;
    }
    q->state = query_answered;
    q->names = status == ARES_SUCCESS ? resolver_create_names(host) : NULL;
    q->status = status == ARES_SUCCESS && !q->names ? ARES_ENOMEM : status;
}

NOT_CHECKED static void note_answer(void *info, int status, int timeouts, struct ares_addrinfo *found)
{
    struct query *q = info;

    (void)timeouts;
    if (status == ARES_EDESTRUCTION || q->state != query_asking) {
        ares_freeaddrinfo(found);
        return;
    }
    q->state = query_answered;
    q->status = status;
    q->found = found;
}

/* ---- going on ---- */

/* Sets the kernel's timer to the channel's next deadline; to at once when there is an answer to be told. */
REQUIRES(the_plain_lock) static void set_timer(struct query *q)
{
    struct itimerspec next = {.it_value = {.tv_nsec = 1}};
    struct timeval left;

    if (q->state == query_asking) {
        if (!q->channel || !ares_timeout(q->channel, NULL, &left)) {
            return;
        }
        next.it_value = (struct timespec){left.tv_sec, left.tv_usec * 1000L + 1};
    }
    (void)timerfd_settime(q->timer, 0, &next, NULL);
}

/* Hands the channel what its sockets have, and lets deadlines pass. Never waits. */
REQUIRES(the_plain_lock) static void go_on(struct query *q)
{
    struct epoll_event events[most_events];
    int count = epoll_wait(q->wait_set, events, most_events, 0);
    uint64_t ticks;

    for (int i = 0; i < count && q->channel; i++) {
        int socket = events[i].data.fd;

        if (socket == q->timer) {
            (void)!read(q->timer, &ticks, sizeof ticks);
        } else {
            ares_process_fd(q->channel, events[i].events & ~(uint32_t)EPOLLOUT ? socket : ARES_SOCKET_BAD,
                            events[i].events & EPOLLOUT ? socket : ARES_SOCKET_BAD);
        }
    }
    if (q->channel) {
        ares_process_fd(q->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    }
    set_timer(q);
}

/* Takes the turn at telling the answer. Returns false if there is none, or another thread tells it, or nobody wants it. */
REQUIRES(the_plain_lock) static bool take_turn(struct query *q)
{
    if (q->state != query_answered || q->is_freed) {
        return false;
    }
    q->state = query_telling;
    q->teller = pthread_self();
    return true;
}

/* Calls the completion. The caller has the turn, so that what it reads does not change (NOT_CHECKED). */
NOT_CHECKED static void tell(struct query *q)
{
    CFStreamError error = resolver_error(q->status);
    CFArrayRef answer = q->names ? CFRetain(q->names) : q->found ? resolver_create_addresses(q->found, q->port) : NULL;
    int cancel_state;

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

static void advance(struct query *q)
{
    int cancel_state = plain_lock_take(&q->lock);
    bool tells;

    if (q->state == query_asking) {
        go_on(q);
    }
    tells = take_turn(q);
    plain_lock_drop(&q->lock, cancel_state);
    if (tells) {
        CFFileDescriptorInvalidate(q->descriptor); /* nothing more is to be heard; the caller has a reference */
        tell(q);
    }
}

/* A loop has found the wait set ready. The descriptor keeps its reference until this returns. */
static void is_ready(CFFileDescriptorRef descriptor, CFOptionFlags types, void *info)
{
    struct query *q = info;

    (void)types;
    retain(q); /* the completion may free the query */
    advance(q);
    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack);
    release(q);
}

/* ---- making ---- */

static void *retain_info(void *info)
{
    retain(info);
    return info;
}

static void release_info(void *info)
{
    release(info);
}

static bool make_descriptor(struct query *q)
{
    CFFileDescriptorContext context = {.info = q, .retain = retain_info, .release = release_info};
    struct epoll_event event = {.events = EPOLLIN};

    q->wait_set = epoll_create1(EPOLL_CLOEXEC);
    q->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    event.data.fd = q->timer;
    if (q->wait_set < 0 || q->timer < 0 || epoll_ctl(q->wait_set, EPOLL_CTL_ADD, q->timer, &event) < 0) {
        return false;
    }
    q->descriptor = CFFileDescriptorCreate(kCFAllocatorSystemDefault, q->wait_set, false, is_ready, &context);
    q->source = q->descriptor ? CFFileDescriptorCreateRunLoopSource(kCFAllocatorSystemDefault, q->descriptor, 0) : NULL;
    if (q->source) {
        CFFileDescriptorEnableCallBacks(q->descriptor, kCFFileDescriptorReadCallBack);
    }
    return q->source;
}

static struct query *create(UInt32 port, CRLStreamResolved completion, void *context)
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

/* Makes the channel. Returns false if it could not, which is then the answer. */
REQUIRES(the_plain_lock) static bool open_channel(struct query *q)
{
    const char *servers = servers_for_tests;
    const struct resolver_terms terms = {watch_socket, q, servers, patience_for_tests, tries_for_tests};
    int status = resolver_create(&terms, &q->channel);

    if (status != ARES_SUCCESS) {
        note_answer(q, status, 0, NULL);
    }
    return status == ARES_SUCCESS;
}

void *query_resolve(CFStringRef host, UInt32 port, CRLStreamResolved completion, void *context)
{
    struct query *q = create(port, completion, context);
    char name[longest_name];
    int cancel_state;

    if (!q) {
        return NULL;
    }
    cancel_state = plain_lock_take(&q->lock);
    if (!CFStringGetCString(host, name, sizeof name, kCFStringEncodingASCII) || name[0] == '\0') {
        note_answer(q, ARES_EBADNAME, 0, NULL); /* too long, or not in the letters of the domain name system */
    } else if (open_channel(q)) {
        resolver_ask_addresses(q->channel, name, note_answer, q);
    }
    set_timer(q);
    plain_lock_drop(&q->lock, cancel_state);
    return q;
}

void *query_resolve_address(CFDataRef address, CRLStreamResolved completion, void *context)
{
    struct query *q = create(0, completion, context);
    int cancel_state;

    if (!q) {
        return NULL;
    }
    cancel_state = plain_lock_take(&q->lock);
    if (open_channel(q)) {
        resolver_ask_names(q->channel, address, note_names, q);
    }
    set_timer(q);
    plain_lock_drop(&q->lock, cancel_state);
    return q;
}

/* ---- modes ---- */

/* Returns the index of the place, or the count of places. */
REQUIRES(the_plain_lock) static uint32_t find_place(const struct query *q, CFRunLoopRef loop, CFStringRef mode)
{
    uint32_t i = 0;

    while (i < q->place_count && (q->places[i].loop != loop || !CFEqual(q->places[i].mode, mode))) {
        i++;
    }
    return i;
}

/* Without memory the query is in no more modes than before; one that a stream waits in goes on by its other modes, or by waiting. */
REQUIRES(the_plain_lock) static void add_place(struct query *q, CFRunLoopRef loop, CFStringRef mode)
{
    struct query_place *grown = realloc(q->places, (q->place_count + 1) * sizeof *grown);
    CFStringRef copy = CFStringCreateCopy(kCFAllocatorSystemDefault, mode);

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

    if (index < q->place_count && --q->places[index].joins == 0) {
        CFRunLoopRemoveSource(loop, q->source, mode);
        release_place(q->places[index]);
        q->places[index] = q->places[--q->place_count];
    }
    plain_lock_drop(&q->lock, cancel_state);
}

/* ---- waiting and the end ---- */

/* Waits until another thread has told the answer, or it is there to be told. */
REQUIRES(the_plain_lock) static void wait_for_teller(struct query *q)
{
    while (q->state == query_telling && !pthread_equal(q->teller, pthread_self())) {
        (void)pthread_cond_wait(&q->told_or_freed, &q->lock.mutex);
    }
}

void query_wait(void *query)
{
    struct query *q = query;
    bool is_over = false;

    retain(q);
    while (!is_over) {
        struct pollfd wait_set = {.fd = q->wait_set, .events = POLLIN};
        int could_cancel;

        advance(q);
        could_cancel = plain_lock_take(&q->lock);
        wait_for_teller(q);
        is_over = q->state != query_asking;
        plain_lock_drop(&q->lock, could_cancel);
        if (!is_over) {
            (void)uncancelled(poll(&wait_set, 1, -1));
        }
    }
    release(q);
}

void query_free(void *query)
{
    struct query *q = query;
    int cancel_state = plain_lock_take(&q->lock);

    q->is_freed = true;
    wait_for_teller(q);
    plain_lock_drop(&q->lock, cancel_state);
    if (q->source) {
        CFRunLoopSourceInvalidate(q->source);
        CFRelease(q->source);
    }
    if (q->descriptor) {
        CFFileDescriptorInvalidate(q->descriptor);
        CFRelease(q->descriptor);
    }
    release(q);
}
