/* SPDX-License-Identifier: Apache-2.0 */
#include "libuv_declarations.h"

#include "../../Headers/CRLHostLibuv.h"
#include "libuv_shims.h"

void *libuv_attach(void *loop, bool keeps_running, void (*stopped)(void *info), void *info)
{
    uv_poll_t *poll = CRLHostLibuvAttach(loop ? (uv_loop_t *)loop : uv_default_loop(), stopped, info);

    if (poll && !keeps_running) {
        uv_unref((uv_handle_t *)poll);
    }
    return poll;
}

void libuv_detach(void *poll)
{
    CRLHostLibuvDetach((uv_poll_t *)poll);
}
