/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * A run loop inside libuv's loop, as of Node. `pkg-config --cflags --libs corerunloop libuv`. An add-on of Node uses Node's own libuv: it
 * takes uv.h from Node's headers, the loop from napi_get_uv_event_loop, and is not linked with another one. CRLHost.h says what this means
 * for both loops.
 *
 *     (void)CRLHostLibuvAttach(uv_default_loop(), NULL, NULL);
 *     uv_run(uv_default_loop(), UV_RUN_DEFAULT);
 */

#if !defined(CRL_HOST_LIBUV_H)
#define CRL_HOST_LIBUV_H 1

#if !defined(CRL_LIBUV_IS_DECLARED)
#include <uv.h>
#endif

#include "CRLHost.h"

CF_EXTERN_C_BEGIN

/** libuv's call when the loop's descriptor is readable. */
CF_INLINE void CRLHostLibuvServe(uv_poll_t *poll, int status, int events)
{
    CRLHost *host = (CRLHost *)uv_handle_get_data((uv_handle_t *)poll);

    (void)status, (void)events;
    if (host) {
        CRLHostServe(host);
    }
}

/** libuv's call when the handle is closed. */
CF_INLINE void CRLHostLibuvFree(uv_handle_t *poll)
{
    free(poll);
}

/**
 * Puts the calling thread's run loop into `loop`, which this thread runs.
 *
 * `stopped` and `info` are as of CRLHostCreate; with `(void (*)(void *))uv_stop` and `loop` a stop ends `uv_run`. The result keeps `uv_run`
 * from returning, as the main actor can get a job at any time; with `uv_unref((uv_handle_t *)result)`, which suits Node, it does not.
 * Ownership: CRLHostLibuvDetach frees the result; its user data is not the program's.
 * Threads: the loop's own.
 * Errors: NULL as of CRLHostCreate, or when libuv cannot poll the descriptor.
 */
CF_INLINE uv_poll_t *CRLHostLibuvAttach(uv_loop_t *loop, void (*stopped)(void *info), void *info)
{
    CRLHost *host = CRLHostCreate(stopped, info);
    uv_poll_t *poll = host ? (uv_poll_t *)malloc(uv_handle_size((uv_handle_type)8 /* UV_POLL */)) : NULL;

    if (!host) {
        return NULL;
    }
    if (!poll || uv_poll_init(loop, poll, CRLRunLoopGetDescriptor(host->loop)) != 0) {
        free(poll);
        CRLHostEnd(host);
        return NULL;
    }
    uv_handle_set_data((uv_handle_t *)poll, host);
    (void)uv_poll_start(poll, 1 /* UV_READABLE */, CRLHostLibuvServe);
    return poll;
}

/**
 * Takes the run loop out of its host, in a callback too. libuv frees `poll` in its next turn.
 *
 * Threads: the loop's own.
 */
CF_INLINE void CRLHostLibuvDetach(uv_poll_t *poll)
{
    CRLHost *host = (CRLHost *)uv_handle_get_data((uv_handle_t *)poll);

    uv_handle_set_data((uv_handle_t *)poll, NULL);
    uv_close((uv_handle_t *)poll, CRLHostLibuvFree);
    CRLHostEnd(host);
}

CF_EXTERN_C_END

#endif /* ! CRL_HOST_LIBUV_H */
