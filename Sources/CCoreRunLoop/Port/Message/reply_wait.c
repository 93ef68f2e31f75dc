/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a reply; see reply_wait.h. No state. */
#include "Port/Message/reply_wait.h"

#include "Kernel/kernel.h"
#include "Loop/Run/pass.h"
#include "Loop/Run/quiet_wait.h"
#include "Port/Message/request.h"

static bool is_over(const struct reply_wait *wait)
{
    return atomic_load_explicit(wait->is_over, memory_order_acquire) != 0;
}

/* Takes the reply if it is there and comes by a channel. */
static void read_reply(const struct reply_wait *wait)
{
    if (wait->channel) {
        client_channel_read(wait->channel);
    }
}

/* Waits without a whole run, as long as the mode allows that. Returns true if the reply came. */
static bool wait_quietly(const struct reply_wait *wait, CFStringRef mode)
{
    struct client_channel *channel = wait->channel;
    struct quiet_wait quiet = {.awaited = wait->is_over, .deadline_ns = wait->deadline_ns, .now_ns = wait->now_ns};
    bool can = wait->deadline_ns != 0 && (!channel || client_channel_is_in(channel, wait->loop, mode));

    if (channel) {
        quiet.source = channel->source;
        quiet.awaited = channel->page ? &channel->page->size : NULL;
    }
    while (can && port_is_valid(wait->port) && quiet_wait_run(wait->loop, mode, &quiet)) {
        read_reply(wait);
        if (is_over(wait)) {
            return true;
        }
        /* A stale ring: the previous reply was read before its ring arrived; or a hostile server rings without replying. Wait again. */
        quiet.now_ns = kernel.monotonic_ns();
        can = quiet.now_ns < wait->deadline_ns;
    }
    return false;
}

/* Waits for the reply itself. For a thread whose loop has ended, or a mode that has nothing to wait for. */
static void wait_without_loop(const struct reply_wait *wait, int64_t until_ns)
{
    if (wait->channel) {
        client_channel_wait(wait->channel, until_ns);
    } else {
        (void)kernel.futex_wait(wait->is_over, 0, until_ns);
    }
}

/* Returns the end of a wait after which the caller has to look, because nothing would wake it for the reply or the end of the port. */
static int64_t end_of_slice(int64_t deadline_ns)
{
    int64_t slice_end_ns = deadline_ns == 0 ? 0 : kernel.monotonic_ns() + request_slice_ns;

    return slice_end_ns < deadline_ns ? slice_end_ns : deadline_ns;
}

/* Waits in whole runs, and takes the reply. */
static void wait_in_runs(const struct reply_wait *wait, CFStringRef mode)
{
    bool is_told = !wait->channel || client_channel_enter(wait->channel, wait->loop, mode); /* false: no memory to watch the channel */
    bool goes_on = port_is_valid(wait->port);

    if (wait->channel) {
        client_channel_look(wait->channel);
    }
    while (goes_on) { /* at least once, even if the reply is there: the mode's observers see a run */
        int64_t until_ns = is_told ? wait->deadline_ns : end_of_slice(wait->deadline_ns);
        bool has_run = run_in_mode_until(wait->loop, mode, until_ns, true, wait->is_over) != kCFRunLoopRunFinished;

        if (!has_run) {
            wait_without_loop(wait, end_of_slice(wait->deadline_ns));
        }
        if (!has_run || !is_told) {
            read_reply(wait);
        }
        goes_on =
            !is_over(wait) && port_is_valid(wait->port) && (wait->deadline_ns == kernel_never || kernel.monotonic_ns() < wait->deadline_ns);
    }
    read_reply(wait); /* a reply counts that was there before the time was over (rule 228) or the port ended (rule 231) */
    if (wait->channel) {
        client_channel_rest(wait->channel, wait->loop, mode);
    }
}

void reply_wait_run(const struct reply_wait *wait)
{
    /* The common modes stand for the default mode (rule 217). */
    CFStringRef mode = mode_name_is_common(wait->mode) ? kCFRunLoopDefaultMode : wait->mode;

    if (wait->channel && wait->channel->page) {
        reply_page_await(wait->channel->page);
    }
    if (!wait_quietly(wait, mode)) {
        wait_in_runs(wait, mode);
    }
}
