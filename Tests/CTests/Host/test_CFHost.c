/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts: rules 1017 to 1023. The add-on library is a fake one, which answers when the test says so. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "CFNetwork/CFNetwork.h"
#include "CRLStreamNetwork.h"
#include "Loop/loop_probe.h"
#include "Stream/stream_recorder.h"

/* ---- a client ---- */

struct recorder {
    struct trace trace;
    void (*action)(struct recorder *recorder, CFHostRef host);
    _Atomic int calls;
    _Atomic int retains;
    _Atomic int releases;
};

static const void *info_retain(const void *info)
{
    ((struct recorder *)(uintptr_t)info)->retains++;
    return info;
}

static void info_release(const void *info)
{
    ((struct recorder *)(uintptr_t)info)->releases++;
}

static CFStringRef info_describe(const void *info)
{
    (void)info;
    return CFRetain(CFSTR("a recorder"));
}

static void called(CFHostRef host, CFHostInfoType info, const CFStreamError *error, void *context)
{
    struct recorder *recorder = context;

    trace_addf(&recorder->trace, "%d:%ld/%d", (int)info, (long)error->domain, (int)error->error);
    if (recorder->action) {
        recorder->action(recorder, host);
    }
    recorder->calls++;
}

static void watch(struct recorder *recorder, CFHostRef host)
{
    CFHostClientContext context = {0, recorder, info_retain, info_release, info_describe};

    REQUIRE(CFHostSetClient(host, called, &context));
}

static void schedule(CFHostRef host)
{
    CFHostScheduleWithRunLoop(host, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
}

/* ---- hosts ---- */

static CFDataRef address_of(const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET};

    REQUIRE(inet_pton(AF_INET, text, &address.sin_addr) == 1);
    return CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);
}

static CFHostRef host_of_address(const char *text)
{
    CFDataRef address = address_of(text);
    CFHostRef host = CFHostCreateWithAddress(NULL, address);

    CFRelease(address);
    REQUIRE(host);
    return host;
}

static bool has_address(CFHostRef host, const char *text)
{
    CFDataRef address = address_of(text);
    Boolean is_known;
    CFArrayRef addresses = CFHostGetAddressing(host, &is_known);
    bool is_there = addresses && is_known && CFArrayContainsValue(addresses, CFRangeMake(0, CFArrayGetCount(addresses)), address);

    CFRelease(address);
    return is_there;
}

static uint32_t flags_of(CFHostRef host)
{
    Boolean is_known;
    CFDataRef data = CFHostGetReachability(host, &is_known);
    uint32_t flags;

    REQUIRE(data && is_known && CFDataGetLength(data) == sizeof flags);
    memcpy(&flags, CFDataGetBytePtr(data), sizeof flags);
    return flags;
}

TEST(a_host_knows_what_it_was_made_of, "1017")
{
    CFHostRef named = CFHostCreateWithName(NULL, CFSTR("host.example"));
    CFHostRef addressed = host_of_address("127.0.0.2");
    Boolean is_known = true;
    CFStreamError error = {9, 9};

    EXPECT(!CFHostGetAddressing(named, &is_known) && !is_known);
    EXPECT(!CFHostGetReachability(named, &is_known) && !is_known);
    EXPECT(CFEqual(CFArrayGetValueAtIndex(CFHostGetNames(named, &is_known), 0), CFSTR("host.example")) && is_known);
    EXPECT(!CFHostGetNames(addressed, &is_known) && !is_known);
    EXPECT(has_address(addressed, "127.0.0.2"));
    EXPECT(CFHostStartInfoResolution(addressed, kCFHostAddresses, &error) && error.domain == 0 && error.error == 0);
    EXPECT(CFHostStartInfoResolution(named, kCFHostNames, NULL));
    EXPECT_EQ(CFGetTypeID(named), CFHostGetTypeID());
    CFRelease(named);
    CFRelease(addressed);
}

TEST(a_host_is_made_of_a_name_or_an_address, "1017")
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    CFDataRef wrong = CFDataCreate(NULL, (const UInt8 *)&local, sizeof local);
    CFDataRef empty = CFDataCreate(NULL, NULL, 0);
    CFHostRef host = CFHostCreateWithName(NULL, CFSTR("a"));

    EXPECT(!CFHostCreateWithName(NULL, NULL));
    EXPECT(!CFHostCreateWithAddress(NULL, NULL));
    EXPECT(!CFHostCreateWithAddress(NULL, wrong));
    EXPECT(!CFHostCreateWithAddress(NULL, empty));
    EXPECT(!CFHostStartInfoResolution(host, (CFHostInfoType)9, NULL));
    EXPECT_STOPS("CFHostGetNames: the host is NULL", { CFHostGetNames(NULL, NULL); });
    EXPECT_STOPS("CFHostCreateWithName: the name is a CFData", { CFHostCreateWithName(NULL, (CFStringRef)(const void *)empty); });
    EXPECT_STOPS("the loop is NULL", { CFHostScheduleWithRunLoop(host, NULL, kCFRunLoopDefaultMode); });
    EXPECT_STOPS("the mode is NULL", { CFHostUnscheduleFromRunLoop(host, CFRunLoopGetCurrent(), NULL); });
    CFRelease(host);
    CFRelease(wrong);
    CFRelease(empty);
}

TEST(numeric_hosts_are_known_without_asking, "1017 1018")
{
    CFHostRef numeric = CFHostCreateWithName(NULL, CFSTR("127.0.0.1"));
    CFHostRef local = CFHostCreateWithName(NULL, CFSTR("localhost"));

    EXPECT(CFHostStartInfoResolution(numeric, kCFHostAddresses, NULL));
    EXPECT(has_address(numeric, "127.0.0.1"));
    EXPECT_EQ(CFArrayGetCount(CFHostGetAddressing(numeric, NULL)), 1);
    EXPECT(CFHostStartInfoResolution(local, kCFHostAddresses, NULL));
    EXPECT_EQ(CFArrayGetCount(CFHostGetAddressing(local, NULL)), 2);
    CFRelease(numeric);
    CFRelease(local);
}

TEST(a_route_tells_whether_a_host_can_be_reached, "1019")
{
    CFHostRef here = CFHostCreateWithName(NULL, CFSTR("127.0.0.1"));
    CFHostRef nowhere = host_of_address("255.255.255.255"); /* a broadcast, which the system refuses to connect to */

    EXPECT(CFHostStartInfoResolution(here, kCFHostReachability, NULL));
    EXPECT_EQ(flags_of(here), kSCNetworkFlagsReachable | kSCNetworkFlagsIsLocalAddress);
    EXPECT(has_address(here, "127.0.0.1"));
    EXPECT(CFHostStartInfoResolution(nowhere, kCFHostReachability, NULL));
    EXPECT_EQ(flags_of(nowhere), 0);
    CFRelease(here);
    CFRelease(nowhere);
}

TEST(servers_are_asked_by_the_add_on_library_of_hosts, "1018")
{
    CFHostRef named = CFHostCreateWithName(NULL, CFSTR("host.example"));
    CFHostRef addressed = host_of_address("127.0.0.1");
    struct recorder recorder = {0};
    CFStreamError error;

    EXPECT(!CFHostStartInfoResolution(named, kCFHostAddresses, &error));
    EXPECT_ERRNO(error, ENOSYS);
    EXPECT(!CFHostStartInfoResolution(addressed, kCFHostNames, &error));
    EXPECT_ERRNO(error, ENOSYS);
    EXPECT(!CFHostStartInfoResolution(named, kCFHostReachability, &error));
    EXPECT_ERRNO(error, ENOSYS);
    watch(&recorder, named);
    schedule(named);
    EXPECT(!CFHostStartInfoResolution(named, kCFHostAddresses, &error));
    EXPECT_ERRNO(error, ENOSYS);
    run_what_is_ready();
    EXPECT_EQ(recorder.calls, 0);
    CFRelease(named);
    CFRelease(addressed);
}

/* ---- a fake add-on library ---- */

static struct fake_query {
    CRLStreamResolved completion; /* NULL: answered, or freed */
    void *context;
    int modes;
    int frees;
    bool fails; /* no query can be made */
} query;

static void *fake_resolve(CFStringRef host, UInt32 port, CRLStreamResolved completion, void *context)
{
    EXPECT(CFEqual(host, CFSTR("host.example")) && port == 0);
    query.completion = completion;
    query.context = context;
    return query.fails ? NULL : &query;
}

static void *fake_resolve_address(CFDataRef address, CRLStreamResolved completion, void *context)
{
    EXPECT_EQ(CFDataGetLength(address), sizeof(struct sockaddr_in));
    query.completion = completion;
    query.context = context;
    return &query;
}

static void fake_schedule(void *object, CFRunLoopRef loop, CFStringRef mode)
{
    (void)object;
    (void)loop;
    (void)mode;
    query.modes++;
}

static void fake_unschedule(void *object, CFRunLoopRef loop, CFStringRef mode)
{
    (void)object;
    (void)loop;
    (void)mode;
    query.modes--;
}

static void fake_free(void *object)
{
    (void)object;
    query.completion = NULL;
    query.frees++;
}

static const CRLStreamNetwork network = {.resolve = fake_resolve,
                                         .resolveAddress = fake_resolve_address,
                                         .scheduleQuery = fake_schedule,
                                         .unscheduleQuery = fake_unschedule,
                                         .freeQuery = fake_free};

static const CFStreamError no_name = {12, -2};

/* Answers with one value, which is released; or with an error. */
static void answer(CFTypeRef value)
{
    CFArrayRef values = value ? CFArrayCreate(NULL, &value, 1, &kCFTypeArrayCallBacks) : NULL;
    CRLStreamResolved completion = query.completion;

    query.completion = NULL;
    REQUIRE(completion);
    completion(query.context, values, value ? (CFStreamError){0, 0} : no_name);
    if (value) {
        CFRelease(values);
        CFRelease(value);
    }
}

static CFHostRef watched_host(struct recorder *recorder)
{
    CFHostRef host = CFHostCreateWithName(NULL, CFSTR("host.example"));

    CRLStreamSetNetwork(&network);
    watch(recorder, host);
    schedule(host);
    return host;
}

TEST(the_client_of_a_host_hears_of_an_answer_once, "1020")
{
    struct recorder recorder = {0};
    CFHostRef host = watched_host(&recorder);
    CFStreamError error;

    EXPECT(CFHostStartInfoResolution(host, kCFHostAddresses, &error) && error.domain == 0);
    EXPECT_EQ(query.modes, 1);
    EXPECT(!CFHostStartInfoResolution(host, kCFHostNames, &error));
    EXPECT_ERRNO(error, EBUSY);
    run_what_is_ready();
    EXPECT_EQ(recorder.calls, 0);
    answer(address_of("127.0.0.9"));
    EXPECT_EQ(recorder.calls, 0); /* the answer is told by the loop */
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "0:0/0");
    EXPECT(has_address(host, "127.0.0.9"));
    EXPECT_EQ(query.frees, 1);
    EXPECT(CFHostStartInfoResolution(host, kCFHostAddresses, NULL));
    answer(NULL);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "0:0/0 0:12/-2");
    EXPECT(has_address(host, "127.0.0.9")); /* what it knew before stays */
    EXPECT(CFHostStartInfoResolution(host, kCFHostReachability, NULL)); /* by the addresses that it knows */
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "0:0/0 0:12/-2 2:0/0");
    CFRelease(host);
    EXPECT_EQ(recorder.retains, 1);
    EXPECT_EQ(recorder.releases, 1);
}

TEST(reachability_asks_for_the_addresses_of_a_host_first, "1019 1020")
{
    struct recorder recorder = {0};
    CFHostRef host = watched_host(&recorder);

    EXPECT(CFHostStartInfoResolution(host, kCFHostReachability, NULL));
    answer(address_of("127.0.0.1"));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "2:0/0");
    EXPECT(flags_of(host) & kSCNetworkFlagsReachable);
    EXPECT(has_address(host, "127.0.0.1"));
    CFRelease(host);
}

TEST(a_host_of_an_address_learns_its_names, "1018 1020")
{
    struct recorder recorder = {0};
    CFHostRef host = host_of_address("127.0.0.1");
    CFHostRef copy;

    CRLStreamSetNetwork(&network);
    watch(&recorder, host);
    schedule(host);
    EXPECT(CFHostStartInfoResolution(host, kCFHostNames, NULL));
    answer(CFRetain(CFSTR("a.example")));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "1:0/0");
    copy = CFHostCreateCopy(NULL, host);
    CFRelease(host);
    EXPECT(CFEqual(CFArrayGetValueAtIndex(CFHostGetNames(copy, NULL), 0), CFSTR("a.example")));
    EXPECT(has_address(copy, "127.0.0.1"));
    CFRelease(copy);
}

TEST(a_cancelled_host_tells_nothing, "1021")
{
    struct recorder recorder = {0};
    CFHostRef host = watched_host(&recorder);

    CFHostCancelInfoResolution(host, kCFHostAddresses);
    EXPECT(CFHostStartInfoResolution(host, kCFHostAddresses, NULL));
    CFHostCancelInfoResolution(host, kCFHostNames); /* it does not ask for these */
    EXPECT_EQ(query.frees, 0);
    CFHostCancelInfoResolution(host, kCFHostAddresses);
    EXPECT_EQ(query.frees, 1);
    EXPECT(CFHostStartInfoResolution(host, kCFHostAddresses, NULL));
    answer(address_of("127.0.0.9"));
    CFHostCancelInfoResolution(host, kCFHostAddresses); /* the answer is there and not told yet */
    run_what_is_ready();
    EXPECT_EQ(recorder.calls, 0);
    EXPECT(CFHostStartInfoResolution(host, kCFHostNames, NULL));
    CFRelease(host); /* the last release cancels, too */
    run_what_is_ready();
    EXPECT_EQ(recorder.calls, 0);
    EXPECT_EQ(recorder.releases, 1);
}

TEST(a_host_that_has_left_its_mode_tells_nothing_there, "1021 1020")
{
    struct recorder recorder = {0};
    CFHostRef host = watched_host(&recorder);

    schedule(host);
    EXPECT(CFHostStartInfoResolution(host, kCFHostAddresses, NULL));
    EXPECT_EQ(query.modes, 1);
    CFHostUnscheduleFromRunLoop(host, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    CFHostUnscheduleFromRunLoop(host, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT_EQ(query.modes, 0);
    answer(address_of("127.0.0.9"));
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunFinished);
    EXPECT_EQ(recorder.calls, 0);
    schedule(host); /* the answer is kept */
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "0:0/0");
    CFRelease(host);
}

static void ask_again(struct recorder *recorder, CFHostRef host)
{
    EXPECT(CFHostStartInfoResolution(host, kCFHostNames, NULL));
    recorder->action = NULL;
}

static void release_host(struct recorder *recorder, CFHostRef host)
{
    (void)recorder;
    CFRelease(host);
}

static void remove_client(struct recorder *recorder, CFHostRef host)
{
    EXPECT(CFHostSetClient(host, NULL, NULL));
    EXPECT_EQ(recorder->releases, 0); /* the callback still has it */
}

TEST(a_host_may_be_asked_changed_and_released_in_its_callback, "1020 1021")
{
    struct recorder asking = {.action = ask_again};
    struct recorder releasing = {.action = release_host};
    struct recorder removing = {.action = remove_client};
    CFHostRef host = watched_host(&asking);

    EXPECT(CFHostStartInfoResolution(host, kCFHostNames, NULL));
    run_what_is_ready();
    EXPECT_TRACE(&asking.trace, "1:0/0 1:0/0");
    watch(&removing, host);
    EXPECT_EQ(asking.releases, 1);
    EXPECT(CFHostStartInfoResolution(host, kCFHostNames, NULL));
    run_what_is_ready();
    EXPECT_EQ(removing.releases, 1);
    watch(&releasing, host);
    EXPECT(CFHostStartInfoResolution(host, kCFHostNames, NULL));
    run_what_is_ready();
    EXPECT_TRACE(&releasing.trace, "1:0/0");
    EXPECT_EQ(releasing.releases, 1);
}

TEST(without_memory_for_a_query_a_host_is_idle_again, "1022")
{
    struct recorder recorder = {0};
    CFHostRef host = watched_host(&recorder);
    CFStreamError error;

    query.fails = true;
    EXPECT(!CFHostStartInfoResolution(host, kCFHostAddresses, &error));
    EXPECT_ERRNO(error, ENOMEM);
    query.fails = false;
    EXPECT(CFHostStartInfoResolution(host, kCFHostAddresses, NULL));
    CFRelease(host);
}

/* ---- waiting ---- */

static void answer_with_an_address(void *context)
{
    (void)context;
    answer(address_of("127.0.0.9"));
}

static void cancel_host(void *context)
{
    CFHostCancelInfoResolution(context, kCFHostAddresses);
}

TEST(without_a_client_a_host_waits, "1023")
{
    CFHostRef host = CFHostCreateWithName(NULL, CFSTR("host.example"));
    CFStreamError error;
    struct probe_thread thread;

    CRLStreamSetNetwork(&network);
    probe_thread_when_waiting(&thread, CFRunLoopGetCurrent(), answer_with_an_address, NULL);
    EXPECT(CFHostStartInfoResolution(host, kCFHostAddresses, &error));
    EXPECT(error.domain == 0 && has_address(host, "127.0.0.9"));
    probe_thread_join(&thread);
    EXPECT_EQ(query.modes, 1); /* of the wait, which frees the query in the place of taking it out */
    probe_thread_when_waiting(&thread, CFRunLoopGetCurrent(), cancel_host, host);
    EXPECT(!CFHostStartInfoResolution(host, kCFHostAddresses, &error));
    EXPECT_ERRNO(error, ECANCELED);
    probe_thread_join(&thread);
    CFRelease(host);
}

TEST(a_description_of_a_host_says_what_it_does, "1017")
{
    struct recorder recorder = {0};
    CFHostRef host = watched_host(&recorder);
    CFStringRef text;

    EXPECT(CFHostStartInfoResolution(host, kCFHostAddresses, NULL));
    text = CFCopyDescription(host);
    EXPECT(CFStringFind(text, CFSTR("{host.example, asking, scheduled in modes = 1, client = a recorder}"), 0).length > 0);
    CFRelease(text);
    CFRelease(host);
    text = CFCopyTypeIDDescription(CFHostGetTypeID());
    EXPECT(CFEqual(text, CFSTR("CFHost")));
    CFRelease(text);
}

/* ---- streams ---- */

static void expect_connection(CFHostRef host, UInt32 port, CFStringRef name)
{
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    CFTypeRef value;

    CFStreamCreatePairWithSocketToCFHost(NULL, host, (int16_t)port, &reader, &writer); /* as one that a program keeps in 16 bits */
    CFRelease(host);
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    EXPECT_EQ(write_text(writer, "a"), 1);
    value = CFReadStreamCopyProperty(reader, kCFStreamPropertySocketRemoteHostName);
    EXPECT(value && CFEqual(value, name));
    CFRelease(value);
    CFRelease(reader);
    CFRelease(writer);
}

TEST(a_pair_of_streams_connects_to_a_host, "1024 329")
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = 1, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);
    UInt32 port;
    int listener = listener_open(&port);
    struct recorder recorder = {0};
    CFHostRef resolved = watched_host(&recorder);
    CFReadStreamRef reader;

    expect_connection(CFHostCreateWithAddress(NULL, data), port, CFSTR("127.0.0.1"));
    expect_connection(CFHostCreateWithName(NULL, CFSTR("localhost")), port, CFSTR("localhost"));
    EXPECT(CFHostStartInfoResolution(resolved, kCFHostAddresses, NULL));
    answer(CFRetain(data));
    run_until_count(&recorder.calls, 1);
    expect_connection(resolved, port, CFSTR("host.example"));
    CFRelease(data);
    close(listener);
    EXPECT_STOPS("CFStreamCreatePairWithSocketToCFHost", CFStreamCreatePairWithSocketToCFHost(NULL, NULL, 80, &reader, NULL));
}
