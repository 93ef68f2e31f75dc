/* SPDX-License-Identifier: Apache-2.0 */
/* Requests whose sender stops waiting; see asker.h. */
#include "asker.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "CRLRunLoop.h"
#include "Support/invariant.h"

/* Names the request by its number, because it may have been answered by the time its sender is seen to have left. */
struct port_asker {
    void (*left)(struct CRLNatsBridge *bridge, struct pending_answer *pending); /* constant */
    struct bridge_life *life; /* constant; a reference */
    CFRunLoopRef loop; /* constant; a reference: the bridge's */
    uint64_t number; /* constant; the request's */
    _Atomic int references; /* any thread; the deferred reply has one, and the loop while it has a function to call */
};

static void release_asker(void *info)
{
    struct port_asker *asker = info;
    int before = atomic_fetch_sub(&asker->references, 1);

    invariant(before > 0);
    if (before == 1) {
        bridge_life_release(asker->life);
        CFRelease(asker->loop);
        free(asker);
    }
}

static void end_request_on_loop(void *info)
{
    struct port_asker *asker = info;
    struct CRLNatsBridge *bridge = asker->life->bridge;
    struct pending_answer *pending = bridge ? pending_answers_find(&bridge->pending, asker->number) : NULL;

    if (pending && pending->reply) {
        asker->left(bridge, pending);
    }
}

/* Any thread. Only the bridge's thread may look whether the bridge still lives. */
static void on_asker_left(void *info)
{
    struct port_asker *asker = info;
    int before = atomic_fetch_add(&asker->references, 1);

    invariant(before > 0); /* the reply's */
    CRLRunLoopPerformFunction(asker->loop, kCFRunLoopDefaultMode, end_request_on_loop, asker, release_asker);
    CFRunLoopWakeUp(asker->loop);
}

void asker_watch(struct CRLNatsBridge *bridge, const struct pending_answer *pending,
                 void (*left)(struct CRLNatsBridge *bridge, struct pending_answer *pending))
{
    struct port_asker *asker = malloc(sizeof *asker);

    invariant(pending->reply); /* only a request has a sender that waits */
    if (asker) { /* without memory for it, the request goes on until it is answered */
        asker->left = left;
        asker->life = bridge_life_retain(bridge->life);
        asker->loop = (CFRunLoopRef)(uintptr_t)CFRetain(CFRunLoopGetCurrent());
        asker->number = pending->number;
        atomic_init(&asker->references, 1);
        (void)CRLDeferredReplySetLeftCallBack(pending->reply, on_asker_left, asker, release_asker);
    }
}
