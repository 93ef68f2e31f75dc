/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reply pages by themselves: what fits, who is rung, which memory and which wait sets a server takes, and that what fails leaves nothing.
 * How calls use them is in test_replies_in_pages.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Channel/channel_table.h"
#include "Port/page_probe.h"
#include "Port/port_probe.h"
#include "Port/Wire/reply_page.h"
#include "older_kernel.h"

/* ---- one page, both of whose sides are here ---- */

struct shared_page {
    int ends[2]; /* of the channel: the client's and the server's */
    int set;
    int bell;
    struct reply_page *of_client;
    struct reply_page *of_server;
};

static void share(struct shared_page *ret_shared)
{
    int memory;

    need_quiet_nested_sets();
    REQUIRE(kernel_ports.channel_create(ret_shared->ends) == 0);
    REQUIRE(reply_page_create(ret_shared->ends[0], &ret_shared->of_client, &memory, &ret_shared->set) == 0);
    REQUIRE(reply_page_adopt(memory, ret_shared->set, &ret_shared->of_server, &ret_shared->bell) == 0);
    (void)close(memory);
}

static void unshare_page(const struct shared_page *shared)
{
    reply_page_release(shared->of_client);
    reply_page_release(shared->of_server);
    (void)close(shared->bell);
    (void)close(shared->set);
    (void)close(shared->ends[0]);
    (void)close(shared->ends[1]);
}

static struct wire_frame reply_of(uint64_t length)
{
    return (struct wire_frame){
        .type = wire_reply, .flags = wire_kept, .message_id = -5, .conversation = 7, .length = length, .sequence = 9};
}

/* What in the set has become ready since it was last asked: the channel, which stays ready, and the bell. */
static int reports_of(const struct shared_page *shared)
{
    struct kernel_event events[4];

    return kernel.set_wait(shared->set, events, 4, 0);
}

TEST(a_packet_in_a_page_is_the_one_that_was_put_there, "240")
{
    static const uint64_t lengths[] = {0, 1, 63, 1000, reply_page_room - wire_header_size - 1, reply_page_room - wire_header_size};
    struct shared_page shared;
    uint8_t taken[reply_page_room];
    uint8_t header[wire_header_size];

    share(&shared);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct wire_frame frame = reply_of(lengths[i]);
        CFDataRef data = port_pattern((CFIndex)lengths[i], (unsigned)i);

        reply_page_clear(shared.of_client);
        EXPECT_EQ(reply_page_take(shared.of_client, taken), 0);
        EXPECT(reply_page_put(shared.of_server, shared.bell, &frame, lengths[i] > 0 ? CFDataGetBytePtr(data) : NULL));
        EXPECT_EQ(reply_page_take(shared.of_client, taken), wire_header_size + lengths[i]);
        wire_encode(&frame, header);
        EXPECT(memcmp(taken, header, sizeof header) == 0);
        EXPECT(memcmp(taken + sizeof header, CFDataGetBytePtr(data), (size_t)lengths[i]) == 0);
        CFRelease(data);
    }
    unshare_page(&shared);
}

TEST(what_does_not_fit_a_page_leaves_it_as_it_was, "240")
{
    static const uint8_t bytes[wire_inline_max];
    static const uint64_t lengths[] = {reply_page_room - wire_header_size + 1, reply_page_room, 5000, wire_inline_max};
    struct wire_frame frame = reply_of(1 << 20);
    struct shared_page shared;
    uint8_t taken[reply_page_room];

    share(&shared);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const struct wire_frame large = reply_of(lengths[i]);

        reply_page_clear(shared.of_client);
        reply_page_await(shared.of_client);
        EXPECT(!reply_page_put(shared.of_server, shared.bell, &large, bytes));
        EXPECT_EQ(reply_page_take(shared.of_client, taken), 0);
        EXPECT_EQ(reports_of(&shared), 0);
    }
    frame.flags |= wire_in_arena; /* its data is elsewhere */
    EXPECT(reply_page_put(shared.of_server, shared.bell, &frame, NULL));
    EXPECT_EQ(reply_page_take(shared.of_client, taken), wire_header_size);
    unshare_page(&shared);
}

TEST(a_size_above_a_pages_room_is_told_and_nothing_is_copied, "241 H23")
{
    static const uint32_t sizes[] = {reply_page_room + 1, reply_page_size, reply_page_size + 1, INT32_MAX, UINT32_MAX};
    struct shared_page shared;
    uint8_t taken[reply_page_room];

    share(&shared);
    memset(taken, 'x', sizeof taken);
    memset(shared.of_server->packet, 'y', sizeof shared.of_server->packet);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        atomic_store(&shared.of_server->size, sizes[i]);
        EXPECT_EQ(reply_page_take(shared.of_client, taken), sizes[i]);
        EXPECT(taken[0] == 'x' && taken[sizeof taken - 1] == 'x');
    }
    atomic_store(&shared.of_server->size, reply_page_room);
    EXPECT_EQ(reply_page_take(shared.of_client, taken), reply_page_room);
    EXPECT(taken[0] == 'y' && taken[sizeof taken - 1] == 'y');
    unshare_page(&shared);
}

TEST(only_who_awaits_is_rung, "213")
{
    const struct wire_frame frame = reply_of(0);
    struct shared_page shared;

    share(&shared);
    EXPECT(reply_page_put(shared.of_server, shared.bell, &frame, NULL));
    EXPECT_EQ(reports_of(&shared), 0); /* nobody awaits */
    for (int i = 0; i < 3; i++) {
        reply_page_clear(shared.of_client);
        reply_page_await(shared.of_client);
        EXPECT_EQ(reports_of(&shared), 0);
        EXPECT(reply_page_put(shared.of_server, shared.bell, &frame, NULL));
        EXPECT_EQ(reports_of(&shared), 1); /* each time anew, although nobody takes what is in the bell */
        EXPECT_EQ(reports_of(&shared), 0);
    }
    reply_page_clear(shared.of_client); /* who awaited the reply before does not await this one yet */
    EXPECT(reply_page_put(shared.of_server, shared.bell, &frame, NULL));
    EXPECT_EQ(reports_of(&shared), 0);
    unshare_page(&shared);
}

TEST(a_pages_wait_set_has_the_channel_in_it_too, "213 232")
{
    struct shared_page shared;

    share(&shared);
    EXPECT_EQ(reports_of(&shared), 0);
    EXPECT_EQ(kernel_ports.send(shared.ends[1], "x", 1), 1);
    EXPECT_EQ(reports_of(&shared), 1);
    EXPECT_EQ(reports_of(&shared), 1); /* as long as it is not read */
    unshare_page(&shared);
    share(&shared);
    (void)close(shared.ends[1]);
    shared.ends[1] = -1;
    EXPECT_EQ(reports_of(&shared), 1);
    unshare_page(&shared);
}

/* ---- who writes and who looks ---- */

enum { meetings = 100000 };

struct meeting {
    struct shared_page shared;
    _Atomic int client_round; /* each side begins a round when both have come to it */
    _Atomic int server_round;
    _Atomic int last_round; /* the client may bring it forward, before it begins that round */
};

static void *put_in_each_round(void *info)
{
    struct meeting *meeting = info;
    const struct wire_frame frame = reply_of(0);

    for (int round = 1; round <= atomic_load(&meeting->last_round); round++) {
        page_probe_meet(&meeting->server_round, &meeting->client_round, 2 * round);
        EXPECT(reply_page_put(meeting->shared.of_server, meeting->shared.bell, &frame, NULL));
        page_probe_meet(&meeting->server_round, &meeting->client_round, 2 * round + 1);
    }
    return NULL;
}

/*
 * Both at once, again and again: without the fence of either side the client would now and then sleep over what is there. On one processor,
 * where each meeting is two changes of threads, there are fewer.
 */
TEST(a_reply_that_is_not_seen_is_rung_for, "213")
{
    struct meeting meeting = {.last_round = meetings};
    double deadline_s = port_probe_now() + 2 * test_patience_s();
    pthread_t server;
    int seen = 0;
    int lost = 0;

    share(&meeting.shared);
    REQUIRE(pthread_create(&server, NULL, put_in_each_round, &meeting) == 0);
    for (int round = 1; round <= meeting.last_round; round++) {
        bool is_there;

        if (port_probe_now() > deadline_s) {
            meeting.last_round = round;
        }
        reply_page_clear(meeting.shared.of_client);
        page_probe_meet(&meeting.client_round, &meeting.server_round, 2 * round);
        page_probe_dawdle(round);
        reply_page_await(meeting.shared.of_client);
        is_there = atomic_load_explicit(&meeting.shared.of_client->size, memory_order_relaxed) != 0;
        page_probe_meet(&meeting.client_round, &meeting.server_round, 2 * round + 1);
        seen += is_there ? 1 : 0;
        lost += reports_of(&meeting.shared) == 0 && !is_there ? 1 : 0;
    }
    (void)pthread_join(server, NULL);
    EXPECT_EQ(lost, 0);
    printf("%d of %d replies were there at the first look\n", seen, meeting.last_round);
    unshare_page(&meeting.shared);
}

/* ---- what a server does not take ---- */

/* Refused with that error, and nothing of it is kept. Closes what it is given. */
static void expect_not_adopted(int memory, int set, int error)
{
    int descriptors = port_probe_count_descriptors();
    struct reply_page *page = NULL;
    int bell = -1;

    EXPECT_EQ(reply_page_adopt(memory, set, &page, &bell), error);
    EXPECT(page == NULL);
    EXPECT_EQ(page_probe_mapped, 0);
    EXPECT_EQ(port_probe_count_descriptors(), descriptors);
    (void)close(memory);
    (void)close(set);
}

static int new_set(void)
{
    int set = kernel.set_create();

    REQUIRE(set >= 0);
    return set;
}

enum { page_seals = F_SEAL_SHRINK | F_SEAL_GROW };

TEST(memory_that_is_no_page_is_not_adopted, "241 H8")
{
    int pipes[2];
    char path[] = "/tmp/corerunloop-page-XXXXXX";
    int plain = mkstemp(path);

    page_probe_count();
    REQUIRE(pipe(pipes) == 0 && plain >= 0 && unlink(path) == 0 && ftruncate(plain, reply_page_size) == 0);
    expect_not_adopted(page_probe_memory(reply_page_size, 0, true), new_set(), -EINVAL);
    expect_not_adopted(page_probe_memory(reply_page_size, F_SEAL_SHRINK, true), new_set(), -EINVAL);
    expect_not_adopted(page_probe_memory(reply_page_size, F_SEAL_GROW, true), new_set(), -EINVAL);
    expect_not_adopted(page_probe_memory(reply_page_size, page_seals, false), new_set(), -EINVAL); /* its memory is not there yet */
    expect_not_adopted(page_probe_memory(reply_page_size - 1, page_seals, true), new_set(), -EINVAL);
    expect_not_adopted(page_probe_memory(reply_page_size + 1, page_seals, true), new_set(), -EINVAL);
    expect_not_adopted(page_probe_memory(2 * reply_page_size, page_seals, true), new_set(), -EINVAL);
    expect_not_adopted(page_probe_memory(0, page_seals, true), new_set(), -EINVAL);
    expect_not_adopted(open("/dev/zero", O_RDWR), new_set(), -EINVAL);
    expect_not_adopted(eventfd(0, EFD_CLOEXEC), new_set(), -EINVAL);
    expect_not_adopted(plain, new_set(), -EINVAL);
    expect_not_adopted(pipes[0], new_set(), -EINVAL);
    expect_not_adopted(new_set(), new_set(), -EINVAL);
    (void)close(pipes[1]);
}

TEST(memory_that_cannot_be_written_is_not_adopted, "241 H8")
{
    int descriptors = port_probe_count_descriptors();
    static const int seals[] = {page_seals | F_SEAL_WRITE, page_seals | F_SEAL_FUTURE_WRITE};

    page_probe_count();
    for (size_t i = 0; i < sizeof seals / sizeof seals[0]; i++) {
        int memory = page_probe_memory(reply_page_size, seals[i], true);
        int set = new_set();
        struct reply_page *page;
        int bell;

        EXPECT(reply_page_adopt(memory, set, &page, &bell) < 0);
        EXPECT_EQ(page_probe_mapped, 0);
        (void)close(memory);
        (void)close(set);
    }
    EXPECT_EQ(port_probe_count_descriptors(), descriptors);
}

static int good_memory(void)
{
    return page_probe_memory(reply_page_size, page_seals, true);
}

TEST(what_is_no_wait_set_gets_no_bell, "241 H6")
{
    int pipes[2];
    int ends[2];

    page_probe_count();
    REQUIRE(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    expect_not_adopted(good_memory(), pipes[1], -EINVAL);
    expect_not_adopted(good_memory(), ends[1], -EINVAL);
    expect_not_adopted(good_memory(), open("/dev/null", O_RDWR), -EINVAL);
    expect_not_adopted(good_memory(), good_memory(), -EINVAL);
    expect_not_adopted(good_memory(), eventfd(0, EFD_CLOEXEC), -EINVAL);
    (void)close(pipes[0]);
    (void)close(ends[0]);
}

/* ---- what cannot be had ---- */

static int no_descriptor(void)
{
    return -EMFILE;
}

static int no_room(int set, int descriptor, uint64_t token)
{
    (void)set, (void)descriptor, (void)token;
    return -ENOSPC;
}

static int no_room_for_channel(int set, int descriptor, uint32_t interest, uint64_t token)
{
    (void)interest;
    return no_room(set, descriptor, token);
}

static int no_mapping(int descriptor, uint64_t size, bool touch, void **ret_address)
{
    (void)descriptor, (void)size, (void)touch, (void)ret_address;
    return -ENOMEM;
}

static int no_memory(uint64_t size, bool reserve)
{
    (void)size, (void)reserve;
    return -ENOSPC;
}

TEST(a_server_that_cannot_adopt_a_page_now_keeps_nothing_of_it, "M23 M24")
{
    page_probe_count();
    kernel.event_create = no_descriptor;
    expect_not_adopted(good_memory(), new_set(), -EMFILE);
    kernel = kernel_linux;
    kernel.set_add_edge = no_room;
    expect_not_adopted(good_memory(), new_set(), -ENOSPC);
    kernel = kernel_linux;
    kernel_ports.memory_map = no_mapping;
    expect_not_adopted(good_memory(), new_set(), -ENOMEM);
    kernel_ports = kernel_ports_linux;
}

static void expect_not_created(int error)
{
    int descriptors = port_probe_count_descriptors();
    struct reply_page *page;
    int memory, set;
    int ends[2];

    REQUIRE(kernel_ports.channel_create(ends) == 0);
    EXPECT_EQ(reply_page_create(ends[0], &page, &memory, &set), error);
    (void)close(ends[0]);
    (void)close(ends[1]);
    EXPECT_EQ(page_probe_mapped, 0);
    EXPECT_EQ(port_probe_count_descriptors(), descriptors);
    kernel = kernel_linux;
    kernel_ports = kernel_ports_linux;
    page_probe_count();
}

/* As Linux 5.4: a set in a set is reported as long as anything in it is ready. */
static int inner_set, outer_set;

static int add_edge_and_note(int set, int descriptor, uint64_t token)
{
    outer_set = set;
    inner_set = descriptor;
    return kernel_linux.set_add_edge(set, descriptor, token);
}

static int wait_as_before_nested_sets_were_quiet(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    int count = kernel_linux.set_wait(set, events, capacity, deadline_ns);

    return count == 0 && set == outer_set && kernel.descriptor_ready(inner_set, kernel_readable) ? 1 : count;
}

TEST(no_page_is_made_where_a_loop_on_its_set_would_spin, "240")
{
    page_probe_count();
    for (int i = 0; i < 2; i++) { /* it is found out once */
        kernel.set_add_edge = add_edge_and_note;
        kernel.set_wait = wait_as_before_nested_sets_were_quiet;
        expect_not_created(-EOPNOTSUPP);
    }
    expect_not_created(-EOPNOTSUPP);
}

TEST(a_client_that_cannot_make_a_page_keeps_nothing_of_it, "M23 M24")
{
    need_quiet_nested_sets();
    page_probe_count();
    kernel_ports.memory_create = no_memory;
    expect_not_created(-ENOSPC);
    kernel_ports.memory_map = no_mapping;
    expect_not_created(-ENOMEM);
    kernel.set_create = no_descriptor;
    expect_not_created(-EMFILE);
    kernel.set_add = no_room_for_channel;
    expect_not_created(-ENOSPC);
    reply_page_release(NULL);
    EXPECT_EQ(page_probe_mapped, 0);
}

/* ---- how many there are ---- */

static size_t limit;

static size_t that_limit(void)
{
    return limit;
}

/* A channel of the table's, whose other end is in `ret_end`. */
static struct server_channel *keep_channel(struct channel_table *table, uint32_t number, pid_t pid, int *ret_end)
{
    struct server_channel *channel;
    int ends[2];

    REQUIRE(kernel_ports.channel_create(ends) == 0);
    channel = server_channel_create(number, number, &(struct peer){.pid = pid}, ends[1], channel_reply);
    REQUIRE(channel && channel_table_keep(table, channel));
    *ret_end = ends[0];
    return channel;
}

/* As many channels as get a page, of as many as a table takes. */
static int count_of_pages(int channels)
{
    struct channel_table table = {.is_closed = false};
    int ends[channel_reply_max];
    int count = 0;

    channel_table_init(&table);
    for (int i = 0; i < channels; i++) {
        struct server_channel *channel = keep_channel(&table, (uint32_t)i + 1, 1 + i / channel_reply_max_of_peer, &ends[i]);

        if (channel_table_has_room_for_page(&table, channel)) {
            struct reply_page *page;
            int bell;
            int memory = good_memory();
            int set = new_set();

            REQUIRE(reply_page_adopt(memory, set, &page, &bell) == 0);
            channel_table_give_page(&table, channel, page, bell);
            EXPECT(!channel_table_has_room_for_page(&table, channel)); /* one is all it gets */
            (void)close(memory);
            (void)close(set);
            count++;
        }
    }
    EXPECT_EQ(table.page_count, count);
    EXPECT_EQ(page_probe_mapped, count);
    channel_table_close(&table);
    EXPECT_EQ(table.page_count, 0);
    EXPECT_EQ(page_probe_mapped, 0);
    for (int i = 0; i < channels; i++) {
        (void)close(ends[i]);
    }
    return count;
}

TEST(a_port_has_64_pages_at_most_and_bells_for_a_sixteenth_of_the_descriptors, "H12")
{
    page_probe_count();
    kernel_ports.descriptor_limit = that_limit;
    limit = 1 << 20;
    EXPECT_EQ(count_of_pages(channel_page_max), channel_page_max);
    EXPECT_EQ(count_of_pages(channel_page_max + 3), channel_page_max);
    limit = 16 * 5;
    EXPECT_EQ(count_of_pages(7), 5);
    limit = 15;
    EXPECT_EQ(count_of_pages(3), 0);
}

TEST(a_channel_whose_client_has_gone_gives_its_page_back, "H9")
{
    struct channel_table table = {.is_closed = false};
    struct shared_page shared;
    struct server_channel *channel;
    int descriptors;
    int end;

    page_probe_count();
    share(&shared);
    channel_table_init(&table);
    channel = keep_channel(&table, 1, 1, &end);
    channel->arena.address = &table; /* a request may still be in it: the channel stays, as one that has ended */
    channel_table_give_page(&table, channel, shared.of_server, shared.bell);
    descriptors = port_probe_count_descriptors();
    (void)close(end);
    channel_table_sweep(&table, false);
    EXPECT(channel->has_ended && channel->is_kept);
    EXPECT_EQ(table.page_count, 0);
    EXPECT_EQ(page_probe_mapped, 1); /* the client's */
    EXPECT_EQ(port_probe_count_descriptors(), descriptors - 3); /* both ends and the bell */
    EXPECT(!channel_table_has_room_for_page(&table, channel));
    channel->arena.address = NULL;
    channel_table_close(&table);
    shared.of_server = NULL;
    shared.bell = -1;
    unshare_page(&shared);
}

TEST(a_channel_that_a_request_holds_keeps_its_page_until_that_has_ended, "H11")
{
    struct channel_table table = {.is_closed = false};
    struct shared_page shared;
    struct server_channel *channel;
    int end;

    page_probe_count();
    share(&shared);
    channel_table_init(&table);
    channel = keep_channel(&table, 1, 1, &end);
    channel_table_give_page(&table, channel, shared.of_server, shared.bell);
    server_channel_begin(channel);
    channel_table_drop(&table, channel);
    EXPECT_EQ(page_probe_mapped, 2);
    EXPECT(!channel_table_has_room_for_page(&table, channel));
    channel_table_end(&table, channel);
    EXPECT_EQ(page_probe_mapped, 1);
    EXPECT_EQ(table.page_count, 0);
    channel_table_close(&table);
    (void)close(end);
    shared.of_server = NULL;
    shared.bell = -1;
    unshare_page(&shared);
}
