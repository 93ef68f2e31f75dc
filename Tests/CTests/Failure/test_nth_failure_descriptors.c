/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th failure on descriptors: CFFileDescriptor, signal and child sources, sockets. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Failure/nth_failure.h"
#include "Kernel/kernel.h"
#include "Loop/Core/loop.h"
#include "Loop/Watch/watch.h"

#define MODE CFSTR("a mode")

static bool add(CFRunLoopSourceRef source)
{
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    return CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, MODE);
}

static _Atomic int reads;

static void readable(CFFileDescriptorRef file, CFOptionFlags types, void *info)
{
    char byte;

    (void)info;
    if ((types & kCFFileDescriptorReadCallBack) && read(CFFileDescriptorGetNativeDescriptor(file), &byte, 1) == 1) {
        reads++;
    }
    CFFileDescriptorEnableCallBacks(file, kCFFileDescriptorReadCallBack);
}

NTH_FAILURE(file_descriptors, "")
{
    enum { pipes = 3 };
    int ends[pipes][2];
    CFFileDescriptorContext context = {.info = &reads};

    reads = 0;
    for (int i = 0; i < pipes; i++) {
        CFFileDescriptorRef file;
        CFRunLoopSourceRef source;

        MUST(pipe2(ends[i], O_CLOEXEC | O_NONBLOCK) == 0);
        (void)bag_keep_descriptor(ends[i][1]);
        file = bag_keep(CFFileDescriptorCreate(NULL, ends[i][0], true, readable, &context));
        if (!file) {
            (void)bag_keep_descriptor(ends[i][0]);
            return false;
        }
        CFFileDescriptorEnableCallBacks(file, kCFFileDescriptorReadCallBack);
        NEED(source = bag_keep(CFFileDescriptorCreateRunLoopSource(NULL, file, 0)));
        NEED(add(source));
    }
    for (int i = 0; i < pipes; i++) {
        MUST(write(ends[i][1], "ab", 2) == 2);
    }
    MUST(run_until(&reads, 2 * pipes, MODE));
    MUST(write(ends[0][1], "c", 1) == 1);
    MUST(run_until(&reads, 2 * pipes + 1, MODE));
    return true;
}

static void described_signal(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info)
{
    (void)source;
    (void)signal;
    (void)info;
}

NTH_FAILURE(descriptions_of_descriptors, "606")
{
    CFFileDescriptorRef file;
    CFSocketRef socket;
    CFRunLoopSourceRef source;
    int ends[2];

    MUST(pipe2(ends, O_CLOEXEC) == 0);
    (void)bag_keep_descriptor(ends[0]);
    (void)bag_keep_descriptor(ends[1]);
    NEED(file = bag_keep(CFFileDescriptorCreate(NULL, ends[0], false, readable, NULL)));
    NEED(source = bag_keep(CFFileDescriptorCreateRunLoopSource(NULL, file, 0)));
    NEED(add(source));
    NEED(source = bag_keep(CRLSignalSourceCreate(NULL, SIGUSR1, 0, described_signal, NULL)));
    NEED(add(source));
    NEED(socket = bag_keep(CFSocketCreate(NULL, 0, 0, 0, 0, NULL, NULL)));
    NEED(bag_keep(CFCopyDescription(file)));
    NEED(bag_keep(CFCopyDescription(socket)));
    NEED(bag_keep(CFCopyDescription(source)));
    NEED(bag_keep(CFCopyDescription(CFRunLoopGetCurrent())));
    return true;
}

/* One that is readable already, watched in the mode. */
static bool watch_pipe(void)
{
    CFFileDescriptorContext context = {.info = &reads};
    CFFileDescriptorRef file;
    CFRunLoopSourceRef source;
    int ends[2];

    MUST(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    (void)bag_keep_descriptor(ends[1]);
    file = bag_keep(CFFileDescriptorCreate(NULL, ends[0], true, readable, &context));
    if (!file) {
        (void)bag_keep_descriptor(ends[0]);
        return false;
    }
    CFFileDescriptorEnableCallBacks(file, kCFFileDescriptorReadCallBack);
    NEED(source = bag_keep(CFFileDescriptorCreateRunLoopSource(NULL, file, 0)));
    NEED(add(source));
    MUST(write(ends[1], "a", 1) == 1);
    return true;
}

/* The program has closed the loop's wait set, and opened a file that has got its number. */
NTH_FAILURE(a_set_whose_number_is_taken, "F16")
{
    int null_device;
    int taken;

    reads = 0;
    NEED(watch_pipe());
    MUST(run_until(&reads, 1, MODE));
    taken = mode_find(CFRunLoopGetCurrent(), MODE)->watches->set;
    NEED(taken >= 0);
    null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
    MUST(null_device >= 0 && dup2(null_device, taken) == taken);
    (void)bag_keep_descriptor(null_device);
    (void)bag_keep_descriptor(taken);
    NEED(watch_pipe());
    MUST(run_until(&reads, 2, MODE));
    return true;
}

static _Atomic int signals;

static void signalled(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info)
{
    (void)source;
    (void)info;
    signals += signal->ssi_signo == SIGUSR1;
}

NTH_FAILURE(signals, "")
{
    CFRunLoopSourceRef source;

    signals = 0;
    NEED(source = bag_keep(CRLSignalSourceCreate(NULL, SIGUSR1, 0, signalled, NULL)));
    NEED(add(source));
    for (int i = 1; i <= 2; i++) {
        MUST(kill(getpid(), SIGUSR1) == 0);
        MUST(run_until(&signals, i, MODE));
    }
    return true;
}

static _Atomic int ended;
static int status_of_child;

static void child_ended(CFRunLoopSourceRef source, pid_t pid, int status, void *info)
{
    (void)source;
    (void)pid;
    (void)info;
    status_of_child = status;
    ended++;
}

static bool await_child(pid_t pid)
{
    CFRunLoopSourceRef source;

    NEED(source = bag_keep(CRLChildSourceCreate(NULL, pid, 0, child_ended, NULL)));
    NEED(add(source));
    MUST(run_until(&ended, 1, MODE));
    MUST(status_of_child == -1 || WEXITSTATUS(status_of_child) == 7);
    return status_of_child != -1;
}

static bool run_child(void)
{
    pid_t pid = fork();
    bool is_complete;

    ended = 0;
    if (pid == 0) {
        _exit(7);
    }
    is_complete = await_child(pid);
    if (!is_complete) {
        (void)waitpid(pid, NULL, 0);
    }
    return is_complete;
}

NTH_FAILURE(children, "")
{
    return run_child();
}

static int no_process_descriptor(pid_t pid)
{
    (void)pid;
    return -ENOSYS;
}

NTH_FAILURE(children_without_process_descriptors, "")
{
    int (*const open_of_the_table)(pid_t pid) = kernel.process_open;
    bool is_complete;

    kernel.process_open = no_process_descriptor;
    is_complete = run_child();
    kernel.process_open = open_of_the_table;
    return is_complete;
}

/* ---- sockets ---- */

static struct {
    CFSocketRef accepted;
    _Atomic int accepts, connects, bytes, ends, writes;
    int refused;
} net;

static void server_event(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    (void)socket;
    (void)address;
    (void)info;
    if (type == kCFSocketDataCallBack) {
        net.bytes += (int)CFDataGetLength(data);
        net.ends += CFDataGetLength(data) == 0;
    }
}

static void listener_event(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    CFSocketNativeHandle handle;
    CFRunLoopSourceRef source;

    (void)socket;
    (void)address;
    (void)info;
    if (type != kCFSocketAcceptCallBack) {
        return;
    }
    handle = *(const CFSocketNativeHandle *)data;
    net.accepts++;
    net.accepted = bag_keep(CFSocketCreateWithNative(NULL, handle, kCFSocketDataCallBack, server_event, NULL));
    if (!net.accepted) {
        (void)bag_keep_descriptor(handle);
        net.refused++;
        return;
    }
    source = bag_keep(CFSocketCreateRunLoopSource(NULL, net.accepted, 0));
    net.refused += !source || !add(source);
}

static void client_event(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    (void)socket;
    (void)address;
    (void)info;
    if (type == kCFSocketConnectCallBack) {
        net.connects++;
        net.refused += data != NULL;
    } else if (type == kCFSocketWriteCallBack) {
        net.writes++;
    }
}

static CFDataRef loopback(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return bag_keep(CFDataCreate(NULL, (const UInt8 *)&address, sizeof address));
}

static bool add_socket(CFSocketRef socket)
{
    CFRunLoopSourceRef source = bag_keep(CFSocketCreateRunLoopSource(NULL, socket, 0));

    return source && add(source);
}

static bool connect_and_send(double timeout)
{
    CFSocketRef listener;
    CFSocketRef client;
    CFDataRef address;
    CFDataRef text;
    CFSocketError error;

    memset(&net, 0, sizeof net);
    NEED(address = loopback());
    NEED(listener = bag_keep(CFSocketCreate(NULL, PF_INET, SOCK_STREAM, 0, kCFSocketAcceptCallBack, listener_event, NULL)));
    NEED(CFSocketSetAddress(listener, address) == kCFSocketSuccess);
    NEED(add_socket(listener));
    NEED(address = bag_keep(CFSocketCopyAddress(listener)));
    NEED(client = bag_keep(
             CFSocketCreate(NULL, PF_INET, SOCK_STREAM, 0, kCFSocketConnectCallBack | kCFSocketWriteCallBack, client_event, NULL)));
    NEED(add_socket(client));
    error = CFSocketConnectToAddress(client, address, timeout);
    NEED(error == kCFSocketSuccess);
    MUST(run_until(&net.connects, 1, MODE));
    NEED(net.refused == 0);
    MUST(run_until(&net.accepts, 1, MODE));
    NEED(net.refused == 0);
    NEED(text = bag_keep(CFDataCreate(NULL, (const UInt8 *)"some text", 9)));
    NEED(CFSocketSendData(client, NULL, text, 1) == kCFSocketSuccess);
    MUST(run_until(&net.bytes, 9, MODE));
    MUST(run_until(&net.writes, 1, MODE));
    NEED(bag_keep(CFSocketCopyPeerAddress(client)));
    CFSocketInvalidate(client);
    MUST(run_until(&net.ends, 1, MODE));
    return true;
}

NTH_FAILURE(sockets_in_the_background, "")
{
    return connect_and_send(-1);
}

NTH_FAILURE(sockets_that_wait, "")
{
    return connect_and_send(1);
}

NTH_FAILURE(socket_datagrams, "")
{
    CFSocketRef receiver;
    CFSocketRef sender;
    CFDataRef address;
    CFDataRef text;

    memset(&net, 0, sizeof net);
    NEED(address = loopback());
    NEED(receiver = bag_keep(CFSocketCreate(NULL, PF_INET, SOCK_DGRAM, 0, kCFSocketDataCallBack, server_event, NULL)));
    NEED(CFSocketSetAddress(receiver, address) == kCFSocketSuccess);
    NEED(address = bag_keep(CFSocketCopyAddress(receiver)));
    NEED(add_socket(receiver));
    NEED(sender = bag_keep(CFSocketCreate(NULL, PF_INET, SOCK_DGRAM, 0, kCFSocketNoCallBack, NULL, NULL)));
    NEED(text = bag_keep(CFDataCreate(NULL, (const UInt8 *)"a datagram", 10)));
    NEED(CFSocketSendData(sender, address, text, 1) == kCFSocketSuccess);
    MUST(run_until(&net.bytes, 10, MODE));
    NEED(CFSocketSendData(sender, address, text, 0) == kCFSocketSuccess);
    MUST(run_until(&net.bytes, 20, MODE));
    return true;
}

/* An object that is freed while it is valid closes its descriptor, and the other side sees the end of it. */
static bool see_the_end(int other, CFTypeRef object, int descriptor)
{
    char byte;

    if (!object) {
        (void)bag_keep_descriptor(descriptor);
        return false;
    }
    CFRelease(object);
    MUST(recv(other, &byte, 1, 0) == 0);
    return true;
}

NTH_FAILURE(what_is_freed_while_valid, "")
{
    int ends[2];

    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    (void)bag_keep_descriptor(ends[1]);
    NEED(see_the_end(ends[1], CFFileDescriptorCreate(NULL, ends[0], true, readable, NULL), ends[0]));
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    (void)bag_keep_descriptor(ends[1]);
    return see_the_end(ends[1], CFSocketCreateWithNative(NULL, ends[0], kCFSocketDataCallBack, server_event, NULL), ends[0]);
}

/* ---- a socket that is invalidated in the middle of a call, as another thread would ---- */

static CFSocketRef used_socket;
static int (*send_of_the_table)(int socket, const void *bytes, size_t size, const void *address, size_t length, int64_t deadline_ns);

static int send_to_the_invalidated(int socket, const void *bytes, size_t size, const void *address, size_t length, int64_t deadline_ns)
{
    CFSocketInvalidate(used_socket);
    return send_of_the_table(socket, bytes, size, address, length, deadline_ns);
}

NTH_FAILURE(a_socket_closed_in_the_middle_of_a_call, "")
{
    int ends[2];
    char bytes[8];
    CFDataRef text;
    CFSocketError error;

    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    (void)bag_keep_descriptor(ends[1]);
    used_socket = bag_keep(CFSocketCreateWithNative(NULL, ends[0], kCFSocketNoCallBack, NULL, NULL));
    if (!used_socket) {
        (void)bag_keep_descriptor(ends[0]);
        return false;
    }
    NEED(text = bag_keep(CFDataCreate(NULL, (const UInt8 *)"text", 4)));
    send_of_the_table = kernel.socket_send;
    kernel.socket_send = send_to_the_invalidated;
    error = CFSocketSendData(used_socket, NULL, text, 0);
    kernel.socket_send = send_of_the_table;
    MUST(recv(ends[1], bytes, sizeof bytes, 0) == (error == kCFSocketSuccess ? 4 : 0));
    MUST(error != kCFSocketSuccess || recv(ends[1], bytes, sizeof bytes, 0) == 0);
    return error == kCFSocketSuccess;
}

/* Its descriptor is left to the program, as it was before there was a connection to accept. */
NTH_FAILURE(a_listener_that_is_left_open, "")
{
    CFSocketRef listener;
    CFDataRef address;
    int native;
    int client;
    int flags;

    memset(&net, 0, sizeof net);
    NEED(address = loopback());
    NEED(listener = bag_keep(CFSocketCreate(NULL, PF_INET, SOCK_STREAM, 0, kCFSocketAcceptCallBack, listener_event, NULL)));
    CFSocketSetSocketFlags(listener, CFSocketGetSocketFlags(listener) & ~(CFOptionFlags)kCFSocketCloseOnInvalidate);
    native = bag_keep_descriptor(CFSocketGetNative(listener));
    NEED(CFSocketSetAddress(listener, address) == kCFSocketSuccess);
    NEED(add_socket(listener));
    NEED(address = bag_keep(CFSocketCopyAddress(listener)));
    client = bag_keep_descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(client, (const struct sockaddr *)(const void *)CFDataGetBytePtr(address), sizeof(struct sockaddr_in)) < 0) {
        return false; /* it does not listen: CFSocketSetAddress does not look at that */
    }
    MUST(run_until(&net.accepts, 1, MODE));
    CFSocketInvalidate(listener);
    flags = fcntl(native, F_GETFL);
    MUST(flags >= 0);
    return net.refused == 0 && !(flags & O_NONBLOCK);
}

/* By its descriptor, after the loop has looked at it. */
NTH_FAILURE(a_unix_socket_that_the_program_connects, "")
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    socklen_t length = sizeof where;
    int listener = bag_keep_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CFSocketRef client;

    memset(&net, 0, sizeof net);
    MUST(bind(listener, (struct sockaddr *)&where, sizeof where.sun_family) == 0); /* a name that the system picks */
    MUST(listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&where, &length) == 0);
    NEED(client = bag_keep(CFSocketCreate(NULL, PF_LOCAL, SOCK_STREAM, 0, kCFSocketConnectCallBack, client_event, NULL)));
    NEED(add_socket(client));
    for (int i = 0; i < 4; i++) {
        CFRunLoopRunInMode(MODE, 0, false);
    }
    MUST(net.connects == 0);
    MUST(connect(CFSocketGetNative(client), (const struct sockaddr *)&where, length) == 0);
    MUST(run_until(&net.connects, 1, MODE));
    return net.refused == 0;
}

static void read_event(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    char byte;
    ssize_t count;

    (void)address;
    (void)data;
    (void)info;
    if (type != kCFSocketReadCallBack) {
        return;
    }
    count = recv(CFSocketGetNative(socket), &byte, 1, MSG_DONTWAIT);
    net.bytes += count == 1;
    net.ends += count == 0;
}

/* The other side has gone, and what it sent is still to be read: one callback for each byte, and one for the end. */
NTH_FAILURE(an_end_behind_unread_data, "")
{
    int ends[2];
    CFSocketRef socket;

    memset(&net, 0, sizeof net);
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    MUST(write(ends[1], "ab", 2) == 2);
    MUST(close(ends[1]) == 0);
    socket = bag_keep(CFSocketCreateWithNative(NULL, ends[0], kCFSocketReadCallBack, read_event, NULL));
    if (!socket) {
        (void)bag_keep_descriptor(ends[0]);
        return false;
    }
    NEED(add_socket(socket));
    MUST(run_until(&net.ends, 1, MODE));
    MUST(net.bytes == 2 && net.ends == 1);
    return true;
}
