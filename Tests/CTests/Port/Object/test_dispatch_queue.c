/* SPDX-License-Identifier: Apache-2.0 */
/* Ports on dispatch queues, in a process that has libdispatch: rule 244, and what else has to hold for them as for other ports. */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Port/Core/message_port.h"
#include "Port/port_probe.h"

#define OTHER_NAME CFSTR("another name")

extern void *dispatch_get_global_queue(intptr_t priority, uintptr_t flags) __attribute__((weak));
extern void *dispatch_queue_create(const char *label, void *attributes) __attribute__((weak));
extern void dispatch_async_f(void *queue, void *context, void (*work)(void *context)) __attribute__((weak));
extern void dispatch_release(void *object) __attribute__((weak));
/* By its link name: the header declares it where the dispatch headers are. */
void drive_by_queue(CFMessagePortRef port, void *queue) __asm__("crl_CFMessagePortSetDispatchQueue");

/* A test that needs a queue begins with this. */
static void require_queues(void)
{
    if (!dispatch_get_global_queue || !dispatch_queue_create || !dispatch_async_f || !dispatch_release) {
        SKIP("there is no libdispatch in the process");
    }
    test_allow_left(64, 64); /* libdispatch's own, and the loops of its threads */
}

static CFMessagePortRef open_on_queue(CFStringRef name, CFMessagePortCallBack callout, void *info, void *queue)
{
    CFMessagePortContext context = {0, info, NULL, NULL, NULL};
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, name, callout, &context, NULL);

    REQUIRE(port != NULL);
    drive_by_queue(port, queue);
    return port;
}

/* libdispatch lets go of a port some time after it was told to. */
static bool is_let_go(CFMessagePortRef port)
{
    double deadline_s = port_probe_now() + test_patience_s();

    while (CFGetRetainCount(port) > 1 && port_probe_now() < deadline_s) {
        (void)sched_yield();
    }
    return CFGetRetainCount(port) == 1;
}

static atomic_int reads;

static ssize_t count_read(int socket, struct msghdr *message)
{
    atomic_fetch_add(&reads, 1);
    return kernel_ports_linux.receive_message(socket, message);
}

/* Requests are answered, and in between nobody looks for messages again and again. */
static void expect_service(CFStringRef name)
{
    enum { requests = 8, reads_most = 10 * requests };
    CFMessagePortRef remote = port_connect(name);

    atomic_store(&reads, 0);
    for (int i = 0; i < requests; i++) {
        REQUIRE(port_ask(remote, i, NULL, NULL) == kCFMessagePortSuccess);
    }
    EXPECT(atomic_load(&reads) <= reads_most);
    CFRelease(remote);
}

PORT_TEST_BOTH_WAYS(a_port_on_a_queue_hears_after_it_is_renamed, "199 200 244")
{
    CFMessagePortRef port;
    CFMessagePortRef remote;

    require_queues();
    kernel_ports.receive_message = count_read;
    port = open_on_queue(NAME, port_echo, NULL, dispatch_get_global_queue(0, 0));
    expect_service(NAME);
    remote = port_connect(NAME);
    EXPECT(CFMessagePortSetName(port, OTHER_NAME));
    EXPECT(!CFMessagePortIsValid(remote)); /* nobody holds on to the old socket */
    expect_service(OTHER_NAME);
    EXPECT(CFMessagePortSetName(port, NAME));
    expect_service(NAME);
    CFRelease(remote);
    CFMessagePortInvalidate(port);
    EXPECT(is_let_go(port));
    CFRelease(port);
}

static void remove_names(void)
{
    DIR *stream = opendir(port_probe_names());
    char path[512];

    REQUIRE(stream != NULL);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        (void)snprintf(path, sizeof path, "%s/%s", port_probe_names(), entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(stream);
    REQUIRE(rmdir(port_probe_names()) == 0);
}

PORT_TEST_BOTH_WAYS(a_port_on_a_queue_hears_after_it_is_registered_again, "244 H20")
{
    CFMessagePortRef port;

    require_queues();
    kernel_ports.receive_message = count_read;
    port = open_on_queue(NAME, port_echo, NULL, dispatch_get_global_queue(0, 0));
    remove_names();
    expect_service(NAME);
    CFMessagePortInvalidate(port);
    EXPECT(is_let_go(port));
    CFRelease(port);
}

static CFMessagePortRef ended_meanwhile;

static int end_and_create_set(void)
{
    CFMessagePortInvalidate(ended_meanwhile);
    return kernel_linux.set_create();
}

PORT_TEST_BOTH_WAYS(a_port_that_ends_while_it_gets_a_queue_is_let_go, "203 244")
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, NULL);

    require_queues();
    ended_meanwhile = port;
    kernel.set_create = end_and_create_set; /* as another thread may at any moment */
    drive_by_queue(port, dispatch_get_global_queue(0, 0));
    EXPECT(!CFMessagePortIsValid(port));
    EXPECT(is_let_go(port));
    CFRelease(port);
}

static int refuse_to_watch(int set, int descriptor, uint32_t interest, uint64_t token)
{
    (void)set;
    (void)descriptor;
    (void)interest;
    (void)token;
    return -ENOSPC;
}

PORT_TEST_BOTH_WAYS(a_name_under_which_a_port_on_a_queue_would_be_deaf_is_refused, "199 244")
{
    CFMessagePortRef port;

    require_queues();
    port = open_on_queue(NAME, port_echo, NULL, dispatch_get_global_queue(0, 0));
    kernel.set_add = refuse_to_watch;
    EXPECT(!CFMessagePortSetName(port, OTHER_NAME));
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, OTHER_NAME), NULL);
    expect_service(NAME); /* its thread may look at the kernel's table yet, which so stays as it is */
    CFMessagePortInvalidate(port);
    EXPECT(is_let_go(port));
    CFRelease(port);
}

/* ---- many messages and a queue's other work ---- */

struct flood {
    CFMessagePortRef remote;
    atomic_bool is_over;
    atomic_int handled;
    int handled_before;
};

static CFDataRef send_another(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    struct flood *flood = info;

    (void)port;
    (void)data;
    atomic_fetch_add(&flood->handled, 1);
    if (!atomic_load(&flood->is_over)) {
        (void)CFMessagePortSendRequest(flood->remote, message_id, NULL, 0, 0, NULL, NULL);
    }
    return NULL;
}

static void end_flood(void *info)
{
    struct flood *flood = info;

    flood->handled_before = atomic_load(&flood->handled);
    atomic_store(&flood->is_over, true);
}

/* Each message sends the next, from the queue itself: were they handled in one block, nothing else would have its turn. */
PORT_TEST_BOTH_WAYS(a_port_that_is_never_empty_leaves_its_queue_to_others, "234 244")
{
    struct flood flood = {.remote = NULL};
    double deadline_s = port_probe_now() + test_patience_s();
    CFMessagePortRef port;
    void *queue;

    require_queues();
    queue = dispatch_queue_create("serial", NULL);
    port = open_on_queue(NAME, send_another, &flood, queue);
    flood.remote = port_connect(NAME);
    EXPECT_EQ(port_tell(flood.remote, 1, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(port_tell(flood.remote, 2, NULL), kCFMessagePortSuccess);
    while (atomic_load(&flood.handled) == 0 && port_probe_now() < deadline_s) {
        (void)sched_yield();
    }
    dispatch_async_f(queue, &flood, end_flood);
    while (!atomic_load(&flood.is_over) && port_probe_now() < deadline_s) {
        (void)sched_yield();
    }
    EXPECT(atomic_load(&flood.is_over));
    EXPECT(flood.handled_before > 0);
    CFMessagePortInvalidate(port);
    EXPECT(is_let_go(port));
    dispatch_release(queue);
    CFRelease(flood.remote);
    CFRelease(port);
}
