/* SPDX-License-Identifier: Apache-2.0 */
/* See stream_claim.h. */
#include "Stream/Core/stream_claim.h"

bool stream_claim(struct stream *s)
{
    bool was_claimed;

    stream_lock(s);
    stream_check_invariants(s);
    was_claimed = s->is_claimed;
    s->is_claimed = true;
    stream_unlock(s);
    return !was_claimed;
}

/* Tells the kind to close if it is time. That takes a claim, so that only one thread does so. Drops the lock. */
RELEASES(the_item_lock) static void close_if_left(struct stream *s)
{
    bool closes = s->status == kCFStreamStatusClosed && s->is_opened && !s->is_claimed && s->withdrawals == 0;

    s->is_claimed |= closes;
    stream_check_invariants(s);
    stream_unlock(s);
    if (!closes) {
        return;
    }
    if (s->kind->close) {
        s->kind->close(s);
    }
    stream_lock(s);
    invariant(s->is_claimed && s->is_opened && s->withdrawals == 0);
    s->is_opened = false;
    s->is_claimed = false;
    atomic_store_explicit(&s->descriptor, -1, memory_order_relaxed);
    stream_unlock(s);
}

bool stream_unclaim_and_unlock(struct stream *s)
{
    bool is_closed = s->status == kCFStreamStatusClosed;

    invariant(s->is_claimed);
    s->is_transferring = false;
    s->is_claimed = false;
    close_if_left(s);
    return is_closed;
}

void stream_unclaim(struct stream *s)
{
    stream_lock(s);
    (void)stream_unclaim_and_unlock(s);
}

void stream_begin_withdrawal(struct stream *s)
{
    s->withdrawals++;
    invariant(s->withdrawals > 0); /* the count has not run over */
}

void stream_end_withdrawal(struct stream *s)
{
    stream_lock(s);
    invariant(s->withdrawals > 0);
    s->withdrawals--;
    close_if_left(s);
}
