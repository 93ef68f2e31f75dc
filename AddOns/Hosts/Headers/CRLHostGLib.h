/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * A run loop inside GLib's main loop, as of GTK. `pkg-config --cflags --libs corerunloop glib-2.0`. CRLHost.h says what this means for both
 * loops, CRLGLibSource.h has the reverse.
 *
 *     (void)CRLHostGLibAttach(NULL, NULL, NULL);
 *     g_main_loop_run(loop);          or g_application_run
 */

#if !defined(CRL_HOST_GLIB_H)
#define CRL_HOST_GLIB_H 1

#if !defined(CRL_GLIB_IS_DECLARED)
#include <glib-unix.h>
#endif

#include "CRLHost.h"

CF_EXTERN_C_BEGIN

/** GLib's call when the loop's descriptor is readable. */
CF_INLINE gboolean CRLHostGLibServe(gint descriptor, GIOCondition condition, gpointer host)
{
    (void)descriptor, (void)condition;
    CRLHostServe((CRLHost *)host);
    return 1; /* G_SOURCE_CONTINUE */
}

/** GLib's call when the source is destroyed. */
CF_INLINE void CRLHostGLibEnd(gpointer host)
{
    CRLHostEnd((CRLHost *)host);
}

/**
 * Puts the calling thread's run loop into `context`; NULL is the default context. This thread has to be the one that runs the context.
 *
 * `stopped` and `info` are as of CRLHostCreate. With a GMainLoop: `(void (*)(void *))g_main_loop_quit` and the loop.
 * Ownership: the context has the source. `g_source_destroy` takes the run loop out of it, in a callback too.
 * Priority: G_PRIORITY_DEFAULT, as GLib's timeouts and invocations have it. `g_source_set_priority` changes it: a program whose main actor
 * never rests is redrawn by GTK all the same with GDK_PRIORITY_REDRAW.
 * Threads: the loop's own.
 * Errors: NULL as of CRLHostCreate.
 */
CF_INLINE GSource *CRLHostGLibAttach(GMainContext *context, void (*stopped)(void *info), void *info)
{
    CRLHost *host = CRLHostCreate(stopped, info);
    GSource *source;

    if (!host) {
        return NULL;
    }
    source = g_unix_fd_source_new(CRLRunLoopGetDescriptor(host->loop), (GIOCondition)1 /* G_IO_IN */);
    g_source_set_callback(source, (GSourceFunc)(void (*)(void))CRLHostGLibServe, host, CRLHostGLibEnd);
    (void)g_source_attach(source, context);
    g_source_unref(source);
    return source;
}

CF_EXTERN_C_END

#endif /* ! CRL_HOST_GLIB_H */
