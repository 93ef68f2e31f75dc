/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CRLHostGLib.h and CRLGLibSource.h need of GLib. SwiftPM compiles them without GLib's headers, as a package that names those has a
 * warning on each machine without them. The tests compile this file behind GLib's own headers, which refuses what differs.
 */
#ifndef GLIB_DECLARATIONS_H
#define GLIB_DECLARATIONS_H

#define CRL_GLIB_IS_DECLARED 1

typedef int gint;
typedef gint gboolean;
typedef unsigned int guint;
typedef void *gpointer;
typedef struct _GMainContext GMainContext;
typedef struct _GSource GSource;
typedef gboolean (*GSourceFunc)(gpointer data);
typedef void (*GDestroyNotify)(gpointer data);
#ifndef __G_LIB_H__
typedef unsigned int GIOCondition;
typedef struct _GPollFD {
    gint fd;
    unsigned short events;
    unsigned short revents;
} GPollFD;
#endif

extern GSource *g_unix_fd_source_new(gint descriptor, GIOCondition condition);
extern void g_source_set_callback(GSource *source, GSourceFunc function, gpointer data, GDestroyNotify notify);
extern guint g_source_attach(GSource *source, GMainContext *context);
extern GSource *g_source_ref(GSource *source);
extern void g_source_unref(GSource *source);
extern void g_source_destroy(GSource *source);
extern void g_source_set_priority(GSource *source, gint priority);
extern GMainContext *g_main_context_default(void);
extern GMainContext *g_main_context_ref(GMainContext *context);
extern void g_main_context_unref(GMainContext *context);
extern gboolean g_main_context_acquire(GMainContext *context);
extern void g_main_context_release(GMainContext *context);
extern gboolean g_main_context_prepare(GMainContext *context, gint *priority);
extern gint g_main_context_query(GMainContext *context, gint max_priority, gint *timeout, GPollFD *descriptors, gint count);
extern gboolean g_main_context_check(GMainContext *context, gint max_priority, GPollFD *descriptors, gint count);
extern void g_main_context_dispatch(GMainContext *context);

#endif
