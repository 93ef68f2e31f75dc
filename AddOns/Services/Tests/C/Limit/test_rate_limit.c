/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of how often items are served: of each kind of item, on a clock that moves only when the loop would sleep. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLRateLimit.h"
#include "CoreFoundation/CFFileDescriptor.h"
#include "CoreFoundation/CFSocket.h"
#include "Port/port_probe.h"
#include "fake_kernel.h"
#include "harness.h"

#define DEFAULT kCFRunLoopDefaultMode

enum { second_ns = 1000000000 };

/* ---- the probe ---- */

/* What an item's callback and its limit have in common. */
struct limited {
    struct trace trace; /* c for each call of the item, B and E for what the limit tells */
    CRLRateLimitRef limit;
    CFTypeRef item; /* a reference */
    int descriptor; /* that the item reads; -1: none */
    int calls;
    int stop_at; /* the loop stops in this call */
    int64_t begun_ns; /* when the limit last began */
    _Atomic int releases; /* of the limit's context */
    void (*during)(struct limited *limited, CRLRateLimitEvent event); /* of what the limit tells; NULL: nothing */
};

static void note_event(CRLRateLimitRef limit, CRLRateLimitEvent event, void *info)
{
    struct limited *limited = info;

    EXPECT(limit == limited->limit);
    trace_add(&limited->trace, event == kCRLRateLimitBegins ? "B" : "E");
    if (event == kCRLRateLimitBegins) {
        limited->begun_ns = fake_kernel_elapsed_ns();
    }
    if (limited->during) {
        limited->during(limited, event);
    }
}

static void count_release(const void *info)
{
    ((struct limited *)(uintptr_t)info)->releases++;
}

static void note_call(struct limited *limited)
{
    trace_add(&limited->trace, "c");
    if (++limited->calls == limited->stop_at) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
    (void)CRLRateLimitCount(limited->limit);
}

static CRLRateLimitRef try_limit(struct limited *limited, CFRunLoopMode mode, CFTimeInterval interval, CFIndex burst)
{
    CRLSourceContext context = {.info = limited, .release = count_release};

    return CRLRateLimitCreate(NULL, CFRunLoopGetCurrent(), mode, limited->item, interval, burst, note_event, &context);
}

/* Three calls in 10 seconds. */
static void limit_in(struct limited *limited, CFRunLoopMode mode)
{
    limited->limit = try_limit(limited, mode, 10, 3);
    REQUIRE(limited->limit);
}

static void end_limit(struct limited *limited)
{
    CRLRateLimitInvalidate(limited->limit);
    CFRelease(limited->limit);
    EXPECT_EQ(limited->releases, 1);
    CFRelease(limited->item);
}

static CFRunLoopRunResult run(CFTimeInterval seconds)
{
    return CFRunLoopRunInMode(DEFAULT, seconds, false);
}

static void perform(void *info)
{
    struct limited *limited = info;

    CFRunLoopSourceSignal((CFRunLoopSourceRef)(uintptr_t)limited->item);
    note_call(limited);
}

static CFRunLoopSourceRef make_source(struct limited *limited)
{
    CFRunLoopSourceContext context = {.info = limited, .perform = perform};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, &context);

    REQUIRE(source);
    CFRunLoopSourceSignal(source);
    limited->item = source;
    return source;
}

static CFRunLoopSourceRef source_of(const struct limited *limited)
{
    return (CFRunLoopSourceRef)(uintptr_t)limited->item;
}

/* Since the last look. */
static void expect_trace(struct limited *limited, const char *expected)
{
    EXPECT_TRACE(&limited->trace, expected);
    trace_clear(&limited->trace);
}

/* ---- every kind of item ---- */

static void read_byte(struct limited *limited)
{
    char byte;

    REQUIRE(read(limited->descriptor, &byte, 1) == 1);
    note_call(limited);
}

static void descriptor_is_ready(CFFileDescriptorRef descriptor, CFOptionFlags types, void *info)
{
    read_byte(info);
    CFFileDescriptorEnableCallBacks(descriptor, types);
}

TEST(a_flooded_pipe_is_read_at_its_limit, "2242")
{
    struct limited limited = {.stop_at = 7};
    CFFileDescriptorContext context = {.info = &limited};
    CFFileDescriptorRef descriptor;
    int ends[2];

    fake_kernel_install();
    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0 && write(ends[1], "0123456789", 10) == 10);
    limited.descriptor = ends[0];
    descriptor = CFFileDescriptorCreate(NULL, ends[0], false, descriptor_is_ready, &context);
    limited.item = CFFileDescriptorCreateRunLoopSource(NULL, descriptor, 0);
    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack);
    limit_in(&limited, DEFAULT);
    EXPECT_EQ(run(100), kCFRunLoopRunStopped);
    expect_trace(&limited, "c c c B E c c c B E c");
    EXPECT_EQ(fake_kernel_elapsed_ns() / second_ns, 20);
    CFFileDescriptorInvalidate(descriptor);
    CFRelease(descriptor);
    end_limit(&limited);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void socket_is_ready(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    (void)socket;
    (void)type;
    (void)address;
    (void)data;
    note_call(info);
}

/* The socket's own way of reading: data that it gives, or word that there is some. */
static void limit_socket(CFSocketCallBackType type)
{
    struct limited limited = {.stop_at = 7};
    CFSocketContext context = {.info = &limited};
    CFSocketRef socket;
    int ends[2];

    fake_kernel_install();
    REQUIRE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) == 0);
    for (int i = 0; i < 9; i++) {
        REQUIRE(write(ends[1], "x", 1) == 1);
    }
    socket = CFSocketCreateWithNative(NULL, ends[0], type, socket_is_ready, &context);
    limited.item = CFSocketCreateRunLoopSource(NULL, socket, 0);
    limit_in(&limited, DEFAULT);
    EXPECT_EQ(run(100), kCFRunLoopRunStopped);
    expect_trace(&limited, "c c c B E c c c B E c");
    EXPECT_EQ(fake_kernel_elapsed_ns() / second_ns, 20);
    CFSocketInvalidate(socket);
    CFRelease(socket);
    end_limit(&limited);
    (void)close(ends[1]);
}

TEST(a_flooded_socket_gives_data_at_its_limit, "2242")
{
    limit_socket(kCFSocketDataCallBack);
}

TEST(a_flooded_socket_is_ready_at_its_limit, "2242")
{
    limit_socket(kCFSocketReadCallBack);
}

TEST(a_source_that_signals_itself_is_performed_at_its_limit, "2242")
{
    struct limited limited = {.stop_at = 7};

    fake_kernel_install();
    (void)make_source(&limited);
    limit_in(&limited, DEFAULT);
    EXPECT_EQ(run(100), kCFRunLoopRunStopped);
    expect_trace(&limited, "c c c B E c c c B E c");
    EXPECT_EQ(fake_kernel_elapsed_ns() / second_ns, 20);
    end_limit(&limited);
}

static void fire(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    note_call(info);
}

static CFRunLoopTimerRef make_timer(struct limited *limited, CFTimeInterval interval)
{
    CFRunLoopTimerContext context = {.info = limited};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 1, interval, 0, 0, fire, &context);

    REQUIRE(timer);
    limited->item = timer;
    return timer;
}

TEST(a_repeating_timer_fires_at_its_limit, "2242 2243")
{
    struct limited limited = {.stop_at = 7};

    fake_kernel_install();
    (void)make_timer(&limited, 1);
    limit_in(&limited, DEFAULT);
    EXPECT_EQ(run(100), kCFRunLoopRunStopped);
    /* At 1, 2 and 3 s, then from 11 s on, where its interval ends: the dates that were missed are one call. */
    expect_trace(&limited, "c c c B E c c c B E c");
    EXPECT_EQ(fake_kernel_elapsed_ns() / second_ns, 21);
    end_limit(&limited);
}

TEST(a_timer_below_its_limit_is_not_held_back, "2242")
{
    struct limited limited = {.stop_at = 9};

    fake_kernel_install();
    (void)make_timer(&limited, 5); /* each second call begins an interval */
    limit_in(&limited, DEFAULT);
    EXPECT_EQ(run(100), kCFRunLoopRunStopped);
    expect_trace(&limited, "c c c c c c c c c");
    end_limit(&limited);
}

static CFDataRef message_came(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)message_id;
    (void)data;
    note_call(info);
    return NULL;
}

PORT_TEST_BOTH_WAYS(a_flooded_message_port_is_served_at_its_limit, "2242 2243")
{
    struct limited limited = {.stop_at = 5};
    CFMessagePortContext context = {.info = &limited};
    CFMessagePortRef local = CFMessagePortCreateLocal(NULL, NAME, message_came, &context, NULL);
    CFMessagePortRef remote = port_connect(NAME);

    fake_kernel_install();
    REQUIRE(local);
    limited.item = CFMessagePortCreateRunLoopSource(NULL, local, 0);
    limited.limit = try_limit(&limited, DEFAULT, 10, 2);
    REQUIRE(limited.limit);
    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(port_tell(remote, i, NULL), kCFMessagePortSuccess);
    }
    EXPECT_EQ(run(100), kCFRunLoopRunStopped);
    expect_trace(&limited, "c c B E c c B E c");
    EXPECT_EQ(fake_kernel_elapsed_ns() / second_ns, 20);
    end_limit(&limited);
    port_drop(local);
    CFMessagePortInvalidate(remote);
    CFRelease(remote);
}

/* ---- while it is held back ---- */

static void note_other(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    trace_add(&((struct limited *)info)->trace, "o");
}

TEST(others_are_served_meanwhile, "2242")
{
    struct limited limited = {.stop_at = 4};
    CFRunLoopTimerContext context = {.info = &limited};
    CFRunLoopTimerRef other;

    fake_kernel_install();
    (void)make_source(&limited);
    limit_in(&limited, DEFAULT);
    other = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 3, 3, 0, 0, note_other, &context);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), other, DEFAULT);
    EXPECT_EQ(run(100), kCFRunLoopRunStopped);
    expect_trace(&limited, "c c c B o o o E c");
    CFRunLoopTimerInvalidate(other);
    CFRelease(other);
    end_limit(&limited);
}

TEST(the_run_stays_alive_until_the_item_is_back, "2243")
{
    struct limited limited = {.stop_at = 4};

    fake_kernel_install();
    (void)make_timer(&limited, 1);
    limit_in(&limited, DEFAULT);
    EXPECT_EQ(run(5), kCFRunLoopRunTimedOut); /* not finished, though the item is in no mode */
    EXPECT(!CFRunLoopContainsTimer(CFRunLoopGetCurrent(), (CFRunLoopTimerRef)(uintptr_t)limited.item, DEFAULT));
    EXPECT(!CRLRateLimitCount(limited.limit)); /* it does not count now */
    EXPECT_EQ(run(100), kCFRunLoopRunStopped);
    expect_trace(&limited, "c c c B E c");
    EXPECT_EQ(fake_kernel_elapsed_ns() / second_ns, 11);
    end_limit(&limited);
    EXPECT_EQ(run(0), kCFRunLoopRunFinished);
}

TEST(a_signal_is_kept_meanwhile, "2243")
{
    struct limited limited = {.stop_at = 2};

    fake_kernel_install();
    (void)make_source(&limited);
    limited.limit = try_limit(&limited, DEFAULT, 10, 1);
    EXPECT_EQ(run(1), kCFRunLoopRunTimedOut);
    expect_trace(&limited, "c B");
    EXPECT_EQ(run(100), kCFRunLoopRunStopped);
    expect_trace(&limited, "E c B");
    end_limit(&limited);
}

TEST(an_item_is_limited_in_all_common_modes, "2242")
{
    struct limited limited = {.stop_at = 4};
    CFRunLoopMode rare = CFSTR("rare");

    fake_kernel_install();
    CFRunLoopAddCommonMode(CFRunLoopGetCurrent(), rare);
    (void)make_source(&limited);
    limit_in(&limited, kCFRunLoopCommonModes);
    EXPECT_EQ(CFRunLoopRunInMode(rare, 5, false), kCFRunLoopRunTimedOut);
    expect_trace(&limited, "c c c B");
    EXPECT(!CFRunLoopContainsSource(CFRunLoopGetCurrent(), source_of(&limited), DEFAULT));
    EXPECT_EQ(run(100), kCFRunLoopRunStopped);
    expect_trace(&limited, "E c");
    EXPECT(CFRunLoopContainsSource(CFRunLoopGetCurrent(), source_of(&limited), rare));
    end_limit(&limited);
    EXPECT_EQ(CFRunLoopRunInMode(rare, 0, false), kCFRunLoopRunFinished);
}

static void run_within(struct limited *limited, CRLRateLimitEvent event)
{
    if (event == kCRLRateLimitBegins && limited->calls == 3) {
        trace_add(&limited->trace, "{");
        (void)run(25);
        trace_add(&limited->trace, "}");
    }
}

/* The source of the outer callback is performed again in the inner run, as the timer has put it back. */
TEST(a_run_within_the_callback_has_the_limit_too, "2242")
{
    struct limited limited = {.stop_at = 10, .during = run_within};

    fake_kernel_install();
    (void)make_source(&limited);
    limit_in(&limited, DEFAULT);
    EXPECT_EQ(run(100), kCFRunLoopRunStopped);
    expect_trace(&limited, "c c c B { E c c c B E c c c B } E c");
    end_limit(&limited);
}

TEST(steps_of_the_wall_clock_make_no_interval_longer, "2242")
{
    struct limited limited = {.stop_at = 1};

    fake_kernel_install();
    (void)make_source(&limited);
    limit_in(&limited, DEFAULT);
    for (int i = 0; i < 8; i++) {
        limited.stop_at = limited.calls + 1;
        EXPECT_EQ(run(100), kCFRunLoopRunStopped);
        fake_kernel_step_wall(i % 2 == 0 ? -INT64_C(3600) * second_ns : INT64_C(7200) * second_ns); /* a new interval each time */
    }
    expect_trace(&limited, "c c c c c c c c");
    limited.stop_at = 0;
    fake_kernel_in(4 * INT64_C(1000000000), fake_kernel_step_wall, -INT64_C(3600) * second_ns);
    EXPECT_EQ(run(9), kCFRunLoopRunTimedOut);
    expect_trace(&limited, "c c c B");
    limited.stop_at = limited.calls + 1;
    EXPECT_EQ(run(2), kCFRunLoopRunStopped);
    expect_trace(&limited, "E c");
    end_limit(&limited);
}

/* ---- ends ---- */

TEST(a_limit_that_ends_takes_its_item_out, "2244")
{
    struct limited limited = {0};

    fake_kernel_install();
    (void)make_source(&limited);
    limit_in(&limited, DEFAULT);
    CRLRateLimitInvalidate(limited.limit);
    CRLRateLimitInvalidate(limited.limit);
    EXPECT_EQ(run(100), kCFRunLoopRunFinished);
    EXPECT(!CRLRateLimitCount(limited.limit));
    EXPECT(CFRunLoopSourceIsValid(source_of(&limited)));
    end_limit(&limited);
    expect_trace(&limited, "");
}

TEST(a_limit_that_ends_while_it_holds_tells_nothing, "2244")
{
    struct limited limited = {0};

    fake_kernel_install();
    (void)make_source(&limited);
    limit_in(&limited, DEFAULT);
    EXPECT_EQ(run(5), kCFRunLoopRunTimedOut);
    CRLRateLimitInvalidate(limited.limit);
    EXPECT_EQ(run(100), kCFRunLoopRunFinished);
    expect_trace(&limited, "c c c B");
    end_limit(&limited);
}

static CRLRateLimitEvent event_to_end_at;

static void end_here(struct limited *limited, CRLRateLimitEvent event)
{
    if (event == event_to_end_at) {
        CRLRateLimitInvalidate(limited->limit);
        CFRelease(limited->limit);
    }
}

/* The limit that tells its beginning is the callback's, whose reference it is counted with. */
static void perform_with_reference(void *info)
{
    struct limited *limited = info;
    CRLRateLimitRef limit = (CRLRateLimitRef)(uintptr_t)CFRetain(limited->limit);

    perform(info);
    CFRelease(limit);
}

static void end_in_callback(CRLRateLimitEvent event, const char *expected)
{
    struct limited limited = {.during = end_here};
    CFRunLoopSourceContext context = {.info = &limited, .perform = perform_with_reference};

    event_to_end_at = event;
    fake_kernel_install();
    limited.item = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopSourceSignal(source_of(&limited));
    limit_in(&limited, DEFAULT);
    EXPECT_EQ(run(100), kCFRunLoopRunFinished);
    expect_trace(&limited, expected);
    EXPECT_EQ(limited.releases, 1);
    CFRelease(limited.item);
}

TEST(a_limit_is_released_where_it_begins, "2244")
{
    end_in_callback(kCRLRateLimitBegins, "c c c B");
}

TEST(a_limit_is_released_where_it_ends, "2244")
{
    end_in_callback(kCRLRateLimitEnds, "c c c B E");
}

TEST(the_item_may_end_while_it_is_held_back, "2244")
{
    struct limited limited = {0};

    fake_kernel_install();
    (void)make_source(&limited);
    limit_in(&limited, DEFAULT);
    EXPECT_EQ(run(5), kCFRunLoopRunTimedOut);
    CFRunLoopSourceInvalidate(source_of(&limited));
    EXPECT_EQ(run(100), kCFRunLoopRunFinished);
    expect_trace(&limited, "c c c B E");
    end_limit(&limited);
}

static void *run_until_held(void *info)
{
    struct limited *limited = info;

    limited->limit = try_limit(limited, DEFAULT, 3600, 1);
    REQUIRE(limited->limit);
    EXPECT_EQ(run(0.001), kCFRunLoopRunTimedOut);
    return NULL;
}

TEST(a_limit_outlives_its_loop, "2244")
{
    struct limited limited = {0};
    pthread_t thread;

    (void)make_source(&limited);
    REQUIRE(pthread_create(&thread, NULL, run_until_held, &limited) == 0 && pthread_join(thread, NULL) == 0);
    expect_trace(&limited, "c B");
    end_limit(&limited);
}

static void *invalidate(void *info)
{
    CRLRateLimitInvalidate(info);
    CFRelease(info);
    return NULL;
}

static void perform_silently(void *info)
{
    struct limited *limited = info;

    (void)CRLRateLimitCount(limited->limit);
    CFRunLoopSourceSignal(source_of(limited));
}

TEST(another_thread_ends_a_limit_at_any_moment, "2244")
{
    for (int i = 0; i < 100; i++) {
        struct limited limited = {0};
        CFRunLoopSourceContext context = {.info = &limited, .perform = perform_silently};
        CRLSourceContext counted = {.info = &limited, .release = count_release};
        pthread_t thread;

        limited.item = CFRunLoopSourceCreate(NULL, 0, &context);
        limited.limit = CRLRateLimitCreate(NULL, CFRunLoopGetCurrent(), DEFAULT, limited.item, 1e-9, 1, NULL, &counted);
        REQUIRE(limited.limit);
        CFRunLoopSourceSignal(source_of(&limited));
        REQUIRE(pthread_create(&thread, NULL, invalidate, (void *)(uintptr_t)CFRetain(limited.limit)) == 0);
        EXPECT_EQ(run(test_patience_s()), kCFRunLoopRunFinished);
        EXPECT(pthread_join(thread, NULL) == 0);
        EXPECT(!CFRunLoopContainsSource(CFRunLoopGetCurrent(), source_of(&limited), DEFAULT));
        end_limit(&limited);
    }
}

TEST(the_child_of_a_fork_goes_on_with_a_limit, "2245")
{
    struct limited limited = {.stop_at = 4};
    int status = -1;
    pid_t child;

    fake_kernel_install();
    (void)make_source(&limited);
    limit_in(&limited, DEFAULT);
    EXPECT_EQ(run(5), kCFRunLoopRunTimedOut);
    child = fork();
    if (child == 0) {
        _exit(run(100) == kCFRunLoopRunStopped && limited.calls == 4 && fake_kernel_elapsed_ns() / second_ns == 10 ? 0 : 1);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(run(100), kCFRunLoopRunStopped);
    expect_trace(&limited, "c c c B E c");
    end_limit(&limited);
}

/* ---- what is refused ---- */

TEST(what_is_no_limit_is_refused, "2245")
{
    struct limited limited = {0};
    CRLSourceContext later = {.version = 1};
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFRunLoopSourceRef source = make_source(&limited);

    EXPECT(!try_limit(&limited, DEFAULT, 0, 1));
    EXPECT(!try_limit(&limited, DEFAULT, -1, 1));
    EXPECT(!try_limit(&limited, DEFAULT, (double)NAN, 1));
    EXPECT(!try_limit(&limited, DEFAULT, (double)INFINITY, 1));
    EXPECT(!try_limit(&limited, DEFAULT, 1, 0));
    EXPECT(!try_limit(&limited, DEFAULT, 1, -1));
    EXPECT(!CRLRateLimitCreate(NULL, loop, DEFAULT, source, 1, 1, NULL, &later));
    EXPECT(!CFRunLoopContainsSource(loop, source, DEFAULT));
    CFRunLoopSourceInvalidate(source);
    EXPECT(!try_limit(&limited, DEFAULT, 1, 1));
    EXPECT_EQ(limited.releases, 0); /* it is the caller's still */
    CFRelease(source);
}

TEST(a_limit_of_the_longest_interval_and_of_no_callback, "2242")
{
    struct limited limited = {.stop_at = 1};
    CFStringRef text;

    fake_kernel_install();
    (void)make_source(&limited);
    limited.limit = CRLRateLimitCreate(NULL, CFRunLoopGetCurrent(), DEFAULT, limited.item, 1e300, 1, NULL, NULL);
    REQUIRE(limited.limit);
    EXPECT_EQ(run(1e6), kCFRunLoopRunStopped);
    EXPECT_EQ(run(1e6), kCFRunLoopRunTimedOut);
    text = CFCopyDescription(limited.limit);
    EXPECT(CFStringHasPrefix(text, CFSTR("<CRLRateLimit ")));
    EXPECT_EQ(CFStringFind(text, CFSTR("valid = Yes, 1 in 1e+300 s"), 0).length, 26);
    CFRelease(text);
    expect_trace(&limited, "c");
    CRLRateLimitInvalidate(limited.limit);
    CFRelease(limited.limit);
    CFRelease(limited.item);
}

TEST(what_is_no_item_stops_the_program, "2245")
{
    EXPECT_STOPS("CRLRateLimitCreate: the item is another object",
                 (void)CRLRateLimitCreate(NULL, CFRunLoopGetCurrent(), DEFAULT, kCFBooleanTrue, 1, 1, NULL, NULL));
    EXPECT_STOPS("CRLRateLimitCreate: the item is NULL",
                 (void)CRLRateLimitCreate(NULL, CFRunLoopGetCurrent(), DEFAULT, NULL, 1, 1, NULL, NULL));
    EXPECT_STOPS("CRLRateLimitCreate: the run loop is NULL", (void)CRLRateLimitCreate(NULL, NULL, DEFAULT, NULL, 1, 1, NULL, NULL));
    EXPECT_STOPS("CRLRateLimitCount: the limit is NULL", (void)CRLRateLimitCount(NULL));
    EXPECT_STOPS("CRLRateLimitInvalidate: the limit is another object", CRLRateLimitInvalidate((CRLRateLimitRef)(uintptr_t)DEFAULT));
}
