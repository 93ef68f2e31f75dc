/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acknowledgement pages by themselves: what is read of what was noted, who is to be sent a packet and how often, and that no wake-up is
 * lost. How ports use them is in test_acknowledgements.c, hostile ones are in test_hostile.c. The memory is that of shared_page.h.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "Port/Wire/ack_page.h"
#include "Port/page_probe.h"
#include "Port/port_probe.h"

static void share(struct ack_page *ret_sides[2])
{
    void *pages[2];
    int memory;

    REQUIRE(shared_page_create(&pages[0], &memory) == 0);
    REQUIRE(shared_page_adopt(memory, &pages[1]) == 0);
    (void)close(memory);
    ret_sides[0] = pages[0];
    ret_sides[1] = pages[1];
}

static void unshare_pages(struct ack_page *const sides[2])
{
    shared_page_release(sides[0]);
    shared_page_release(sides[1]);
}

/* ---- what is read ---- */

static void expect_taken(const struct ack_page *page, uint32_t taken, uint32_t limit)
{
    uint32_t got_taken = 1, got_limit = 1;

    EXPECT(ack_page_read(page, &got_taken, &got_limit));
    EXPECT_EQ(got_taken, taken);
    EXPECT_EQ(got_limit, limit);
}

TEST(a_page_says_what_was_noted_last, "226")
{
    struct ack_page *sides[2];
    uint32_t taken, limit;

    share(sides);
    EXPECT(!ack_page_read(sides[0], &taken, &limit)); /* nothing yet */
    EXPECT(!ack_page_note(sides[1], 3, 5));
    expect_taken(sides[0], 3, 5);
    EXPECT(!ack_page_note(sides[1], 4, 8));
    EXPECT(!ack_page_note(sides[1], 9, 4096));
    expect_taken(sides[0], 9, 4096);
    EXPECT(!ack_page_note(sides[1], 0, 1)); /* a number like any other */
    expect_taken(sides[0], 0, 1);
    EXPECT(!ack_page_note(sides[1], UINT32_MAX, UINT32_MAX));
    expect_taken(sides[0], UINT32_MAX, UINT32_MAX);
    unshare_pages(sides);
}

/* Processes with libraries of other builds have to agree about these. */
TEST(the_words_of_an_acknowledgement_page_stand_where_the_format_says, "240")
{
    EXPECT_EQ(offsetof(struct ack_page, taken), 0);
    EXPECT_EQ(offsetof(struct ack_page, queue_limit), 4);
    EXPECT_EQ(offsetof(struct ack_page, awaited), 64);
    EXPECT_EQ(sizeof(((struct ack_page *)NULL)->awaited), 4);
    EXPECT_EQ(sizeof(struct ack_page), 4096);
}

/* ---- who is told ---- */

TEST(who_awaits_a_number_is_told_once_when_it_is_taken, "225")
{
    struct ack_page *sides[2];

    share(sides);
    EXPECT(!ack_page_note(sides[1], 6, 5)); /* nobody awaits anything */
    ack_page_await(sides[0], 9);
    EXPECT(!ack_page_note(sides[1], 7, 5));
    EXPECT(!ack_page_note(sides[1], 8, 5));
    EXPECT(ack_page_note(sides[1], 9, 5));
    EXPECT(!ack_page_note(sides[1], 10, 5));
    EXPECT(!ack_page_note(sides[1], 11, 5));
    ack_page_await(sides[0], 14);
    EXPECT(ack_page_note(sides[1], 20, 5)); /* which stands for all before */
    EXPECT(!ack_page_note(sides[1], 21, 5));
    ack_page_await(sides[0], 20); /* taken already: the next is as good */
    EXPECT(ack_page_note(sides[1], 22, 5));
    unshare_pages(sides);
}

TEST(the_number_that_is_awaited_last_counts, "225")
{
    struct ack_page *sides[2];

    share(sides);
    ack_page_await(sides[0], 4);
    ack_page_await(sides[0], 6);
    EXPECT(!ack_page_note(sides[1], 4, 5));
    EXPECT(!ack_page_note(sides[1], 5, 5));
    ack_page_await(sides[0], 6); /* the same once more, as another thread does */
    EXPECT(ack_page_note(sides[1], 6, 5));
    EXPECT(!ack_page_note(sides[1], 7, 5));
    unshare_pages(sides);
}

TEST(numbers_that_are_awaited_begin_anew_after_their_end, "225")
{
    struct ack_page *sides[2];

    share(sides);
    ack_page_await(sides[0], UINT32_MAX);
    EXPECT(!ack_page_note(sides[1], UINT32_MAX - 1, 5));
    EXPECT(ack_page_note(sides[1], UINT32_MAX, 5));
    ack_page_await(sides[0], 2);
    EXPECT(!ack_page_note(sides[1], UINT32_MAX, 5));
    EXPECT(!ack_page_note(sides[1], 0, 5));
    EXPECT(!ack_page_note(sides[1], 1, 5));
    EXPECT(ack_page_note(sides[1], 2, 5));
    ack_page_await(sides[0], UINT32_MAX - 2);
    EXPECT(ack_page_note(sides[1], 1, 5)); /* far behind the end, and yet after it */
    unshare_pages(sides);
}

TEST(the_number_0_is_awaited_as_the_one_before_it, "225")
{
    struct ack_page *sides[2];

    share(sides);
    ack_page_await(sides[0], 0);
    EXPECT(!ack_page_note(sides[1], UINT32_MAX - 1, 5));
    EXPECT(ack_page_note(sides[1], UINT32_MAX, 5));
    EXPECT(!ack_page_note(sides[1], 0, 5));
    ack_page_await(sides[0], 0);
    EXPECT(ack_page_note(sides[1], 0, 5));
    unshare_pages(sides);
}

/* ---- who writes and who looks ---- */

enum { meetings = 100000 };

struct meeting {
    struct ack_page *sides[2];
    _Atomic int client_round; /* each side begins a round when both have come to it */
    _Atomic int server_round;
    _Atomic int last_round; /* the client may bring it forward, before it begins that round */
    _Atomic bool is_told; /* of the round */
};

static void *note_in_each_round(void *info)
{
    struct meeting *meeting = info;

    for (int round = 1; round <= atomic_load(&meeting->last_round); round++) {
        page_probe_meet(&meeting->server_round, &meeting->client_round, 2 * round);
        atomic_store(&meeting->is_told, ack_page_note(meeting->sides[1], (uint32_t)round, 5));
        page_probe_meet(&meeting->server_round, &meeting->client_round, 2 * round + 1);
    }
    return NULL;
}

/*
 * Both at once, again and again: without the fence of either side the client would now and then sleep though there is room. On one
 * processor, where each meeting is two changes of threads, there are fewer.
 */
TEST(room_that_is_not_seen_is_told_of, "225")
{
    struct meeting meeting = {.last_round = meetings};
    double deadline_s = port_probe_now() + 2 * test_patience_s();
    pthread_t server;
    int seen = 0;
    int lost = 0;

    share(meeting.sides);
    REQUIRE(pthread_create(&server, NULL, note_in_each_round, &meeting) == 0);
    for (int round = 1; round <= meeting.last_round; round++) {
        uint32_t taken, limit;
        bool is_there;

        if (port_probe_now() > deadline_s) {
            meeting.last_round = round;
        }
        page_probe_meet(&meeting.client_round, &meeting.server_round, 2 * round);
        page_probe_dawdle(round);
        ack_page_await(meeting.sides[0], (uint32_t)round);
        is_there = ack_page_read(meeting.sides[0], &taken, &limit) && taken == (uint32_t)round;
        page_probe_meet(&meeting.client_round, &meeting.server_round, 2 * round + 1);
        seen += is_there ? 1 : 0;
        lost += !atomic_load(&meeting.is_told) && !is_there ? 1 : 0;
    }
    (void)pthread_join(server, NULL);
    EXPECT_EQ(lost, 0);
    printf("%d of %d numbers were there at the first look\n", seen, meeting.last_round);
    unshare_pages(meeting.sides);
}

/* ---- a queue ---- */

struct stream {
    struct ack_page *sides[2];
    uint32_t limit;
    uint32_t first; /* the number before the first */
    uint32_t count;
    uint32_t asked; /* how often, by the client */
    uint32_t told; /* how often, by the server */
    sem_t channel; /* of packets */
    sem_t queue;
};

static void *take_all(void *info)
{
    struct stream *stream = info;

    for (uint32_t i = 1; i <= stream->count; i++) {
        while (sem_wait(&stream->queue) < 0) {
        }
        if (ack_page_note(stream->sides[1], stream->first + i, stream->limit)) {
            stream->told++;
            (void)sem_post(&stream->channel);
        }
    }
    return NULL;
}

/* Sleeps until there is a packet. False: none came, for much longer than taking one takes. */
static bool sleep_on(sem_t *channel)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)test_patience_s();
    while (sem_timedwait(channel, &until) < 0) {
        if (errno == ETIMEDOUT) {
            return false;
        }
    }
    return true;
}

/* As a sender does, but that nothing ends a sleep beside a packet. */
static bool send_all(struct stream *stream)
{
    uint32_t confirmed = stream->first;

    for (uint32_t sequence = stream->first; sequence != stream->first + stream->count; sequence++) {
        uint32_t taken, limit;

        while (sequence - confirmed >= stream->limit) {
            stream->asked++;
            ack_page_await(stream->sides[0], sequence - stream->limit / 4);
            if (ack_page_read(stream->sides[0], &taken, &limit)) {
                EXPECT(sequence - taken <= stream->limit);
                confirmed = taken;
            }
            if (sequence - confirmed >= stream->limit && !sleep_on(&stream->channel)) {
                return false;
            }
        }
        (void)sem_post(&stream->queue);
    }
    return true;
}

static void expect_no_sleeper_forgotten(uint32_t limit, uint32_t first, uint32_t count)
{
    struct stream stream = {.limit = limit, .first = first, .count = count};
    pthread_t server;
    bool is_sent;

    share(stream.sides);
    (void)ack_page_note(stream.sides[1], first, limit);
    (void)sem_init(&stream.channel, 0, 0);
    (void)sem_init(&stream.queue, 0, 0);
    REQUIRE(pthread_create(&server, NULL, take_all, &stream) == 0);
    is_sent = send_all(&stream);
    EXPECT(is_sent);
    for (uint32_t i = 0; !is_sent && i < count; i++) { /* so that the other ends */
        (void)sem_post(&stream.queue);
    }
    (void)pthread_join(server, NULL);
    EXPECT(stream.told <= stream.asked);
    unshare_pages(stream.sides);
}

TEST(stress_no_sleeping_sender_is_forgotten, "225 226")
{
    static const uint32_t limits[] = {1, 2, 3, 4, 5, 8, 64};
    const uint32_t count = test_is_instrumented() ? 2000 : test_is_soak() ? 500000 : 5000;

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        expect_no_sleeper_forgotten(limits[i], UINT32_MAX - count / 2, count); /* through the end of the numbers */
    }
}
