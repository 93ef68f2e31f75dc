/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroMQ's REQ and REP, and PUSH and PULL for what goes one way: ipc between processes, inproc between threads. */
#ifdef HAVE_ZEROMQ
#include <stdio.h>
#include <zmq.h>

#include "messages.h"

static void *context; /* inproc needs one for both sides */
static void *client;

static bool prepare(struct place *place)
{
    context = place->in_process ? zmq_ctx_new() : NULL;
    return true;
}

static void *open_socket(const struct place *place, int type, char *ret_address, size_t room)
{
    (void)snprintf(ret_address, room, place->in_process ? "inproc://%s" : "ipc://%s", place->address);
    return zmq_socket(context ? context : zmq_ctx_new(), type);
}

static void serve(const struct place *place)
{
    char address[128];
    void *socket = open_socket(place, place->is_one_way ? ZMQ_PULL : ZMQ_REP, address, sizeof address);
    zmq_msg_t message;

    if (zmq_bind(socket, address) != 0) {
        give_up("ZeroMQ cannot listen");
    }
    serving();
    (void)zmq_msg_init(&message);
    while (place->is_one_way && zmq_msg_recv(&message, socket, 0) >= 0) {
        was_told(zmq_msg_size(&message));
    }
    while (zmq_msg_recv(&message, socket, 0) >= 0 && zmq_msg_send(&message, socket, 0) >= 0) {
    }
}

static bool open_client(const struct place *place)
{
    char address[128];

    client = open_socket(place, place->is_one_way ? ZMQ_PUSH : ZMQ_REQ, address, sizeof address);
    return zmq_connect(client, address) == 0;
}

static bool tell(const void *message, size_t size)
{
    return zmq_send(client, message, size, 0) >= 0;
}

static bool exchange(const void *request, size_t size)
{
    zmq_msg_t reply;
    bool is_same;

    if (!tell(request, size)) {
        return false;
    }
    (void)zmq_msg_init(&reply);
    is_same = zmq_msg_recv(&reply, client, 0) >= 0 && zmq_msg_size(&reply) == size;
    (void)zmq_msg_close(&reply);
    return is_same;
}

const struct peer zeromq_peer = {.name = "zeromq",
                                 .what = "ZeroMQ, REQ and REP",
                                 .prepare = prepare,
                                 .serve = serve,
                                 .open = open_client,
                                 .exchange = exchange,
                                 .tell = tell};
#endif
