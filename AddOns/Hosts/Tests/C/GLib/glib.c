/* SPDX-License-Identifier: Apache-2.0 */
/* GLib as the host. */
#include "host.h"

#include <CRLHostGLib.h>

const bool host_can_nest = true;
static GMainLoop *loop;
static GSource *source;
static void (*functions[4])(void);
static unsigned function_count;
static unsigned long turns;

/* A source that only counts: GLib prepares each one in each turn. */
static gboolean count_turn(GSource *counter, gint *timeout)
{
    (void)counter;
    *timeout = -1;
    turns++;
    return FALSE;
}

static gboolean dispatch_nothing(GSource *counter, GSourceFunc callback, gpointer data)
{
    (void)counter, (void)callback, (void)data;
    return TRUE;
}

static GSourceFuncs counter_functions = {.prepare = count_turn, .dispatch = dispatch_nothing};

void host_make(void)
{
    loop = g_main_loop_new(NULL, FALSE);
    (void)g_source_attach(g_source_new(&counter_functions, sizeof(GSource)), NULL);
}

bool host_attach(void (*stopped)(void *info), void *info)
{
    GSource *attached = CRLHostGLibAttach(NULL, stopped, info);

    source = attached ? attached : source;
    return attached != NULL;
}

void host_detach(void)
{
    g_source_destroy(source);
}

void host_run(void)
{
    g_main_loop_run(loop);
}

void host_quit(void)
{
    g_main_loop_quit(loop);
}

void host_run_nested(void)
{
    (void)g_main_context_iteration(NULL, TRUE);
}

static gboolean tick(gpointer index)
{
    functions[GPOINTER_TO_UINT(index)]();
    return G_SOURCE_CONTINUE;
}

void host_every(unsigned interval_ms, void (*function)(void))
{
    functions[function_count] = function;
    (void)g_timeout_add(interval_ms, tick, GUINT_TO_POINTER(function_count++));
}

unsigned long host_turns(void)
{
    return turns;
}
