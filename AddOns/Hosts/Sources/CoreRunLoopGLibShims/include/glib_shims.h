/* SPDX-License-Identifier: Apache-2.0 */
/* CRLHostGLib.h and CRLGLibSource.h for Swift, without GLib's types. Contexts and sources are GLib's, and NULL is the default context. */
#ifndef CORERUNLOOP_GLIB_SHIMS_H
#define CORERUNLOOP_GLIB_SHIMS_H

void *glib_attach(void *context, int priority, void (*stopped)(void *info), void *info);
void glib_detach(void *source);
void glib_release(void *source); /* gives back what glib_attach has returned; the context keeps the source */
void *glib_source_create(void *context); /* a CFRunLoopSource that the caller releases, or NULL */

#endif
