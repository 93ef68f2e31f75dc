/* SPDX-License-Identifier: Apache-2.0 */
/* Askers that leave; see asker.h. */
#include "asker.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "CRLRunLoop.h"

/* An asker has left. The info names it by its number, as it may have got its reply meanwhile. */
struct left_asker {
    void (*left)(struct CRLNatsBridge *bridge, struct awaited *awaited);
    struct bridge_life *life; /* a reference */
    CFRunLoopRef loop; /* a reference */
    uint64_t number;
    _Atomic int references; /* the reply's, and one while the loop is to be told */
};

static void release_left(void *info)
{
    struct left_asker *asker = info;

    if (atomic_fetch_sub(&asker->references, 1) == 1) {
        bridge_life_release(asker->life);
        CFRelease(asker->loop);
        free(asker);
    }
}

static void tell_left(void *info)
{
    struct left_asker *asker = info;
    struct CRLNatsBridge *bridge = asker->life->bridge;
    struct awaited *awaited = bridge ? awaited_find(&bridge->awaited, asker->number) : NULL;

    if (awaited && awaited->reply) {
        asker->left(bridge, awaited);
    }
}

/* Any thread. The bridge's thread looks whether the bridge is still there. */
static void asker_left(void *info)
{
    struct left_asker *asker = info;

    (void)atomic_fetch_add(&asker->references, 1);
    CRLRunLoopPerformFunction(asker->loop, kCFRunLoopDefaultMode, tell_left, asker, release_left);
    CFRunLoopWakeUp(asker->loop);
}

void asker_watch(struct CRLNatsBridge *bridge, const struct awaited *awaited,
                 void (*left)(struct CRLNatsBridge *bridge, struct awaited *awaited))
{
    struct left_asker *asker = malloc(sizeof *asker);

    if (asker) { /* without it the request goes on until it is answered */
        asker->left = left;
        asker->life = bridge_life_retain(bridge->life);
        asker->loop = (CFRunLoopRef)(uintptr_t)CFRetain(CFRunLoopGetCurrent());
        asker->number = awaited->number;
        atomic_init(&asker->references, 1);
        (void)CRLDeferredReplySetLeftCallBack(awaited->reply, asker_left, asker, release_left);
    }
}
