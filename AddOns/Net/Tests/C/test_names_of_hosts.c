/* SPDX-License-Identifier: Apache-2.0 */
/* CFHost with servers on loopback: rules 1018 to 1023. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <CFNetwork/CFNetwork.h>

#include "CRLNetwork.h"
#include "Stream/stream_recorder.h"
#include "dns_server.h"
#include "harness.h"

static void note(CFHostRef host, CFHostInfoType info, const CFStreamError *error, void *context)
{
    _Atomic int *calls = context;

    (void)host;
    (void)info;
    *calls += 1;
    EXPECT_EQ(error->error, 0);
}

static CFHostRef host_of_loopback(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 4)};
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);
    CFHostRef host = CFHostCreateWithAddress(NULL, data);

    CFRelease(data);
    return host;
}

/* An address that is only for documents. */
static CFHostRef host_of_internet_6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};
    CFDataRef data;
    CFHostRef host;

    (void)inet_pton(AF_INET6, "2001:db8::4", &address.sin6_addr);
    data = CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);
    host = CFHostCreateWithAddress(NULL, data);
    CFRelease(data);
    return host;
}

static void expect_name(CFHostRef host)
{
    CFStreamError error;

    EXPECT(CFHostStartInfoResolution(host, kCFHostNames, &error));
    EXPECT(CFHostGetNames(host, NULL) && CFEqual(CFArrayGetValueAtIndex(CFHostGetNames(host, NULL), 0), CFSTR("host.test")));
    CFRelease(host);
}

TEST(a_host_asks_servers_on_its_loop, "1018 1020")
{
    CFHostRef host = CFHostCreateWithName(NULL, CFSTR("both.test"));
    _Atomic int calls = 0;
    CFHostClientContext context = {.info = &calls};
    struct dns_server server;

    dns_server_start(&server);
    CFHostSetClient(host, note, &context);
    CFHostScheduleWithRunLoop(host, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT(CFHostStartInfoResolution(host, kCFHostAddresses, NULL));
    run_until_count(&calls, 1);
    EXPECT_EQ(CFArrayGetCount(CFHostGetAddressing(host, NULL)), 2);
    CFRelease(host);
    dns_server_stop(&server);
}

TEST(a_host_that_waits_asks_servers, "1018 1023 1002")
{
    CFHostRef named = CFHostCreateWithName(NULL, CFSTR("good.test"));
    CFHostRef missing = CFHostCreateWithName(NULL, CFSTR("missing.test"));
    CFStreamError error;
    struct dns_server server;

    dns_server_start(&server);
    EXPECT(CFHostStartInfoResolution(named, kCFHostAddresses, &error));
    EXPECT_EQ(CFArrayGetCount(CFHostGetAddressing(named, NULL)), 1);
    EXPECT(!CFHostStartInfoResolution(missing, kCFHostAddresses, &error));
    EXPECT_EQ(error.domain, kCFStreamErrorDomainNetDB);
    EXPECT_EQ(error.error, EAI_NONAME);
    expect_name(host_of_loopback());
    expect_name(host_of_internet_6());
    CFRelease(named);
    CFRelease(missing);
    dns_server_stop(&server);
}

static void cancel(void *context)
{
    CFHostCancelInfoResolution(context, kCFHostAddresses);
}

TEST(a_wait_for_a_silent_server_can_be_cancelled, "1023 1021")
{
    CFHostRef host = CFHostCreateWithName(NULL, CFSTR("late.test"));
    CFStreamError error;
    struct dns_server server;
    struct probe_thread thread;

    dns_server_start(&server);
    probe_thread_when_waiting(&thread, CFRunLoopGetCurrent(), cancel, host);
    EXPECT(!CFHostStartInfoResolution(host, kCFHostAddresses, &error));
    EXPECT_ERRNO(error, ECANCELED);
    probe_thread_join(&thread);
    CFRelease(host);
    dns_server_stop(&server);
}

static void cancel_soon(void *context)
{
    cancel(context);
    CFRelease(context);
}

/* The answer, the cancellation and the release come at the same time. */
TEST(a_host_may_be_cancelled_while_its_answer_comes, "1021")
{
    int rounds = test_is_instrumented() ? 30 : 300;
    struct dns_server server;

    dns_server_start(&server);
    for (int i = 0; i < rounds; i++) {
        CFHostRef host = CFHostCreateWithName(NULL, CFSTR("good.test"));
        _Atomic int calls = 0;
        CFHostClientContext context = {.info = &calls};
        struct probe_thread thread;

        CFHostSetClient(host, note, &context);
        CFHostScheduleWithRunLoop(host, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
        EXPECT(CFHostStartInfoResolution(host, kCFHostAddresses, NULL));
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
        CFRetain(host);
        probe_thread_start(&thread, cancel_soon, host);
        CFRelease(host);
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
        probe_thread_join(&thread);
        EXPECT(calls <= 1);
    }
    dns_server_stop(&server);
}
