/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries of different versions in two processes: they refuse each other's frames, say so, and go on. The frames of other versions are
 * those of Tests/Wire; a whole process of another version is this library with the version changed in all that it sends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Port/Core/message_port.h"
#include "Port/port_probe.h"

enum { at_version = 4 };

static const char folder[] = "Tests/Wire";

/* ---- what is logged ---- */

static int log_file, log_saved;

static void log_begin(void)
{
    log_file = memfd_create("log", MFD_CLOEXEC);
    log_saved = dup(STDERR_FILENO);
    (void)dup2(log_file, STDERR_FILENO);
}

static bool log_end(const char *sentence)
{
    char text[4096];
    ssize_t size = pread(log_file, text, sizeof text - 1, 0);

    (void)dup2(log_saved, STDERR_FILENO);
    (void)close(log_saved);
    (void)close(log_file);
    text[size > 0 ? size : 0] = '\0';
    return strstr(text, sentence) != NULL;
}

/* ---- golden frames at this library's ports ---- */

static size_t read_golden(const char *name, uint8_t bytes[wire_frame_max])
{
    char path[128];
    FILE *file;
    size_t size;

    (void)snprintf(path, sizeof path, "%s/%s.bin", folder, name);
    file = fopen(path, "rb");
    if (!file) {
        SKIP("runs from the repository's folder only");
    }
    size = fread(bytes, 1, wire_frame_max, file);
    (void)fclose(file);
    return size;
}

/* Sends a frame with a descriptor, as the clients of any version do. */
static void send_with_end(int to, const uint8_t *bytes, size_t size, int end)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct iovec piece = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &end, sizeof end);
    REQUIRE(kernel_ports_linux.send_message(to, &message) == (ssize_t)size);
}

/* The name that stands in the golden request. */
static CFStringRef copy_golden_name(void)
{
    return CFStringCreateWithCString(NULL, "caf\xC3\xA9", kCFStringEncodingUTF8);
}

static void expect_refused(const char *name)
{
    CFStringRef port_name = copy_golden_name();
    uint8_t bytes[wire_frame_max];
    size_t size = read_golden(name, bytes);
    struct trace seen = {0};
    CFMessagePortRef port = port_open(port_name, port_note, &seen, MODE);
    CFMessagePortRef remote = port_connect(port_name);
    int ends[2];

    log_begin();
    REQUIRE(kernel_ports.channel_create(ends) == 0);
    send_with_end(remote->side.remote.socket, bytes, size, ends[1]);
    (void)close(ends[1]);
    (void)CFRunLoopRunInMode(MODE, 0, true);
    (void)kernel_ports.wait(ends[0], kernel_readable, kernel.monotonic_ns() + (int64_t)(1e9 * test_patience_s()));
    EXPECT_EQ(recv(ends[0], bytes, sizeof bytes, MSG_DONTWAIT), 0); /* a thread has closed the end, and nothing was said on it */
    (void)close(ends[0]);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_TRACE(&seen, "1:");
    EXPECT(log_end("was dropped: it is of another version"));
    CFRelease(remote);
    port_drop(port);
    CFRelease(port_name);
}

PORT_TEST(a_request_of_the_previous_version_is_refused, "241 H2")
{
    expect_refused("bad_version_previous_request");
}

PORT_TEST(a_request_of_the_next_version_is_refused, "241 H2")
{
    expect_refused("bad_version_next_request");
}

/* The same frame of this version runs: it is the version that is refused. */
PORT_TEST(a_golden_request_of_this_version_runs, "241")
{
    CFStringRef port_name = copy_golden_name();
    uint8_t bytes[wire_frame_max];
    size_t size = read_golden("request_new_channel", bytes);
    struct trace seen = {0};
    CFMessagePortRef port = port_open(port_name, port_note, &seen, MODE);
    CFMessagePortRef remote = port_connect(port_name);
    int ends[2];

    REQUIRE(kernel_ports.channel_create(ends) == 0);
    bytes[6] |= wire_no_data;
    send_with_end(remote->side.remote.socket, bytes, size, ends[1]);
    (void)close(ends[1]);
    (void)CFRunLoopRunInMode(MODE, 0, true);
    EXPECT_TRACE(&seen, "-1:");
    EXPECT_EQ(recv(ends[0], bytes, sizeof bytes, MSG_DONTWAIT), wire_header_size);
    (void)close(ends[0]);
    CFRelease(remote);
    port_drop(port);
    CFRelease(port_name);
}

/* ---- processes of another version ---- */

static uint8_t other_version;

static ssize_t send_as_other_version(int socket_number, const void *bytes, size_t size)
{
    uint8_t changed[wire_frame_max];

    REQUIRE(size <= sizeof changed);
    memcpy(changed, bytes, size);
    changed[at_version] = other_version;
    return kernel_ports_linux.send(socket_number, changed, size);
}

static ssize_t send_message_as_other_version(int socket_number, const struct msghdr *message)
{
    uint8_t *header = message->msg_iov[0].iov_base;

    header[at_version] = other_version;
    return kernel_ports_linux.send_message(socket_number, message);
}

static void become_other_version(CFMessagePortRef port)
{
    (void)port;
    kernel_ports.send = send_as_other_version;
    kernel_ports.send_message = send_message_as_other_version;
}

static void expect_refusal_by_receiver(void)
{
    pid_t owner = port_process_start(NAME, port_echo, NULL, NULL);
    CFMessagePortRef remote = port_connect(NAME);
    double begun;

    become_other_version(NULL);
    log_begin();
    begun = port_probe_now();
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortTransportError);
    EXPECT(port_probe_now() - begun < 0.5 * test_patience_s());
    EXPECT(log_end("the receiver refused a request: it is of another version"));
    EXPECT_EQ(port_tell(remote, 1, NULL), kCFMessagePortSuccess); /* nobody hears of a one-way message again */
    EXPECT(CFMessagePortIsValid(remote));
    kernel_ports = kernel_ports_linux;
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess); /* the receiver was none the worse for it */
    CFRelease(remote);
    port_process_kill(owner);
}

static void expect_reply_not_understood(void)
{
    pid_t owner = port_process_start(NAME, port_echo, NULL, become_other_version);
    CFMessagePortRef remote = port_connect(NAME);
    double begun = port_probe_now();
    CFDataRef reply = NULL;

    log_begin();
    EXPECT_EQ(port_ask(remote, 1, NULL, &reply), kCFMessagePortTransportError);
    EXPECT_EQ(reply, NULL);
    EXPECT(port_probe_now() - begun < 0.5 * test_patience_s());
    EXPECT(log_end("a reply cannot be understood: it is of another version"));
    EXPECT(CFMessagePortIsValid(remote));
    CFRelease(remote);
    port_process_kill(owner);
}

PORT_TEST(a_client_of_the_previous_version_is_told_that_it_is_refused, "241 H2")
{
    other_version = wire_version - 1;
    expect_refusal_by_receiver();
}

PORT_TEST(a_client_of_the_next_version_is_told_that_it_is_refused, "241 H2 243a")
{
    other_version = wire_version + 1;
    expect_refusal_by_receiver();
}

PORT_TEST(a_reply_of_the_previous_version_is_refused, "241 H2 H23")
{
    other_version = wire_version - 1;
    expect_reply_not_understood();
}

PORT_TEST(a_reply_of_the_next_version_is_refused, "241 H2 H23")
{
    other_version = wire_version + 1;
    expect_reply_not_understood();
}
