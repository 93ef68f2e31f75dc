/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait for a reply in a mode with nothing else in it, while another thread puts something there: the wait is a run of the mode for all
 * that anybody can tell. The reply comes only after what was put there has been seen.
 */
#include <semaphore.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Port/port_probe.h"
#include "Port/Wire/reply_page.h"

/* The wait is for a packet; or for a channel's page, or for a packet on a channel with a page that is too small for it. It may be awake. */
struct way {
    int requests_before;
    CFIndex length; /* of the reply */
    double awake_s;
};

static const struct way by_packet = {.requests_before = 1};
static const struct way by_page = {.requests_before = 2 * reply_page_after};
static const struct way beside_page = {.requests_before = 2 * reply_page_after, .length = 2 * reply_page_size};
static const struct way by_packet_awake = {.requests_before = 1, .awake_s = 1000};
static const struct way by_page_awake = {.requests_before = 2 * reply_page_after, .awake_s = 1000};
static struct way way;

#define WAITED(_name, _way) \
    {                       \
        way = _way;         \
        waited_##_name();   \
    }
#define QUIET_WAIT_TEST(_name, _rules)                                                                                             \
    static void waited_##_name(void);                                                                                              \
    PORT_TEST_BOTH_WAYS(_name, _rules)                                                                                             \
    WAITED(_name, by_packet) PORT_TEST(_name##_for_a_page, _rules) WAITED(_name, by_page) PORT_TEST(_name##_beside_a_page, _rules) \
        WAITED(_name, beside_page) PORT_TEST_BOTH_WAYS(_name##_awake, _rules) WAITED(_name, by_packet_awake)                       \
            PORT_TEST(_name##_awake_for_a_page, _rules) WAITED(_name, by_page_awake) static void                                   \
        waited_##_name(void)

/* One wait, and the other thread that meddles with it. */
struct meddling {
    CFRunLoopRef loop; /* that waits */
    CFMessagePortRef remote;
    void (*meddle)(struct meddling *meddling);
    sem_t seen; /* what the meddler did has taken effect */
    sem_t may_reply;
    int ends[2];
    CFTypeRef item;
};

static struct meddling meddling;

static CFDataRef reply_when_told(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)local;
    (void)info;
    if (message_id == 2) {
        (void)sem_wait(&meddling.may_reply);
    }
    return CFRetain(data);
}

static void say_seen(void *info)
{
    (void)info;
    (void)sem_post(&meddling.seen);
}

static void *meddle(void *info)
{
    (void)info;
    while (!CFRunLoopIsWaiting(meddling.loop)) {
        (void)sched_yield();
    }
    meddling.meddle(&meddling);
    (void)sem_wait(&meddling.seen);
    (void)sem_post(&meddling.may_reply);
    return NULL;
}

static pthread_t waiter;
static int sleeps; /* the waiter's */

static int counted_set_wait(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    if (deadline_ns != 0 && pthread_equal(pthread_self(), waiter)) {
        sleeps++;
    }
    return kernel_linux.set_wait(set, events, capacity, deadline_ns);
}

static int counted_futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    if (pthread_equal(pthread_self(), waiter)) {
        sleeps++;
    }
    return kernel_linux.futex_wait(word, expected, deadline_ns);
}

static void count_sleeps(void)
{
    waiter = pthread_self();
    sleeps = 0;
    kernel.set_wait = counted_set_wait;
    kernel.futex_wait = counted_futex_wait;
}

/* Requests that make the channel, and one that is meddled with. */
static SInt32 wait_meddled_with(void (*function)(struct meddling *meddling))
{
    struct port_thread server;
    CFDataRef data = port_pattern(way.length, 1);
    CFDataRef reply = NULL;
    pthread_t thread;
    double begun_s;
    SInt32 result;

    meddling = (struct meddling){.loop = CFRunLoopGetCurrent(), .meddle = function};
    (void)sem_init(&meddling.seen, 0, 0);
    (void)sem_init(&meddling.may_reply, 0, 0);
    REQUIRE(pipe(meddling.ends) == 0);
    count_sleeps();
    CRLRunLoopSetBusyWait(meddling.loop, way.awake_s);
    port_thread_start(&server, NAME, reply_when_told, NULL);
    meddling.remote = port_connect(NAME);
    for (int i = 0; i < way.requests_before; i++) {
        EXPECT_EQ(port_ask(meddling.remote, 1, NULL, NULL), kCFMessagePortSuccess);
    }
    REQUIRE(pthread_create(&thread, NULL, meddle, NULL) == 0);
    begun_s = port_probe_own_time();
    result = port_ask(meddling.remote, 2, data, &reply);
    EXPECT(port_probe_own_time() - begun_s < test_patience_s() / 2); /* a reply that is found at the time limit was slept over */
    (void)pthread_join(thread, NULL);
    EXPECT(way.awake_s > 0 ? sleeps == 0 : sleeps > 0);
    EXPECT_EQ(reply != NULL, result == kCFMessagePortSuccess);
    if (reply) {
        EXPECT(port_is_pattern(reply, way.length, 1));
        CFRelease(reply);
        reply = NULL;
        /* And the channel is as good as before. */
        EXPECT_EQ(port_ask(meddling.remote, 3, NULL, &reply), kCFMessagePortSuccess);
        CFRelease(reply);
    }
    CFRelease(data);
    CFRelease(meddling.remote);
    port_thread_stop(&server);
    (void)close(meddling.ends[0]);
    (void)close(meddling.ends[1]);
    return result;
}

static void timer_fired(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    say_seen(info);
}

static void add_timer(struct meddling *with)
{
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0, 0, 0, timer_fired, NULL);

    CFRunLoopAddTimer(with->loop, timer, MODE);
    CFRelease(timer);
}

QUIET_WAIT_TEST(a_timer_added_during_a_quiet_wait_fires_in_it, "68 213 216")
{
    EXPECT_EQ(wait_meddled_with(add_timer), kCFMessagePortSuccess);
}

static void add_signalled_source(struct meddling *with)
{
    CFRunLoopSourceContext context = {.perform = say_seen};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, &context);

    CFRunLoopAddSource(with->loop, source, MODE);
    CFRunLoopSourceSignal(source);
    CFRunLoopWakeUp(with->loop);
    with->item = source;
}

QUIET_WAIT_TEST(a_source_signalled_during_a_quiet_wait_is_performed_in_it, "61 213 216")
{
    EXPECT_EQ(wait_meddled_with(add_signalled_source), kCFMessagePortSuccess);
    CFRunLoopSourceInvalidate((CFRunLoopSourceRef)(uintptr_t)meddling.item);
    CFRelease(meddling.item);
}

static void post_function(struct meddling *with)
{
    CRLRunLoopPerformFunction(with->loop, MODE, say_seen, NULL, NULL);
    CFRunLoopWakeUp(with->loop);
}

QUIET_WAIT_TEST(a_block_queued_during_a_quiet_wait_runs_in_it, "163 213 216")
{
    EXPECT_EQ(wait_meddled_with(post_function), kCFMessagePortSuccess);
}

static void readable(CFFileDescriptorRef descriptor, CFOptionFlags kinds, void *info)
{
    (void)descriptor;
    (void)kinds;
    say_seen(info);
}

/* It is told to the kernel during the wait, and the reply's channel must not be lost by that. */
static void add_descriptor(struct meddling *with)
{
    CFFileDescriptorRef descriptor = CFFileDescriptorCreate(NULL, with->ends[0], false, readable, NULL);
    CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, descriptor, 0);

    CFRunLoopAddSource(with->loop, source, MODE);
    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack);
    (void)!write(with->ends[1], "x", 1);
    CFRelease(source);
    with->item = descriptor;
}

QUIET_WAIT_TEST(a_descriptor_added_during_a_quiet_wait_is_served_in_it, "213 216")
{
    EXPECT_EQ(wait_meddled_with(add_descriptor), kCFMessagePortSuccess);
    CFFileDescriptorInvalidate((CFFileDescriptorRef)(uintptr_t)meddling.item);
    CFRelease(meddling.item);
}

static void observed(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)activity;
    say_seen(info);
}

static void add_observer(struct meddling *with)
{
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopBeforeWaiting, false, 0, observed, NULL);

    CFRunLoopAddObserver(with->loop, observer, MODE);
    CFRelease(observer);
    CFRunLoopWakeUp(with->loop);
}

QUIET_WAIT_TEST(an_observer_added_during_a_quiet_wait_sees_the_next_pass, "213 216")
{
    EXPECT_EQ(wait_meddled_with(add_observer), kCFMessagePortSuccess);
}

static void add_observer_in_silence(struct meddling *with)
{
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopExit, false, 0, observed, NULL);

    CFRunLoopAddObserver(with->loop, observer, MODE);
    with->item = observer;
    say_seen(NULL); /* so that the reply comes to a wait that does not know it yet */
}

QUIET_WAIT_TEST(an_observer_that_comes_before_the_reply_sees_the_end_of_the_run, "213 216 148")
{
    EXPECT_EQ(wait_meddled_with(add_observer_in_silence), kCFMessagePortSuccess);
    EXPECT_EQ(sem_trywait(&meddling.seen), 0);
    CFRunLoopObserverInvalidate((CFRunLoopObserverRef)(uintptr_t)meddling.item);
    CFRelease(meddling.item);
}

static void stop(struct meddling *with)
{
    CFRunLoopStop(with->loop);
    say_seen(NULL);
}

QUIET_WAIT_TEST(a_stop_during_a_quiet_wait_does_not_end_it, "215")
{
    EXPECT_EQ(wait_meddled_with(stop), kCFMessagePortSuccess);
}

static void invalidate(struct meddling *with)
{
    CFMessagePortInvalidate(with->remote);
    say_seen(NULL);
}

QUIET_WAIT_TEST(the_end_of_the_port_ends_a_quiet_wait, "243")
{
    EXPECT_EQ(wait_meddled_with(invalidate), kCFMessagePortBecameInvalidError);
}
