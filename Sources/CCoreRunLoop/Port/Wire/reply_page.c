/* SPDX-License-Identifier: Apache-2.0 */
/* Pages for replies, and their bells; see reply_page.h. */
#include "Port/Wire/reply_page.h"

#include <errno.h>
#include <string.h>

#include "Kernel/kernel.h"

/* ---- the client's ---- */

static int set_with(int channel)
{
    int set = kernel.set_create();
    int result = set < 0 ? set : kernel.set_add(set, channel, kernel_readable, 0);

    if (set >= 0 && result < 0) {
        (void)kernel.close(set);
    }
    return result < 0 ? result : set;
}

/*
 * Whether a set in a set is reported once, as a thread needs that waits for a reply in its loop. Up to Linux 5.4 the outer set reports
 * again at each wait as long as anything in the inner one is ready, and a bell stays ready for ever.
 */
static bool nested_sets_are_quiet(void)
{
    static _Atomic int reports; /* of one ring, in two waits; 0: not known yet */
    int known = atomic_load_explicit(&reports, memory_order_relaxed);

    if (known == 0) {
        const int made[] = {kernel.event_create(), kernel.set_create(), kernel.set_create()};
        struct kernel_event event;

        if (made[0] >= 0 && made[1] >= 0 && made[2] >= 0 && kernel.set_add_edge(made[1], made[0], 0) == 0 &&
            kernel.set_add_edge(made[2], made[1], 0) == 0 && kernel.event_post(made[0]) == 0 &&
            kernel.set_wait(made[2], &event, 1, 0) == 1) {
            int more = kernel.set_wait(made[2], &event, 1, 0);

            known = more < 0 ? 0 : 1 + more;
            atomic_store_explicit(&reports, known, memory_order_relaxed);
        }
        for (int i = 0; i < 3; i++) {
            if (made[i] >= 0) {
                (void)kernel.close(made[i]);
            }
        }
    }
    return known == 1;
}

int reply_page_create(int channel, struct reply_page **ret_page, int *ret_memory, int *ret_set)
{
    void *address;
    int memory;
    int result = nested_sets_are_quiet() ? shared_page_create(&address, &memory) : -EOPNOTSUPP;

    if (result < 0) {
        return result;
    }
    result = *ret_set = set_with(channel);
    if (result < 0) {
        reply_page_release(address);
        (void)kernel.close(memory);
        return result;
    }
    *ret_page = address;
    *ret_memory = memory;
    return 0;
}

void reply_page_await(struct reply_page *page)
{
    shared_page_await(&page->is_awaited, 1);
}

uint32_t reply_page_take(const struct reply_page *page, uint8_t *ret_packet)
{
    uint32_t size = atomic_load_explicit(&page->size, memory_order_acquire);

    if (size <= reply_page_room) {
        memcpy(ret_packet, page->packet, size);
    }
    return size;
}

/* ---- the server's ---- */

/* The kernel returns -EINVAL, too, if `set` is no wait set. */
static int hang_bell(int set)
{
    int bell = kernel.event_create();
    int result = bell < 0 ? bell : kernel.set_add_edge(set, bell, 0);

    if (bell >= 0 && result < 0) {
        (void)kernel.close(bell);
    }
    return result < 0 ? result : bell;
}

int reply_page_adopt(int memory, int set, struct reply_page **ret_page, int *ret_bell)
{
    void *address = NULL;
    int result = shared_page_adopt(memory, &address);

    if (result == 0) {
        result = *ret_bell = hang_bell(set);
    }
    if (result < 0) {
        reply_page_release(address);
        return result;
    }
    *ret_page = address;
    return 0;
}

bool reply_page_put(struct reply_page *page, int bell, const struct wire_frame *frame, const void *data)
{
    uint64_t data_size = data ? frame->length : 0;

    if (data_size > reply_page_room - wire_header_size) {
        return false;
    }
    wire_encode(frame, page->packet);
    if (data_size > 0) {
        memcpy(page->packet + wire_header_size, data, (size_t)data_size);
    }
    atomic_store_explicit(&page->size, wire_header_size + (uint32_t)data_size, memory_order_release);
    if (shared_page_awaited(&page->is_awaited)) {
        (void)kernel.event_post(bell); /* does not fail: the counter cannot become full in any lifetime */
    }
    return true;
}

/* ---- both sides' ---- */

void reply_page_release(struct reply_page *page)
{
    shared_page_release(page);
}
