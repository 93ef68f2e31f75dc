/* SPDX-License-Identifier: Apache-2.0 */
/* Asio's sockets, without Boost; see peers.h. One thread runs each context. */
#include <asio.hpp>
#include <vector>

#include "streams/peers.h"

using Socket = asio::local::stream_protocol::socket;

namespace {

struct Echo {
    Socket socket;
    char message[message_size];

    void read()
    {
        socket.async_read_some(asio::buffer(message), [this](asio::error_code error, std::size_t size) {
            if (!error) {
                asio::write(socket, asio::buffer(message, size));
                read();
            }
        });
    }
};

struct Sender {
    Socket socket;
    std::vector<char> block = std::vector<char>(block_size);
    int left = blocks;

    void send()
    {
        asio::async_write(socket, asio::buffer(block), [this](asio::error_code error, std::size_t) {
            if (!error && --left > 0) {
                send();
            }
        });
    }
};

Socket socketOf(asio::io_context &context, int descriptor)
{
    return Socket(context, asio::local::stream_protocol(), descriptor);
}

} // namespace

void serve_by_asio(int descriptor)
{
    asio::io_context context(1);
    Echo echo{socketOf(context, descriptor), {}};

    echo.read();
    context.run();
}

void send_by_asio(int descriptor)
{
    asio::io_context context(1);
    Sender sender{socketOf(context, descriptor)};

    sender.send();
    context.run();
}

void wait_by_asio(const int *descriptors, int count)
{
    static char unused[message_size];
    auto *context = new asio::io_context(1);

    for (int i = 0; i < count; i++) {
        auto *socket = new Socket(socketOf(*context, descriptors[i]));

        socket->async_read_some(asio::buffer(unused), [socket](asio::error_code, std::size_t) {});
    }
    context->poll();
}
