/* SPDX-License-Identifier: Apache-2.0 */
/* GLib as a peer; see peer.h. Signals and timers are sources with a ready time, which is what its manual advises for both. */
#include <glib-unix.h>
#include <glib.h>

#define PEER_LOOKS 1
#define PEER_TIMERS_MOST 100000
#define PEER_SOURCES_MOST 0
#define PEER_EVENTS_MOST 0
#define PEER_SOCKETS_MOST 1000
#define PEER_READS_EVENTS 0
#define PEER_SIGNAL_BYTES 0

struct peer_loop {
    GMainContext *handle;
    bool is_stopped;
};

struct peer_source {
    GSource base;
    peer_function function;
    void *info;
    gint64 interval_us;
    bool is_watch;
};

struct peer_signal {
    GSource *handle;
};

struct peer_timer {
    GSource *handle;
    GMainContext *context;
};

struct peer_watch {
    GSource *handle;
};

static void peer_loop_begin(struct peer_loop *loop)
{
    loop->handle = g_main_context_new();
    g_main_context_push_thread_default(loop->handle);
    loop->is_stopped = false;
}

static void peer_look(struct peer_loop *loop)
{
    (void)g_main_context_iteration(loop->handle, FALSE);
}

static void peer_run(struct peer_loop *loop)
{
    loop->is_stopped = false;
    while (!loop->is_stopped) {
        (void)g_main_context_iteration(loop->handle, TRUE);
    }
}

static void peer_stop(struct peer_loop *loop)
{
    loop->is_stopped = true;
}

static gboolean glib_dispatch(GSource *base, GSourceFunc unused, gpointer unused_info)
{
    struct peer_source *source = (struct peer_source *)(void *)base;

    (void)unused, (void)unused_info;
    if (!source->is_watch) {
        g_source_set_ready_time(base, source->interval_us ? g_source_get_ready_time(base) + source->interval_us : -1);
    }
    source->function(source->info);
    return G_SOURCE_CONTINUE;
}

static GSource *glib_source(peer_function function, void *info, double interval, bool is_watch)
{
    static GSourceFuncs functions = {.dispatch = glib_dispatch};
    GSource *base = g_source_new(&functions, sizeof(struct peer_source));
    struct peer_source *source = (struct peer_source *)(void *)base;

    source->function = function;
    source->info = info;
    source->interval_us = (gint64)(interval * 1e6);
    source->is_watch = is_watch;
    return base;
}

static void peer_signal_add(struct peer_loop *loop, struct peer_signal *signal, peer_function function, void *info)
{
    signal->handle = glib_source(function, info, 0, false);
    (void)g_source_attach(signal->handle, loop->handle);
}

static void peer_signal_send(struct peer_signal *signal)
{
    g_source_set_ready_time(signal->handle, 0);
}

static gboolean glib_posted(gpointer info)
{
    ((peer_function)info)(NULL);
    return G_SOURCE_REMOVE;
}

static void peer_post(struct peer_loop *loop, peer_function function, void *info)
{
    GSource *idle = g_idle_source_new();

    (void)info;
    g_source_set_callback(idle, glib_posted, (gpointer)function, NULL);
    (void)g_source_attach(idle, loop->handle);
    g_source_unref(idle);
}

static gint64 glib_date(double seconds)
{
    return g_get_monotonic_time() + (gint64)(seconds * 1e6);
}

static void peer_timer_make(struct peer_loop *loop, struct peer_timer *timer, double seconds, double interval, peer_function function,
                            void *info)
{
    timer->handle = glib_source(function, info, interval, false);
    timer->context = loop->handle;
    g_source_set_ready_time(timer->handle, glib_date(seconds));
}

static void peer_timer_add(struct peer_timer *timer)
{
    (void)g_source_attach(timer->handle, timer->context);
}

static void peer_timer_move(struct peer_timer *timer, double seconds)
{
    g_source_set_ready_time(timer->handle, glib_date(seconds));
}

static void peer_timer_cancel(struct peer_timer *timer)
{
    g_source_destroy(timer->handle);
    g_source_unref(timer->handle);
}

static void peer_event_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    watch->handle = glib_source(function, info, 0, true);
    (void)g_source_add_unix_fd(watch->handle, descriptor, G_IO_IN);
    (void)g_source_attach(watch->handle, loop->handle);
}

static void peer_socket_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    peer_event_add(loop, watch, descriptor, function, info);
}
