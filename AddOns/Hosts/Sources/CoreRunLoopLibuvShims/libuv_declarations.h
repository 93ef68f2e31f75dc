/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CRLHostLibuv.h needs of libuv, whose headers are Node's in an add-on of Node. SwiftPM compiles it without any. The tests compile
 * this file behind libuv's own header, which refuses what differs.
 */
#ifndef LIBUV_DECLARATIONS_H
#define LIBUV_DECLARATIONS_H

#include <stddef.h>

#define CRL_LIBUV_IS_DECLARED 1

typedef struct uv_loop_s uv_loop_t;
typedef struct uv_handle_s uv_handle_t;
typedef struct uv_poll_s uv_poll_t;
#ifndef UV_H
typedef unsigned int uv_handle_type;
#endif

extern uv_loop_t *uv_default_loop(void);
extern size_t uv_handle_size(uv_handle_type type);
extern void *uv_handle_get_data(const uv_handle_t *handle);
extern void uv_handle_set_data(uv_handle_t *handle, void *data);
extern void uv_close(uv_handle_t *handle, void (*closed)(uv_handle_t *handle));
extern void uv_unref(uv_handle_t *handle);
extern int uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int descriptor);
extern int uv_poll_start(uv_poll_t *poll, int events, void (*ready)(uv_poll_t *poll, int status, int events));

#endif
