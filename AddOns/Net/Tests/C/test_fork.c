/* SPDX-License-Identifier: Apache-2.0 */
/* The child of a fork asks for names and uses TLS while other threads did: see Failure/fork_probe.h. */
#include <sys/wait.h>
#include <unistd.h>

#include <CFNetwork/CFNetwork.h>

#include "CRLNetwork.h"
#include "Failure/fork_probe.h"
#include "Stream/stream_recorder.h"
#include "dns_server.h"
#include "query.h"
#include "tls_peer.h"

static const CFTimeInterval patience_s = 30; /* in a child, where nobody else is */
static CFDictionaryRef client_settings; /* constant while the threads run, as the next */
static CFDictionaryRef server_settings;

static void make_settings(void)
{
    struct credentials own = credentials_create("host.test", NULL, -day_s, day_s);
    CFArrayRef certificates = credentials_copy_pem(&own, true);
    CFArrayRef anchors = credentials_copy_pem(&own, false);
    CFTypeRef server_keys[] = {kCFStreamSSLIsServer, kCFStreamSSLCertificates};
    CFTypeRef server_values[] = {kCFBooleanTrue, certificates};
    CFTypeRef client_keys[] = {kCFStreamSSLPeerName, kCRLStreamSSLAnchorCertificates};
    CFTypeRef client_values[] = {CFSTR("host.test"), anchors};

    server_settings =
        CFDictionaryCreate(NULL, server_keys, server_values, 2, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    client_settings =
        CFDictionaryCreate(NULL, client_keys, client_values, 2, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    CFRelease(certificates);
    CFRelease(anchors);
    credentials_free(&own);
}

static bool host_is_found(const char *text, CFIndex count)
{
    CFStringRef name = CFStringCreateWithCString(NULL, text, kCFStringEncodingASCII);
    CFHostRef host = CFHostCreateWithName(NULL, name);
    bool is_found = CFHostStartInfoResolution(host, kCFHostAddresses, NULL) && CFArrayGetCount(CFHostGetAddressing(host, NULL)) == count;

    CFRelease(host);
    CFRelease(name);
    return is_found;
}

static bool asks_for_both(void)
{
    return host_is_found("both.test", 2);
}

static bool asks_by_tcp(void)
{
    return host_is_found("long.test", 1);
}

static bool asks_for_missing(void)
{
    return !host_is_found("missing.test", 1);
}

static bool asks_hosts_file(void)
{
    CFHostRef host = CFHostCreateWithName(NULL, CFSTR("localhost.localdomain"));
    CFStreamError error = {0, 0};

    (void)CFHostStartInfoResolution(host, kCFHostAddresses, &error);
    CFRelease(host);
    return error.domain == 0 || error.domain == kCFStreamErrorDomainNetDB;
}

/* One end of a connection. */
struct end {
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    int events;
};

static void note_event(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    (void)stream;
    (void)type;
    ((struct end *)info)->events++;
}

static bool end_open(struct end *end, int socket, CFDictionaryRef settings)
{
    CFStreamClientContext context = {.info = end};

    CFStreamCreatePairWithSocket(NULL, socket, &end->reader, &end->writer);
    CFReadStreamSetProperty(end->reader, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue);
    CFReadStreamSetProperty(end->reader, kCFStreamPropertySSLSettings, settings);
    CFReadStreamSetClient(end->reader, kCFStreamEventHasBytesAvailable | kCFStreamEventErrorOccurred | kCFStreamEventEndEncountered,
                          note_event, &context);
    CFReadStreamScheduleWithRunLoop(end->reader, CFRunLoopGetCurrent(), CFSTR("fork"));
    CFWriteStreamScheduleWithRunLoop(end->writer, CFRunLoopGetCurrent(), CFSTR("fork"));
    return CFReadStreamOpen(end->reader) && CFWriteStreamOpen(end->writer);
}

static void end_close(const struct end *end)
{
    CFReadStreamClose(end->reader);
    CFWriteStreamClose(end->writer);
    CFRelease(end->reader);
    CFRelease(end->writer);
}

/* Both ends of a connection are this thread's. */
static bool uses_tls(void)
{
    struct end client = {.events = 0};
    struct end server = {.events = 0};
    UInt8 bytes[8];
    bool is_carried = false;
    int ends[2];

    socket_pair_open(ends);
    if (end_open(&client, ends[0], client_settings) && end_open(&server, ends[1], server_settings)) {
        while (!CFWriteStreamCanAcceptBytes(client.writer) && server.events == 0 && client.events == 0 &&
               CFRunLoopRunInMode(CFSTR("fork"), patience_s, true) == kCFRunLoopRunHandledSource) {
        }
        is_carried = write_text(client.writer, "hello") == 5;
        while (is_carried && server.events == 0 && CFRunLoopRunInMode(CFSTR("fork"), patience_s, true) == kCFRunLoopRunHandledSource) {
        }
        is_carried = is_carried && CFReadStreamRead(server.reader, bytes, sizeof bytes) == 5;
    }
    end_close(&client);
    end_close(&server);
    return is_carried;
}

static bool is_refused(void)
{
    struct end client = {.events = 0};
    struct end server = {.events = 0};
    CFErrorRef error;
    CFStringRef words = NULL;
    int ends[2];

    socket_pair_open(ends);
    if (end_open(&client, ends[0], server_settings) && end_open(&server, ends[1], server_settings)) {
        (void)!write(ends[0], "no TLS at all", 13);
        while (server.events == 0 && CFRunLoopRunInMode(CFSTR("fork"), patience_s, true) == kCFRunLoopRunHandledSource) {
        }
    }
    error = CFReadStreamCopyError(server.reader);
    if (error) {
        words = CFErrorCopyDescription(error);
        CFRelease(error);
    }
    if (words) {
        CFRelease(words);
    }
    end_close(&client);
    end_close(&server);
    return words;
}

static const struct fork_use uses[] = {
    {"asks for two addresses", asks_for_both},
    {"asks by TCP", asks_by_tcp},
    {"asks for what is missing", asks_for_missing},
    {"asks the hosts file", asks_hosts_file},
    {"uses TLS", uses_tls},
    {"is refused by TLS", is_refused},
    {NULL, NULL},
};

/* ---- what is under way ---- */

static void note_answer(void *context, CFArrayRef addresses, CFStreamError error)
{
    *(_Atomic int *)context = addresses ? (int)CFArrayGetCount(addresses) : -1;
    (void)error;
}

/* Waits for the question that the parent has asked, on the loop that it was asked on, or without one. */
static int wait_in_child(void *query, const _Atomic int *answers, bool runs_loop)
{
    if (runs_loop) {
        run_until_count(answers, 1);
    } else {
        query_wait(query);
    }
    query_free(query);
    return *answers == 1 ? 0 : 1;
}

static void expect_both_are_answered(bool runs_loop)
{
    _Atomic int answers = 0;
    struct dns_server server;
    void *query;
    pid_t children[2];
    int status;

    dns_server_start(&server);
    query = query_resolve(CFSTR("late.test"), 80, note_answer, (void *)&answers);
    query_schedule(query, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    probe_await_count(&server.questions, 2);
    children[0] = fork();
    if (children[0] == 0) {
        query_free(query); /* which must not take it from the parent */
        _exit(0);
    }
    EXPECT(waitpid(children[0], &status, 0) == children[0] && status == 0);
    children[1] = fork();
    if (children[1] == 0) {
        _exit(wait_in_child(query, &answers, runs_loop));
    }
    probe_await_count(&server.questions, 4);
    dns_server_release_late(&server);
    EXPECT(waitpid(children[1], &status, 0) == children[1] && status == 0);
    run_until_count(&answers, 1);
    EXPECT_EQ(answers, 1);
    query_free(query);
    EXPECT_EQ(server.questions, 4); /* nobody had to ask twice */
    dns_server_stop(&server);
}

TEST(a_question_that_is_under_way_at_a_fork_is_answered_to_both, "176 1003")
{
    expect_both_are_answered(true);
    expect_both_are_answered(false);
}

/* The completion is on another thread, and forks: the child finds it told. */
static void fork_in_completion(void *context, CFArrayRef addresses, CFStreamError error)
{
    pid_t child = fork();
    int status;

    (void)addresses;
    (void)error;
    if (child == 0) {
        query_free(*(void **)context);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

TEST(a_completion_may_fork_while_another_thread_waits_for_it, "176 1003")
{
    int rounds = test_is_instrumented() ? 5 : 50;
    struct dns_server server;

    dns_server_start(&server);
    for (int i = 0; i < rounds; i++) {
        struct probe_thread thread;
        void *query = NULL;

        query = query_resolve(CFSTR("good.test"), 80, fork_in_completion, &query);
        probe_thread_start(&thread, query_wait, query);
        query_wait(query);
        probe_thread_join(&thread);
        query_free(query);
    }
    dns_server_stop(&server);
}

TEST_LIMIT(stress_fork_out_of_eight_threads_that_use_names_and_tls, "176 1003 1008", 600)
{
    struct dns_server server;

    CRLNetworkInstall();
    make_settings();
    dns_server_start(&server);
    fork_probe_run(uses);
    dns_server_stop(&server);
    CFRelease(client_settings);
    CFRelease(server_settings);
}
