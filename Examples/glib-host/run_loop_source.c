/* SPDX-License-Identifier: Apache-2.0 */
/* GLib's prepare, check, dispatch and finalize map to CRLRunLoopPrepare, the descriptor, CRLRunLoopDispatch and CRLRunLoopLeave. */
#include "run_loop_source.h"

#include <CRLRunLoop.h>

struct run_loop_source {
    GSource source;
    CFRunLoopRef loop;
    CFStringRef mode;
    gpointer descriptor; /* GLib's tag */
    void (*ended)(CFRunLoopRunResult result, gpointer data);
    gpointer data;
    gboolean is_over;
};

/* GLib's timeouts are in milliseconds; -1 for none. The descriptor is readable on time even so. */
static gboolean prepare(GSource *base, gint *timeout)
{
    struct run_loop_source *source = (struct run_loop_source *)base;
    int64_t left_ns;

    if (!CRLRunLoopPrepare(source->loop, source->mode)) {
        source->is_over = TRUE;
        return TRUE;
    }
    left_ns = CRLRunLoopGetTimeout(source->loop);
    *timeout = left_ns < 0 ? -1 : (gint)MIN((left_ns + 999999) / 1000000, G_MAXINT);
    return left_ns == 0;
}

static gboolean check(GSource *base)
{
    struct run_loop_source *source = (struct run_loop_source *)base;

    return source->is_over || (g_source_query_unix_fd(base, source->descriptor) & G_IO_IN) != 0 || CRLRunLoopGetTimeout(source->loop) == 0;
}

static gboolean dispatch(GSource *base, GSourceFunc callback, gpointer data)
{
    struct run_loop_source *source = (struct run_loop_source *)base;
    CFRunLoopRunResult result = source->is_over ? kCFRunLoopRunFinished : CRLRunLoopDispatch(source->loop);

    (void)callback, (void)data;
    if (!result) {
        return G_SOURCE_CONTINUE;
    }
    CRLRunLoopLeave(source->loop);
    source->ended(result, source->data);
    return G_SOURCE_REMOVE;
}

static void finalize(GSource *base)
{
    struct run_loop_source *source = (struct run_loop_source *)base;

    CRLRunLoopLeave(source->loop); /* nothing, if it has ended */
    CFRelease(source->mode);
}

static GSourceFuncs functions = {.prepare = prepare, .check = check, .dispatch = dispatch, .finalize = finalize};

GSource *run_loop_source_new(CFStringRef mode, void (*ended)(CFRunLoopRunResult result, gpointer data), gpointer data)
{
    GSource *base = g_source_new(&functions, sizeof(struct run_loop_source));
    struct run_loop_source *source = (struct run_loop_source *)base;

    source->loop = CFRunLoopGetCurrent();
    source->mode = (CFStringRef)CFRetain(mode);
    source->descriptor = g_source_add_unix_fd(base, CRLRunLoopGetDescriptor(source->loop), G_IO_IN);
    source->ended = ended;
    source->data = data;
    g_source_set_can_recurse(base, TRUE);
    return base;
}
