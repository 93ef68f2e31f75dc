/* SPDX-License-Identifier: Apache-2.0 */
/* Names of hosts: rules 1000 to 1005. The servers are on loopback. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "Stream/stream_recorder.h"
#include "dns_server.h"
#include "query.h"

/* ---- the functions themselves ---- */

/* What a query's completion was called with. */
struct answer {
    void *query;
    struct trace trace; /* the addresses, or the error */
    bool frees; /* in the completion */
    _Atomic int calls;
};

static void note_answer(void *context, CFArrayRef addresses, CFStreamError error)
{
    struct answer *answer = context;

    for (CFIndex i = 0; addresses && i < CFArrayGetCount(addresses); i++) {
        const struct sockaddr *address = (const void *)CFDataGetBytePtr(CFArrayGetValueAtIndex(addresses, i));
        char host[64];
        char port[16];

        REQUIRE(getnameinfo(address, (socklen_t)CFDataGetLength(CFArrayGetValueAtIndex(addresses, i)), host, sizeof host, port, sizeof port,
                            NI_NUMERICHOST | NI_NUMERICSERV) == 0);
        trace_addf(&answer->trace, "%s:%s", host, port);
    }
    if (!addresses) {
        trace_addf(&answer->trace, "error %ld %d", (long)error.domain, (int)error.error);
    }
    if (answer->frees) {
        query_free(answer->query);
    }
    answer->calls++;
}

static void ask(struct answer *answer, CFStringRef host)
{
    answer->query = query_resolve(host, 80, note_answer, answer);
    REQUIRE(answer->query);
    EXPECT_EQ(answer->calls, 0);
}

static void schedule(struct answer *answer)
{
    query_schedule(answer->query, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
}

static void expect_answer(CFStringRef host, const char *expected)
{
    struct answer on_loop = {0};
    struct answer waiting = {0};

    ask(&on_loop, host);
    schedule(&on_loop);
    run_until_count(&on_loop.calls, 1);
    EXPECT_TRACE(&on_loop.trace, expected);
    query_free(on_loop.query);
    ask(&waiting, host);
    query_wait(waiting.query);
    EXPECT_EQ(waiting.calls, 1);
    EXPECT_TRACE(&waiting.trace, expected);
    query_free(waiting.query);
}

static const char *error_text(int error)
{
    static char text[32];

    snprintf(text, sizeof text, "error 12 %d", error);
    return text;
}

TEST(a_name_is_resolved_to_all_its_addresses, "1000 1001")
{
    struct dns_server server;

    dns_server_start(&server);
    expect_answer(CFSTR("good.test"), "127.0.0.1:80");
    expect_answer(CFSTR("both.test"), "::1:80 127.0.0.1:80");
    expect_answer(CFSTR("alias.test"), "127.0.0.1:80");
    expect_answer(CFSTR("long.test"), "127.0.0.1:80");
    dns_server_stop(&server);
}

/* c-ares would wait for somebody who writes into it. */
TEST(a_pipe_as_the_file_of_aliases_of_hosts_is_not_read, "1000")
{
    char fifo[] = "/tmp/aliases.XXXXXX";
    struct dns_server server;

    close(mkstemp(fifo));
    REQUIRE(unlink(fifo) == 0 && mkfifo(fifo, 0600) == 0 && setenv("HOSTALIASES", fifo, 1) == 0);
    dns_server_start(&server);
    expect_answer(CFSTR("good"), "127.0.0.1:80");
    dns_server_stop(&server);
    unsetenv("HOSTALIASES");
    unlink(fifo);
}

TEST(a_name_that_has_no_address_is_an_error_of_getaddrinfo, "1002")
{
    struct dns_server server;

    dns_server_start(&server);
    expect_answer(CFSTR("missing.test"), error_text(EAI_NONAME));
    expect_answer(CFSTR("empty.test"), error_text(EAI_NODATA));
    expect_answer(CFSTR("failing.test"), error_text(EAI_AGAIN));
    expect_answer(CFSTR(""), error_text(EAI_NONAME));
    expect_answer(CFSTR("caf\u00e9.test"), error_text(EAI_NONAME));
    expect_answer(CFSTR("a-label-of-more-than-sixty-three-letters-is-not-a-label-of-the-domain-name-system.test"), error_text(EAI_NONAME));
    dns_server_stop(&server);
}

/* The server counts a question after it has answered. */
static void expect_questions(struct dns_server *server, int count)
{
    while (server->questions < count) {
        sched_yield();
    }
    EXPECT_EQ(server->questions, count);
}

/* Each is refused at once, whatever the servers say: they are not asked. */
TEST(what_is_no_name_of_a_host_is_never_asked_for, "1002")
{
    static const char *const names[] = {
        "good..test",  ".good.test",     "good.test..",   ".",           "good .test", " good.test",   "good.test ", "good\t.test",
        "good.test\n", "good\x7f.t",     "good.test\x01", "[good.test]", "good%lo",    "good:80",      "good/test",  "a@good.test",
        "good\\.test", "good,both.test", "::1%nosuch",    "1.2.3.256",   "127.0.0.1.", "0x7f.0.0.0.1", "08.0.0.1",   "4294967296",
        "1.2.3.4.5",
    };
    char longest[320];
    CFStringRef with_nul;
    struct dns_server server;

    dns_server_start(&server);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CFStringRef name = CFStringCreateWithCString(NULL, names[i], kCFStringEncodingASCII);

        expect_answer(name, error_text(EAI_NONAME));
        CFRelease(name);
    }
    EXPECT_EQ(server.questions, 0);
    for (int length = 300; length >= 253; length -= length > 255 ? 45 : 1) {
        CFStringRef name;

        snprintf(longest, sizeof longest, "missing.%0*d", length - 8, 0);
        for (int i = 60; i < length - 1; i += 60) {
            longest[i] = '.';
        }
        longest[20] = 'a';
        name = CFStringCreateWithCString(NULL, longest, kCFStringEncodingASCII);
        EXPECT_EQ(server.questions, 0);
        expect_answer(name, error_text(EAI_NONAME));
        CFRelease(name);
    }
    expect_questions(&server, 2 * 2); /* for the shortest */
    with_nul = CFStringCreateWithFormat(NULL, NULL, CFSTR("good.test%C.trusted.test"), (UniChar)0);
    expect_answer(with_nul, error_text(EAI_NONAME));
    CFRelease(with_nul);
    EXPECT_EQ(server.questions, 2 * 2);
    expect_answer(CFSTR("good.test."), "127.0.0.1:80");
    dns_server_stop(&server);
}

TEST(a_server_that_says_nothing_or_nonsense_is_given_up, "1002")
{
    struct dns_server server;

    dns_server_start(&server);
    server.configuration.timeout_ms = 20;
    server.configuration.attempts = 2;
    expect_answer(CFSTR("silent.test"), error_text(EAI_AGAIN));
    expect_answer(CFSTR("garbage.test"), error_text(EAI_AGAIN));
    expect_answer(CFSTR("torn.test"), error_text(EAI_AGAIN));
    dns_server_stop(&server);
    expect_answer(CFSTR("good.test"), error_text(EAI_AGAIN)); /* nobody listens any more */
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A server is waited for as long as the tests have patience, so that waiting for it would fail. */
TEST(one_family_does_not_wait_for_the_other, "1000")
{
    double begin_s = now_s();
    struct dns_server server;

    dns_server_start(&server);
    expect_answer(CFSTR("only4.test"), "127.0.0.1:80");
    expect_answer(CFSTR("only6.test"), "::1:80");
    expect_answer(CFSTR("torn4.test"), "::1:80");
    expect_answer(CFSTR("torn6.test"), "127.0.0.1:80");
    EXPECT(now_s() - begin_s < test_patience_s() / 2);
    dns_server_stop(&server);
}

/* Nobody listens at port 1. The system never gives it to a socket, which would then be connected to itself and read its own question. */
TEST(a_server_that_refuses_is_passed_over_at_once, "1000")
{
    static const char nobody[] = "127.0.0.1:1";
    double begin_s = now_s();
    struct dns_server server;

    dns_server_start(&server);
    memcpy(server.configuration.servers[0], nobody, sizeof nobody);
    memcpy(server.configuration.servers[1], server.address, sizeof server.address);
    server.configuration.server_count = 2;
    for (int i = 0; i < 10; i++) {
        expect_answer(CFSTR("good.test"), "127.0.0.1:80");
        expect_answer(CFSTR("both.test"), "::1:80 127.0.0.1:80");
    }
    server.configuration.rotates = true;
    for (int i = 0; i < 4; i++) {
        expect_answer(CFSTR("good.test"), "127.0.0.1:80");
    }
    EXPECT(now_s() - begin_s < test_patience_s() / 2);
    dns_server_stop(&server);
}

TEST(domains_are_searched_until_one_has_the_name, "1000")
{
    static const char domains[] = "nowhere.test\0somewhere.test";
    struct dns_server server;

    dns_server_start(&server);
    memcpy(server.configuration.domains, domains, sizeof domains);
    server.configuration.domain_count = 2;
    expect_answer(CFSTR("good"), "127.0.0.1:80");
    expect_questions(&server, 2 * 4);
    expect_answer(CFSTR("good.nowhere"), error_text(EAI_NONAME));
    expect_questions(&server, 2 * (4 + 6));
    expect_answer(CFSTR("good."), "127.0.0.1:80");
    expect_questions(&server, 2 * (4 + 6 + 2));
    server.configuration.ndots = 2;
    expect_answer(CFSTR("good.test"), "127.0.0.1:80"); /* good.test.somewhere.test */
    expect_questions(&server, 2 * (4 + 6 + 2 + 2));
    expect_answer(CFSTR("missing"), error_text(EAI_NONAME));
    expect_questions(&server, 2 * (4 + 6 + 2 + 2 + 6));
    dns_server_stop(&server);
}

TEST(the_hosts_file_is_read_before_a_server_is_asked, "1000")
{
    struct answer answer = {0};
    struct dns_server server;

    if (!dns_hosts_file_has_localhost()) {
        SKIP("the hosts file has no localhost");
    }
    dns_server_start(&server);
    ask(&answer, CFSTR("localhost"));
    query_wait(answer.query);
    EXPECT(strstr(answer.trace.text, "127.0.0.1:80"));
    EXPECT_EQ(server.questions, 0);
    query_free(answer.query);
    dns_server_stop(&server);
}

TEST(a_query_tells_nothing_after_it_was_freed, "1003")
{
    struct answer late = {0};
    struct answer at_once = {0};
    struct answer unused = {0};
    struct dns_server server;

    dns_server_start(&server);
    ask(&late, CFSTR("late.test"));
    schedule(&late);
    while (server.questions < 2) {
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.001, true);
    }
    query_free(late.query);
    dns_server_release_late(&server);
    ask(&at_once, CFSTR(""));
    schedule(&at_once);
    query_free(at_once.query);
    ask(&unused, CFSTR("good.test"));
    query_free(unused.query);
    run_what_is_ready();
    EXPECT_EQ(late.calls + at_once.calls + unused.calls, 0);
    dns_server_stop(&server);
}

TEST(a_query_may_be_freed_while_it_tells, "1003")
{
    struct answer on_loop = {.frees = true};
    struct answer waiting = {.frees = true};
    struct dns_server server;

    dns_server_start(&server);
    ask(&on_loop, CFSTR("good.test"));
    schedule(&on_loop);
    run_until_count(&on_loop.calls, 1);
    ask(&waiting, CFSTR("good.test"));
    query_wait(waiting.query);
    EXPECT_EQ(waiting.calls, 1);
    dns_server_stop(&server);
}

TEST(a_query_goes_on_in_a_mode_as_long_as_one_stream_is_there, "1004")
{
    struct answer answer = {0};
    struct dns_server server;

    dns_server_start(&server);
    ask(&answer, CFSTR("good.test"));
    schedule(&answer);
    schedule(&answer);
    query_unschedule(answer.query, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    query_schedule(answer.query, CFRunLoopGetCurrent(), CFSTR("another mode"));
    query_unschedule(answer.query, CFRunLoopGetCurrent(), CFSTR("a mode that it is not in"));
    run_until_count(&answer.calls, 1);
    query_free(answer.query);

    answer.calls = 0;
    ask(&answer, CFSTR("late.test"));
    schedule(&answer);
    query_unschedule(answer.query, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunFinished);
    query_free(answer.query);
    dns_server_stop(&server);
}

static void run_the_loop_of_a_query(void *context)
{
    struct answer *answer = context;

    schedule(answer);
    while (answer->calls == 0) { /* nothing wakes this loop if the other thread calls the completion */
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.001, true);
        sched_yield();
    }
}

/* Either the loop of one thread takes the answer or the thread that waits for it. The other one finds the completion called. */
TEST(two_threads_may_go_on_with_one_query, "1004 1003")
{
    int rounds = test_is_instrumented() ? 20 : 200;
    struct dns_server server;

    dns_server_start(&server);
    for (int i = 0; i < rounds; i++) {
        struct answer answer = {0};
        struct probe_thread thread;

        ask(&answer, CFSTR("good.test"));
        probe_thread_start(&thread, run_the_loop_of_a_query, &answer);
        query_wait(answer.query);
        EXPECT_EQ(answer.calls, 1);
        probe_thread_join(&thread);
        query_free(answer.query);
        EXPECT_EQ(answer.calls, 1);
    }
    dns_server_stop(&server);
}

TEST(without_descriptors_no_query_is_made, "1005")
{
    struct answer answer = {0};
    struct rlimit limit;

    REQUIRE(CFRunLoopGetCurrent() && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (rlim_t most = 3; most < 12; most++) {
        struct rlimit low = {most, limit.rlim_max};

        REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
        answer.query = query_resolve(CFSTR("silent.test"), 80, note_answer, &answer);
        if (answer.query) {
            query_free(answer.query);
        }
        REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
    EXPECT_EQ(answer.calls, 0);
}

/* ---- by way of streams ---- */

TEST(a_pair_of_streams_connects_to_a_name, "1000 331 334")
{
    struct stream_recorder reading = {0};
    struct stream_recorder writing = {.writes = "x"};
    struct dns_server server;
    UInt32 port;
    int listener = listener_open(&port); /* IPv4 alone: the address of IPv6 is refused */
    struct stream_pair pair = stream_pair_to(CFSTR("both.test"), port);
    char byte = 0;
    int peer;

    dns_server_start(&server);
    recorder_add_reader(&reading, pair.reader);
    recorder_add_writer(&writing, pair.writer);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    run_until_count(&writing.calls, 2);
    EXPECT_TRACE(&writing.trace, "open room 1");
    peer = accept(listener, NULL, NULL);
    EXPECT_EQ(read(peer, &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
    close(peer);
    run_until_count(&reading.calls, 2);
    EXPECT_TRACE(&reading.trace, "open end");
    stream_pair_release(pair);
    close(listener);
    dns_server_stop(&server);
}

TEST(a_stream_without_a_loop_waits_for_its_name, "1000 334")
{
    struct dns_server server;
    UInt32 port;
    int listener = listener_open(&port);
    struct stream_pair pair = stream_pair_to(CFSTR("good.test"), port);

    dns_server_start(&server);
    EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
    EXPECT_EQ(write_text(pair.writer, "x"), 1);
    stream_pair_release(pair);
    close(listener);
    dns_server_stop(&server);
}

TEST(a_name_that_does_not_resolve_is_told_to_its_streams, "1002 334 314 404")
{
    struct stream_recorder recorder = {0};
    struct dns_server server;
    struct stream_pair pair = stream_pair_to(CFSTR("missing.test"), 80);
    CFErrorRef error;
    CFStringRef description;

    dns_server_start(&server);
    recorder_add_reader(&recorder, pair.reader);
    EXPECT(CFReadStreamOpen(pair.reader));
    run_until_count(&recorder.calls, 1);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "error");
    EXPECT_EQ(CFReadStreamGetError(pair.reader).domain, kCFStreamErrorDomainNetDB);
    EXPECT_EQ(CFReadStreamGetError(pair.reader).error, EAI_NONAME);
    error = CFReadStreamCopyError(pair.reader);
    description = CFErrorCopyDescription(error);
    EXPECT(CFStringHasSuffix(description, CFSTR("There is no host of this name")));
    CFRelease(description);
    CFRelease(error);
    stream_pair_release(pair);
    dns_server_stop(&server);
}

static void close_stream(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    (void)type;
    CFReadStreamClose((CFReadStreamRef)(uintptr_t)stream);
    CFRelease(stream);
    recorder->context = NULL;
}

TEST(streams_may_be_freed_in_the_event_that_a_name_brings, "1003 315")
{
    struct stream_recorder recorder = {.action = close_stream};
    struct dns_server server;
    struct stream_pair pair = stream_pair_to(CFSTR("missing.test"), 80);

    dns_server_start(&server);
    CFRelease(pair.writer);
    recorder_add_reader(&recorder, pair.reader);
    EXPECT(CFReadStreamOpen(pair.reader));
    run_until_count(&recorder.calls, 1);
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "error");
    EXPECT_EQ(recorder.releases, 1);
    dns_server_stop(&server);
}

static void release_a_stream(void *context)
{
    CFRelease(context);
}

/* The answer comes on one thread while another one releases the streams. The later of them frees the query. */
TEST(streams_may_be_freed_on_another_thread_than_their_name_comes, "1003")
{
    int rounds = test_is_instrumented() ? 30 : 300;
    struct dns_server server;

    dns_server_start(&server);
    for (int i = 0; i < rounds; i++) {
        struct stream_pair pair = stream_pair_to(CFSTR("good.test"), 9);
        struct probe_thread threads[2];

        CFReadStreamScheduleWithRunLoop(pair.reader, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
        EXPECT(CFReadStreamOpen(pair.reader) && CFWriteStreamOpen(pair.writer));
        probe_thread_start(&threads[0], release_a_stream, pair.reader);
        probe_thread_start(&threads[1], release_a_stream, pair.writer);
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
        probe_thread_join(&threads[0]);
        probe_thread_join(&threads[1]);
    }
    dns_server_stop(&server);
}
