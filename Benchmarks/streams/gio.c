/* SPDX-License-Identifier: Apache-2.0 */
/* GIO's socket connections; see peers.h. */
#include <gio/gio.h>
#include <stdlib.h>

#include "streams/peers.h"

static GSocketConnection *open_connection(int descriptor)
{
    GSocket *socket = g_socket_new_from_fd(descriptor, NULL);
    GSocketConnection *connection = socket ? g_socket_connection_factory_create_connection(socket) : NULL;

    g_assert(connection);
    g_object_unref(socket);
    return connection;
}

static GInputStream *input_of(GSocketConnection *connection)
{
    return g_io_stream_get_input_stream(G_IO_STREAM(connection));
}

static GOutputStream *output_of(GSocketConnection *connection)
{
    return g_io_stream_get_output_stream(G_IO_STREAM(connection));
}

/* ---- echo ---- */

struct server {
    GMainLoop *loop;
    GSocketConnection *connection;
    char message[message_size];
};

static void echo(GObject *object, GAsyncResult *result, gpointer info)
{
    struct server *server = info;
    gssize size = g_input_stream_read_finish(G_INPUT_STREAM(object), result, NULL);

    if (size <= 0) {
        g_main_loop_quit(server->loop);
        return;
    }
    g_assert(g_output_stream_write_all(output_of(server->connection), server->message, (gsize)size, NULL, NULL, NULL));
    g_input_stream_read_async(G_INPUT_STREAM(object), server->message, sizeof server->message, G_PRIORITY_DEFAULT, NULL, echo, server);
}

void serve_by_gio(int descriptor)
{
    struct server server = {g_main_loop_new(NULL, FALSE), open_connection(descriptor), {0}};

    g_input_stream_read_async(input_of(server.connection), server.message, sizeof server.message, G_PRIORITY_DEFAULT, NULL, echo, &server);
    g_main_loop_run(server.loop);
    g_object_unref(server.connection);
    g_main_loop_unref(server.loop);
}

/* ---- blocks ---- */

struct sender {
    GMainLoop *loop;
    GSocketConnection *connection;
    char *block;
    int left;
};

static void send_block(struct sender *sender);

static void sent(GObject *object, GAsyncResult *result, gpointer info)
{
    g_assert(g_output_stream_write_all_finish(G_OUTPUT_STREAM(object), result, NULL, NULL));
    send_block(info);
}

static void send_block(struct sender *sender)
{
    if (sender->left-- > 0) {
        g_output_stream_write_all_async(output_of(sender->connection), sender->block, block_size, G_PRIORITY_DEFAULT, NULL, sent, sender);
    } else {
        g_main_loop_quit(sender->loop);
    }
}

void send_by_gio(int descriptor)
{
    struct sender sender = {g_main_loop_new(NULL, FALSE), open_connection(descriptor), calloc(1, block_size), blocks};

    send_block(&sender);
    g_main_loop_run(sender.loop);
    g_object_unref(sender.connection);
    g_main_loop_unref(sender.loop);
    free(sender.block);
}

/* ---- waiting ---- */

static void do_nothing(GObject *object, GAsyncResult *result, gpointer info)
{
    (void)object, (void)result, (void)info;
}

void wait_by_gio(const int *descriptors, int count)
{
    static char unused[message_size];

    for (int i = 0; i < count; i++) {
        GInputStream *input = input_of(open_connection(descriptors[i]));

        g_input_stream_read_async(input, unused, sizeof unused, G_PRIORITY_DEFAULT, NULL, do_nothing, NULL);
    }
    (void)g_main_context_iteration(NULL, FALSE);
}
