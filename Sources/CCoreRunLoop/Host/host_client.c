/* SPDX-License-Identifier: Apache-2.0 */
/* See host_client.h. No lock is held over the client's functions. */
#include "Host/host_client.h"

#include <stdlib.h>

#include "Host/question.h"
#include "Loop/Core/callout_cleanup.h"
#include "Loop/Core/thread_loop.h"

void host_client_release(const void *object)
{
    struct host_client *client = (struct host_client *)(uintptr_t)object;

    if (client && atomic_fetch_sub_explicit(&client->references, 1, memory_order_acq_rel) == 1) {
        if (client->context.release) {
            client->context.release(client->context.info);
        }
        free(client);
    }
}

static struct host_client *make_client(CFHostClientCallBack callback, const CFHostClientContext *context)
{
    struct host_client *client = malloc(sizeof *client);

    if (client) {
        atomic_init(&client->references, 1);
        client->callback = callback;
        client->context = *context;
        if (context->retain) {
            client->context.info = (void *)(uintptr_t)context->retain(context->info);
        }
    }
    return client;
}

bool host_client_set(CFHostRef host, CFHostClientCallBack callback, const CFHostClientContext *context)
{
    struct host_client *client = NULL;
    struct host_client *old;

    if (callback && context) {
        client = make_client(callback, context);
        if (!client) {
            return false;
        }
    }
    host_lock(host);
    old = host->client;
    host->client = client;
    host_unlock(host);
    host_client_release(old);
    return true;
}

/* Returns the client with a reference, or NULL. */
REQUIRES(the_item_lock) static struct host_client *retain_client(CFHostRef host)
{
    if (host->client) {
        atomic_fetch_add_explicit(&host->client->references, 1, memory_order_relaxed);
    }
    return host->client;
}

CFStringRef host_client_describe(CFHostRef host)
{
    struct host_client *client;
    CFStringRef description = NULL;
    CFStringRef text = NULL;

    host_lock(host);
    client = retain_client(host);
    host_unlock(host);
    if (client && client->context.copyDescription) {
        description = client->context.copyDescription(client->context.info);
    }
    if (description) {
        text = CFStringCreateWithFormat(NULL, NULL, CFSTR(", client = %@"), description);
        CFRelease(description);
    }
    host_client_release(client);
    return text;
}

/* Takes the answer: the host is idle then. Returns its question, or NULL if there is none to tell. */
REQUIRES(the_item_lock) static struct question *take_answer(CFHostRef host)
{
    struct question *question = host->question && host->question->is_answered ? host->question : NULL;

    invariant_held(item_lock(host));
    if (question) {
        host->question = NULL;
    }
    return question;
}

static void call(CFHostRef host, const struct host_client *client, CFHostInfoType info, CFStreamError error)
{
    CFRunLoopRef loop = thread_loop_if_any();
    uint32_t host_mark = cleanup_push(loop, object_release, host);
    uint32_t client_mark = cleanup_push(loop, host_client_release, client);

    invariant_not_held(item_lock(host));
    client->callback(host, info, &error, client->context.info);
    cleanup_pop(loop, client_mark);
    cleanup_pop(loop, host_mark);
}

void host_perform(void *info)
{
    CFHostRef host = host_link_retain(info);
    struct question *question;
    struct host_client *client = NULL;
    CFStreamError error = {0, 0};

    if (!host) {
        return;
    }
    host_lock(host);
    question = take_answer(host);
    if (question) {
        client = retain_client(host);
        error = question->error;
    }
    host_unlock(host);
    if (question) {
        CFHostInfoType asked = question->info;

        question_abandon(question);
        if (client) {
            call(host, client, asked, error);
            host_client_release(client);
        }
    }
    object_release(host);
}
