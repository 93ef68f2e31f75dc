/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th failure on descriptors: CFFileDescriptor, signal and child sources, sockets. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Failure/nth_failure.h"

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

NTH_FAILURE(children, "")
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
