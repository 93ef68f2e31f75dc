/* SPDX-License-Identifier: Apache-2.0 */
#include "glib_declarations.h"

#include "../../Headers/CRLGLibSource.h"
#include "../../Headers/CRLHostGLib.h"
#include "glib_shims.h"

void *glib_attach(void *context, int priority, void (*stopped)(void *info), void *info)
{
    GSource *source = CRLHostGLibAttach((GMainContext *)context, stopped, info);

    if (source) {
        g_source_set_priority(source, priority);
        (void)g_source_ref(source); /* its context may go first */
    }
    return source;
}

void glib_detach(void *source)
{
    g_source_destroy((GSource *)source);
}

void glib_release(void *source)
{
    g_source_unref((GSource *)source);
}

void *glib_source_create(void *context)
{
    return CRLGLibSourceCreate((GMainContext *)context);
}
