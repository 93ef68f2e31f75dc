/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a host, and its source. See host.h. */
#include "Host/host.h"

#include <stdlib.h>

#include "Host/host_client.h"
#include "Host/question.h"
#include "Loop/Run/thread_registry.h"

static void free_link(const void *info)
{
    free((void *)(uintptr_t)info);
}

/* ---- the object ---- */

/* Nothing else refers to the host, so its fields are read without the lock (NOT_CHECKED). */
NOT_CHECKED static void finalize(CFTypeRef object)
{
    CFHostRef host = (CFHostRef)(uintptr_t)object;

    if (host->source) {
        host_link_cut(host->link); /* before the source may free it */
        CFRunLoopSourceInvalidate(host->source);
        CFRelease(host->source);
    }
    if (host->question) {
        question_abandon(host->question);
    }
    scheduled_modes_free(&host->modes);
    host_client_release(host->client);
    for (int info = 0; info < host_info_count; info++) {
        object_release_if_any(host->known[info]);
    }
    object_release_if_any(host->name);
}

static CFStringRef copy_description(CFTypeRef object)
{
    CFHostRef host = (CFHostRef)(uintptr_t)object;
    CFStringRef client = host_client_describe(host);
    CFTypeRef subject = host->name;
    unsigned modes;
    bool is_asking;
    CFStringRef text;

    host_lock(host);
    if (!subject) {
        subject = host->known[kCFHostAddresses]; /* that of a host without a name is never replaced */
    }
    modes = host->modes.count;
    is_asking = host->question;
    host_unlock(host);
    text = CFStringCreateWithFormat(NULL, NULL, CFSTR("<CFHost %p>{%@, %s, scheduled in modes = %u%@}"), object, subject,
                                    is_asking ? "asking" : "idle", modes, client ? client : CFSTR(""));
    object_release_if_any(client);
    return text;
}

const struct object_class host_class = {
    .type_id = object_type_host,
    .name = "CFHost",
    .finalize = finalize,
    .copy_description = copy_description,
};

/* Nobody else knows the host yet (NOT_CHECKED). */
NOT_CHECKED static bool make_source(CFHostRef host)
{
    CFRunLoopSourceContext context = {.release = free_link, .perform = host_perform};

    host->link = calloc(1, sizeof *host->link);
    if (!host->link) {
        return false;
    }
    host_link_init(host->link, host);
    context.info = host->link;
    host->source = CFRunLoopSourceCreate(NULL, 0, &context);
    if (!host->source) {
        free(host->link);
    }
    return host->source;
}

NOT_CHECKED CFHostRef host_create(CFAllocatorRef allocator, CFStringRef name, CFTypeRef known[host_info_count])
{
    CFHostRef host;

    invariant(name || known[kCFHostAddresses]);
    thread_registry_prepare(); /* its mark frees the locks of items in a child that ran no handlers of fork */
    host = object_create(allocator, &host_class, sizeof *host);
    for (int info = 0; info < host_info_count; info++) {
        if (host) {
            host->known[info] = known[info];
        } else {
            object_release_if_any(known[info]);
        }
    }
    if (!host) {
        return NULL;
    }
    host->name = name ? CFStringCreateCopy(allocator, name) : NULL;
    if ((name && !host->name) || !make_source(host)) {
        CFRelease(host);
        return NULL;
    }
    return host;
}
