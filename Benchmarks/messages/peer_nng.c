/* SPDX-License-Identifier: Apache-2.0 */
/* nng's req0 and rep0, and push0 and pull0 for what goes one way: ipc between processes, inproc between threads. */
#ifdef HAVE_NNG
#include <nng/nng.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>

#include "messages.h"

static nng_socket client;

static void make_address(const struct place *place, char *ret_address, size_t room)
{
    (void)snprintf(ret_address, room, place->in_process ? "inproc://%s" : "ipc://%s", place->address);
}

static void serve(const struct place *place)
{
    char address[128];
    nng_socket socket;
    nng_msg *message;

    make_address(place, address, sizeof address);
    if ((place->is_one_way ? nng_pull0_open : nng_rep0_open)(&socket) != 0 || nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ, 0) != 0 ||
        nng_listen(socket, address, NULL, 0) != 0) {
        give_up("nng cannot listen");
    }
    serving();
    while (place->is_one_way && nng_recvmsg(socket, &message, 0) == 0) {
        was_told(nng_msg_len(message));
        nng_msg_free(message);
    }
    while (nng_recvmsg(socket, &message, 0) == 0 && nng_sendmsg(socket, message, 0) == 0) {
    }
}

static bool open_client(const struct place *place)
{
    char address[128];

    make_address(place, address, sizeof address);
    return (place->is_one_way ? nng_push0_open : nng_req0_open)(&client) == 0 &&
           nng_socket_set_size(client, NNG_OPT_RECVMAXSZ, 0) == 0 && nng_dial(client, address, NULL, 0) == 0;
}

static bool tell(const void *bytes, size_t size)
{
    nng_msg *message;

    return nng_msg_alloc(&message, 0) == 0 && nng_msg_append(message, bytes, size) == 0 && nng_sendmsg(client, message, 0) == 0;
}

static bool exchange(const void *request, size_t size)
{
    nng_msg *message;
    bool is_same;

    if (!tell(request, size) || nng_recvmsg(client, &message, 0) != 0) {
        return false;
    }
    is_same = nng_msg_len(message) == size;
    nng_msg_free(message);
    return is_same;
}

const struct peer nng_peer = {
    .name = "nng", .what = "nng, req and rep", .serve = serve, .open = open_client, .exchange = exchange, .tell = tell};
#endif
