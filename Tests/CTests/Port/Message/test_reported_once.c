/* SPDX-License-Identifier: Apache-2.0 */
/* A channel with a page stands on a wait set, whose reports come once: what must not be lost with one of them. */
#include <errno.h>
#include <semaphore.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Port/Core/message_port.h"
#include "Port/port_probe.h"

static const CFTimeInterval for_ever = 1e10;

static SInt32 ask(CFMessagePortRef remote, SInt32 message_id, CFDataRef data)
{
    CFDataRef reply = NULL;
    SInt32 result = CFMessagePortSendRequest(remote, message_id, data, for_ever, for_ever, MODE, &reply);

    if (reply) {
        CFRelease(reply);
    }
    return result;
}

/* A remote port whose channel has a page. */
static CFMessagePortRef connect_with_page(void)
{
    CFMessagePortRef remote = port_connect(NAME);

    for (int i = 0; i < 2 * reply_page_after; i++) {
        EXPECT_EQ(ask(remote, 1, NULL), kCFMessagePortSuccess);
    }
    return remote;
}

/* ---- a read that is interrupted ---- */

static _Atomic int interruptions;

static ssize_t receive_interrupted(int socket, struct msghdr *message)
{
    bool is_interrupted = kernel_ports.is_channel(socket) && atomic_fetch_sub(&interruptions, 1) > 0; /* the reply's, not the port's */

    return is_interrupted ? -EINTR : kernel_ports_linux.receive_message(socket, message);
}

PORT_TEST(a_reply_whose_read_was_interrupted_is_read_again, "231")
{
    struct port_thread server;
    CFDataRef data = port_pattern(5 * reply_page_size / 4, 1);
    CFMessagePortRef remote;

    kernel_ports.receive_message = receive_interrupted; /* before there are two threads */
    port_thread_start(&server, NAME, port_echo, NULL);
    remote = connect_with_page();
    atomic_store(&interruptions, 2);
    EXPECT_EQ(ask(remote, 1, data), kCFMessagePortSuccess);
    EXPECT(atomic_load(&interruptions) <= 0); /* the reply came by the socket */
    CFRelease(data);
    port_drop(remote);
    port_thread_stop(&server);
}

/* ---- an end that comes with a reply ---- */

static pthread_t client;
static atomic_bool is_held; /* the client, where it would wait */
static sem_t is_about_to_wait;
static sem_t has_rung;
static sem_t has_hung_up;

static int wait_held(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    if (pthread_equal(pthread_self(), client) && atomic_exchange(&is_held, false)) {
        (void)sem_post(&is_about_to_wait);
        (void)sem_wait(&has_hung_up);
    }
    return kernel_linux.set_wait(set, events, capacity, deadline_ns);
}

static int ring(int event)
{
    int result = kernel_linux.event_post(event);

    if (!pthread_equal(pthread_self(), client)) {
        (void)sem_post(&has_rung);
    }
    return result;
}

static CFDataRef reply_to_who_waits(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    if (message_id == 2) {
        (void)sem_wait(&is_about_to_wait);
    }
    return port_echo(local, message_id, data, info);
}

static void *hang_up_after_reply(void *info)
{
    struct port_thread *server = info;

    (void)sem_wait(&has_rung);
    port_lock(server->port); /* the reply's end is over, then */
    channel_table_drop_peer(&server->port->side.local.channels, &(struct peer){.pid = kernel_ports.process_id()});
    port_unlock(server->port);
    (void)sem_post(&has_hung_up);
    return NULL;
}

PORT_TEST(the_end_of_a_channel_that_was_reported_with_a_reply_is_found_by_the_next_request, "231 909 M27")
{
    struct port_thread server;
    CFMessagePortRef remote;
    pthread_t ender;

    (void)sem_init(&is_about_to_wait, 0, 0);
    (void)sem_init(&has_rung, 0, 0);
    (void)sem_init(&has_hung_up, 0, 0);
    client = pthread_self();
    kernel.set_wait = wait_held;
    kernel.event_post = ring;
    port_thread_start(&server, NAME, reply_to_who_waits, NULL);
    remote = connect_with_page();
    port_lock(server.port); /* the replies before are over, then, and their bells */
    port_unlock(server.port);
    while (sem_trywait(&has_rung) == 0) {
    }
    REQUIRE(pthread_create(&ender, NULL, hang_up_after_reply, &server) == 0);
    atomic_store(&is_held, true);
    EXPECT_EQ(ask(remote, 2, NULL), kCFMessagePortSuccess);
    (void)pthread_join(ender, NULL);
    EXPECT_EQ(ask(remote, 1, NULL), kCFMessagePortTransportError); /* the server lives */
    EXPECT_EQ(ask(remote, 1, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    port_thread_stop(&server);
}
