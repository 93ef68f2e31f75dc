/* SPDX-License-Identifier: Apache-2.0 */
/* A companion that polls the descriptor; see fake_companion.h. */
#include "Loop/fake_companion.h"

#include <errno.h>
#include <poll.h>

#include "harness.h"

struct fake_companion fake_companion;

static __thread bool thread_has_companion;

static bool exists(bool is_main)
{
    (void)is_main;
    return thread_has_companion;
}

static void join(bool is_main)
{
    (void)is_main;
    fake_companion.joins++;
}

static bool is_empty(CFRunLoopMode mode)
{
    (void)mode;
    return !fake_companion.has_items;
}

/*
 * A source ends the turn, even if it need not, and so does the descriptor. What else the action does may leave the companion with nothing
 * to wait for.
 */
static bool serve(CFRunLoopMode mode, int descriptor, bool ends_after_source, bool ends_when_empty)
{
    struct pollfd wanted = {.fd = descriptor, .events = POLLIN};
    bool had_items = fake_companion.has_items;

    if (descriptor < 0) {
        fake_companion.looks++;
    } else {
        fake_companion.sleeps++;
    }
    if (fake_companion.action && fake_companion.action(mode, descriptor >= 0)) {
        return ends_after_source;
    }
    if (descriptor >= 0 && !(ends_when_empty && had_items && !fake_companion.has_items)) {
        EXPECT(poll(&wanted, 1, (int)(test_patience_s() * 1000)) > 0 || errno == EINTR);
    }
    return false;
}

static const struct companion companion = {.exists = exists, .join = join, .serve = serve, .is_empty = is_empty};

void fake_companion_begin(bool appears)
{
    fake_companion = (struct fake_companion){.action = NULL};
    companion_set(&companion);
    if (appears) {
        thread_has_companion = true;
        companion_appear(false);
    }
}

void fake_companion_end(void)
{
    companion_set(NULL);
    thread_has_companion = false;
}
