/* SPDX-License-Identifier: Apache-2.0 */
/* libuv's streams; see peers.h. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "streams/peers.h"

static void require(int result, const char *what)
{
    if (result < 0) {
        (void)fprintf(stderr, "%s: %s\n", what, uv_strerror(result));
        exit(1);
    }
}

static void open_pipe(uv_loop_t *loop, uv_pipe_t *pipe, int descriptor)
{
    require(uv_pipe_init(loop, pipe, 0), "uv_pipe_init");
    require(uv_pipe_open(pipe, descriptor), "uv_pipe_open");
}

/* ---- echo ---- */

static uint8_t message[message_size];

static void give_buffer(uv_handle_t *handle, size_t size, uv_buf_t *ret_buffer)
{
    (void)handle, (void)size;
    *ret_buffer = uv_buf_init((char *)message, sizeof message);
}

static void echo(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    if (size > 0) {
        uv_buf_t answer = uv_buf_init(buffer->base, (unsigned)size);

        require(uv_try_write(stream, &answer, 1) == size ? 0 : UV_EAGAIN, "uv_try_write");
    } else if (size < 0) {
        uv_close((uv_handle_t *)stream, NULL);
    }
}

void serve_by_libuv(int descriptor)
{
    uv_loop_t loop;
    uv_pipe_t pipe;

    require(uv_loop_init(&loop), "uv_loop_init");
    open_pipe(&loop, &pipe, descriptor);
    require(uv_read_start((uv_stream_t *)&pipe, give_buffer, echo), "uv_read_start");
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
}

/* ---- blocks ---- */

struct sender {
    uv_pipe_t pipe;
    uv_write_t request;
    uv_buf_t block;
    int left;
};

static void send_block(uv_write_t *request, int status)
{
    struct sender *sender = request->data;

    require(status, "uv_write");
    if (sender->left-- > 0) {
        require(uv_write(request, (uv_stream_t *)&sender->pipe, &sender->block, 1, send_block), "uv_write");
    } else {
        uv_close((uv_handle_t *)&sender->pipe, NULL);
    }
}

void send_by_libuv(int descriptor)
{
    struct sender sender = {.block = uv_buf_init(calloc(1, block_size), block_size), .left = blocks};
    uv_loop_t loop;

    sender.request.data = &sender;
    require(uv_loop_init(&loop), "uv_loop_init");
    open_pipe(&loop, &sender.pipe, descriptor);
    send_block(&sender.request, 0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    free(sender.block.base);
}

/* ---- waiting ---- */

void wait_by_libuv(const int *descriptors, int count)
{
    uv_loop_t *loop = uv_default_loop();

    for (int i = 0; i < count; i++) {
        uv_pipe_t *pipe = malloc(sizeof *pipe);

        open_pipe(loop, pipe, descriptors[i]);
        require(uv_read_start((uv_stream_t *)pipe, give_buffer, echo), "uv_read_start");
    }
    (void)uv_run(loop, UV_RUN_NOWAIT);
}
