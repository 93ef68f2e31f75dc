/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads whose cancellation is pending: they come out of every function of the library, fault case P12. A thread that ended inside would
 * leave what it has locked, and here simply not return.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "CRLMachPort.h"
#include "CRLRunLoop.h"
#include "Loop/loop_probe.h"
#include "Port/port_probe.h"

static struct port_thread server;
static int event = -1;
static int accepted = -1; /* closed by the test: that would be a cancellation point */

/* Each in a thread of its own, whose cancellation is pending. */
struct step {
    const char *name;
    void (*function)(void);
};

static void *with_a_pending_cancellation(void *step)
{
    (void)pthread_cancel(pthread_self());
    ((const struct step *)step)->function();
    return NULL;
}

static void own_port(void)
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, CFSTR("mine"), port_silence, NULL, NULL);
    CFRunLoopSourceRef source;

    EXPECT(CFMessagePortSetName(port, CFSTR("renamed")));
    source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0.001, false), kCFRunLoopRunTimedOut);
    CFRelease(source);
    port_drop(port);
}

static void requests(void)
{
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, NAME);
    CFDataRef large = port_pattern(300000, 1);

    for (int i = 0; i < 20; i++) {
        CFDataRef reply = NULL;

        EXPECT_EQ(port_ask(remote, i, large, &reply), kCFMessagePortSuccess);
        EXPECT(reply && port_is_pattern(reply, 300000, 1));
        CFRelease(reply);
    }
    EXPECT_EQ(port_tell(remote, 1, large), kCFMessagePortSuccess);
    CFMessagePortInvalidate(remote);
    CFRelease(remote);
    CFRelease(large);
}

static void ignore_mach_message(CFMachPortRef port, void *message, CFIndex size, void *info)
{
    (void)port, (void)message, (void)size;
    CFRunLoopStop(info);
}

static void mach_port(void)
{
    CFMachPortContext context = {.info = CFRunLoopGetCurrent()};
    CFMachPortRef port = CFMachPortCreate(NULL, ignore_mach_message, &context, NULL);
    CFRunLoopSourceRef source = CFMachPortCreateRunLoopSource(NULL, port, 0);
    mach_msg_header_t message = {.msgh_size = sizeof message, .msgh_remote_port = CFMachPortGetPort(port)};

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    EXPECT_EQ(CRLMachPortSend(&message, 1), kCRLMachPortSuccess);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 100, false), kCFRunLoopRunStopped);
    CFRelease(source);
    CFMachPortInvalidate(port);
    CFRelease(port);
}

static void ignore_socket_event(CFSocketRef s, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    (void)s, (void)address, (void)info;
    if (type == kCFSocketAcceptCallBack) {
        accepted = *(const CFSocketNativeHandle *)data;
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
}

static void sockets(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    CFDataRef wanted = CFDataCreate(NULL, (const UInt8 *)&any, sizeof any);
    CFSocketRef listener = CFSocketCreate(NULL, PF_INET, SOCK_STREAM, 0, kCFSocketAcceptCallBack, ignore_socket_event, NULL);
    CFSocketRef client = CFSocketCreate(NULL, PF_INET, SOCK_STREAM, 0, 0, NULL, NULL);
    CFRunLoopSourceRef source = CFSocketCreateRunLoopSource(NULL, listener, 0);
    CFDataRef address;

    EXPECT_EQ(CFSocketSetAddress(listener, wanted), kCFSocketSuccess);
    address = CFSocketCopyAddress(listener);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    EXPECT_EQ(CFSocketConnectToAddress(client, address, 10), kCFSocketSuccess);
    EXPECT_EQ(CFSocketSendData(client, NULL, wanted, 10), kCFSocketSuccess);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 100, false), kCFRunLoopRunStopped);
    CFSocketInvalidate(listener);
    CFSocketInvalidate(client);
    CFRelease(source);
    CFRelease(address);
    CFRelease(listener);
    CFRelease(client);
    CFRelease(wanted);
}

static void stop_at_event(CFFileDescriptorRef f, CFOptionFlags types, void *info)
{
    (void)f, (void)types, (void)info;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static void descriptors(void)
{
    CFFileDescriptorRef f = CFFileDescriptorCreate(NULL, event, true, stop_at_event, NULL);
    CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, f, 0);

    CFFileDescriptorEnableCallBacks(f, kCFFileDescriptorReadCallBack);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 100, false), kCFRunLoopRunStopped);
    CFFileDescriptorInvalidate(f);
    CFRelease(source);
    CFRelease(f);
}

/* That sleeps in its wait set. */
static void another_loop(void)
{
    for (int i = 0; i < 100; i++) {
        CFRunLoopWakeUp(server.loop);
    }
    (void)CFRunLoopRunInMode(MODE, 0.0 / 0.0, false); /* is logged */
}

static void printing(void)
{
    CFShow(CFSTR("is shown"));
    CFShowStr(CFSTR("is described"));
    CFShowStr(NULL);
}

PORT_TEST_BOTH_WAYS(a_pending_cancellation_ends_no_thread_inside_a_function, "P12")
{
    static const struct step steps[] = {
        {"ports", own_port}, {"requests", requests},       {"Mach ports", mach_port},
        {"sockets", sockets}, {"descriptors", descriptors}, {"another loop", another_loop},
        {"printing", printing},
    };

    port_thread_start(&server, NAME, port_echo, NULL);
    event = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        void *result = NULL;
        pthread_t thread;

        REQUIRE(pthread_create(&thread, NULL, with_a_pending_cancellation, (void *)(uintptr_t)&steps[i]) == 0);
        REQUIRE(pthread_join(thread, &result) == 0);
        if (result == PTHREAD_CANCELED) {
            test_failed(__FILE__, __LINE__, "a thread was cancelled in: %s", steps[i].name);
        }
    }
    (void)close(accepted);
    port_thread_stop(&server);
}
