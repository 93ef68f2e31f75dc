/* SPDX-License-Identifier: Apache-2.0 */
/* The channels of a local port; see channel_table.h. */
#include "Port/Channel/channel_table.h"

#include <stdlib.h>
#include <string.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Port/Wire/packet.h"
#include "Support/invariant.h"

enum { descriptor_share = 4, bell_share = 16 };

static const uint32_t most_of_kind[channel_kind_count] = {
    [channel_reply] = channel_reply_max, [channel_control] = channel_control_max, [channel_watch] = channel_watch_max};

static struct server_channel *channel_of(struct link *link)
{
    return container_of(link, struct server_channel, link);
}

static struct link *bucket_of(struct channel_table *table, uint64_t token)
{
    return &table->buckets[token % channel_buckets];
}

void channel_table_init(struct channel_table *table)
{
    for (int i = 0; i < channel_buckets; i++) {
        link_init(&table->buckets[i]);
    }
    table->set = -1;
}

struct server_channel *channel_table_find(struct channel_table *table, uint32_t number, uint64_t token, const struct peer *peer,
                                          enum channel_kind kind)
{
    list_for_each(link, bucket_of(table, token)) {
        struct server_channel *channel = channel_of(link);

        if (channel->token == token && peers_may_be_one(&channel->peer, peer) && channel->kind == kind &&
            (kind != channel_reply || channel->number == number)) {
            return channel;
        }
    }
    return NULL;
}

bool channel_table_remembers(const struct channel_table *table, uint32_t number, uint64_t token, const struct peer *peer)
{
    for (uint32_t i = 0; table->gone && i < channel_gone_max; i++) {
        if (table->gone[i].token == token && table->gone[i].number == number && peers_may_be_one(&table->gone[i].peer, peer)) {
            return true;
        }
    }
    return false;
}

struct server_channel *server_channel_create(uint32_t number, uint64_t token, const struct peer *peer, int descriptor,
                                             enum channel_kind kind)
{
    struct server_channel *channel = calloc(1, sizeof *channel);

    if (channel) {
        link_init(&channel->link);
        channel->number = number;
        channel->token = token;
        channel->peer = *peer;
        channel->descriptor = descriptor;
        channel->kind = kind;
    }
    return channel;
}

void server_channel_free(struct server_channel *channel)
{
    if (channel->descriptor >= 0) {
        packet_socket_close(channel->descriptor);
    }
    arena_release(&channel->arena);
    shared_page_release(channel->acks);
    free(channel);
}

static void release_page(struct channel_table *table, struct server_channel *channel)
{
    if (channel->page) {
        (void)kernel.close(channel->bell);
        reply_page_release(channel->page);
        channel->page = NULL;
        table->page_count--;
    }
}

/* Frees a channel that is out of the table and that no request holds. */
static void free_channel(struct channel_table *table, struct server_channel *channel)
{
    invariant(!channel->is_kept && channel->holders == 0);
    table->mapped -= channel->arena.size;
    release_page(table, channel);
    server_channel_free(channel);
}

static void remember_channel(struct channel_table *table, const struct server_channel *channel)
{
    if (!table->gone && !table->is_closed) {
        table->gone = calloc(channel_gone_max, sizeof *table->gone);
    }
    if (table->gone) {
        table->gone[table->gone_next++ % channel_gone_max] = (struct gone_channel){channel->token, channel->number, channel->peer};
    }
}

static uint32_t count_of_peer(struct channel_table *table, const struct peer *peer)
{
    uint32_t count = 0;

    for (int i = 0; i < channel_buckets; i++) {
        list_for_each(link, &table->buckets[i]) {
            if (peers_are_one(&channel_of(link)->peer, peer) && channel_of(link)->kind == channel_reply) {
                count++;
            }
        }
    }
    return count;
}

static bool has_room(struct channel_table *table, const struct server_channel *channel)
{
    uint32_t count = table->counts[channel->kind];

    if (table->is_closed || count >= most_of_kind[channel->kind]) {
        return false;
    }
    if (channel->kind != channel_control && count >= kernel_ports.descriptor_limit() / descriptor_share) {
        return false;
    }
    return channel->kind != channel_reply || count < channel_reply_max_of_peer ||
           count_of_peer(table, &channel->peer) < channel_reply_max_of_peer;
}

int channel_table_set(struct channel_table *table)
{
    if (table->set < 0 && !table->is_closed) {
        table->set = kernel.set_create();
    }
    return table->set;
}

int channel_table_watch(struct channel_table *table, struct server_channel *channel)
{
    channel->is_hung_up |= channel->has_ended; /* the request was in the queue when its peer's end was found */
    if (channel->is_kept || channel->is_watched || channel->is_hung_up) {
        return table->set;
    }
    if (channel_table_set(table) < 0 ||
        kernel.set_add(table->set, channel->descriptor, kernel_readable, (uint64_t)(uintptr_t)channel) < 0) {
        return -1;
    }
    channel->is_watched = true;
    return table->set;
}

/* Takes a channel that is not in the table out of the wait set. */
static void stop_watching(const struct channel_table *table, struct server_channel *channel)
{
    if (channel->is_watched && table->set >= 0) {
        (void)kernel.set_remove(table->set, channel->descriptor);
    }
    channel->is_watched = false;
}

bool channel_table_keep(struct channel_table *table, struct server_channel *channel)
{
    invariant(!channel->is_kept && !channel->has_ended);
    if (!has_room(table, channel)) {
        channel_table_drop_ended(table);
    }
    if (!has_room(table, channel)) {
        return false;
    }
    (void)channel_table_set(table);
    /* A channel that is not in the set is not kept: nobody would notice its end. */
    if (table->set < 0 || kernel.set_add(table->set, channel->descriptor, kernel_readable, (uint64_t)(uintptr_t)channel) < 0) {
        return false;
    }
    list_append(bucket_of(table, channel->token), &channel->link);
    channel->is_kept = true;
    table->counts[channel->kind]++;
    invariant(table->counts[channel->kind] <= most_of_kind[channel->kind]);
    return true;
}

void channel_table_drop(struct channel_table *table, struct server_channel *channel)
{
    if (!channel->is_kept) {
        return;
    }
    list_remove(&channel->link);
    channel->is_kept = false;
    invariant(table->counts[channel->kind] > 0);
    table->counts[channel->kind]--;
    invariant(!channel->has_ended || table->ended_count > 0);
    if (channel->has_ended) {
        table->ended_count--;
    }
    if (channel->descriptor >= 0) {
        (void)kernel.set_remove(table->set, channel->descriptor);
    }
    if (channel->holders > 0) {
        channel->is_hung_up = true;
        (void)kernel_ports.hang_up(channel->descriptor);
        return;
    }
    free_channel(table, channel);
}

bool channel_table_has_room_for_page(const struct channel_table *table, const struct server_channel *channel)
{
    return channel->is_kept && !channel->has_ended && !channel->page && table->page_count < channel_page_max &&
           table->page_count < kernel_ports.descriptor_limit() / bell_share;
}

void channel_table_give_page(struct channel_table *table, struct server_channel *channel, struct reply_page *page, int bell)
{
    invariant(channel->is_kept && !channel->page && table->page_count < channel_page_max);
    channel->page = page;
    channel->bell = bell;
    table->page_count++;
}

void server_channel_begin(struct server_channel *channel)
{
    invariant(!channel->is_running);
    channel->is_running = true;
    channel->holders++;
}

void server_channel_before_reply(struct server_channel *channel)
{
    channel->is_running = false;
}

void channel_table_end(struct channel_table *table, struct server_channel *channel)
{
    invariant(channel->holders > 0);
    if (--channel->holders == 0 && !channel->is_kept) {
        stop_watching(table, channel);
        free_channel(table, channel);
    }
}

static void remember_and_drop(struct channel_table *table, struct server_channel *channel)
{
    if (channel->kind == channel_reply) {
        remember_channel(table, channel);
    }
    channel_table_drop(table, channel);
}

/* Ends a channel whose peer is gone. The kernel's queue may hold a request whose data is in the arena: then channel and arena are kept. */
static void end_channel(struct channel_table *table, struct server_channel *channel)
{
    invariant(channel->is_kept && !channel->has_ended);
    if (!channel->arena.address || channel->holders > 0) {
        remember_and_drop(table, channel);
        return;
    }
    (void)kernel.set_remove(table->set, channel->descriptor);
    packet_socket_close(channel->descriptor);
    channel->descriptor = -1;
    release_page(table, channel);
    channel->has_ended = true;
    channel->ended_at = table->reads;
    table->ended_count++;
}

static void drop_ended(struct channel_table *table, uint64_t taken_since)
{
    for (int i = 0; i < channel_buckets && table->ended_count > 0; i++) {
        list_for_each_removable(link, &table->buckets[i]) {
            if (channel_of(link)->has_ended && table->reads - channel_of(link)->ended_at >= taken_since) {
                remember_and_drop(table, channel_of(link));
            }
        }
    }
}

void channel_table_drop_ended(struct channel_table *table)
{
    drop_ended(table, 0);
}

void channel_table_sweep(struct channel_table *table, bool spares_held)
{
    enum { batch = 32 };
    struct kernel_event events[batch];
    int count;
    int spared;

    if (table->set < 0) {
        return;
    }
    do {
        spared = 0;
        count = kernel.set_wait(table->set, events, batch, 0);
        for (int i = 0; i < count; i++) {
            struct server_channel *channel = (struct server_channel *)(uintptr_t)events[i].token; /* NOLINT(performance-no-int-to-ptr) */

            if (spares_held && channel->holders > 0) {
                spared++; /* the channel stays in the set, which stays ready for the function that tells */
                continue;
            }
            if (channel->is_watched) {
                stop_watching(table, channel);
                channel->is_hung_up = true;
                continue;
            }
            end_channel(table, channel); /* a peer that writes to the channel loses it, too: clients only read here */
        }
    } while (count == batch && spared < batch);
    drop_ended(table, channel_queue_most);
}

/* Drops the channels of the peer, or all if it is NULL. */
static void drop_where(struct channel_table *table, const struct peer *peer)
{
    for (int i = 0; i < channel_buckets; i++) {
        list_for_each_removable(link, &table->buckets[i]) {
            if (!peer || peers_are_one(&channel_of(link)->peer, peer)) {
                channel_table_drop(table, channel_of(link));
            }
        }
    }
}

void channel_table_drop_peer(struct channel_table *table, const struct peer *peer)
{
    drop_where(table, peer);
}

void channel_table_drop_all(struct channel_table *table)
{
    drop_where(table, NULL);
    free(table->gone);
    table->gone = NULL;
}

void channel_table_close(struct channel_table *table)
{
    table->is_closed = true;
    channel_table_drop_all(table);
    if (table->set >= 0) {
        (void)kernel.close(table->set);
        table->set = -1;
    }
}

struct server_channel *channel_table_some_control(struct channel_table *table)
{
    for (int i = 0; i < channel_buckets; i++) {
        list_for_each(link, &table->buckets[i]) {
            if (channel_of(link)->kind == channel_control) {
                return channel_of(link);
            }
        }
    }
    return NULL;
}

void channel_table_abandon(struct channel_table *table)
{
    if (table->set >= 0) {
        (void)kernel.close(table->set); /* before the channels: the set is the parent's, and must not be changed */
        table->set = -1;
    }
    for (int i = 0; i < channel_buckets; i++) {
        list_for_each_removable(link, &table->buckets[i]) {
            struct server_channel *channel = channel_of(link);

            channel->arena = (struct arena){NULL, 0}; /* not mapped in a child */
            channel->acks = NULL; /* not mapped either */
            if (channel->page) {
                (void)kernel.close(channel->bell);
                channel->page = NULL; /* not mapped either */
            }
            list_remove(link);
            channel->is_kept = false;
            if (channel->descriptor >= 0) {
                (void)kernel.close(channel->descriptor);
            }
            channel->descriptor = -1;
            if (channel->holders == 0) {
                server_channel_free(channel);
            }
        }
    }
    memset(table->counts, 0, sizeof table->counts);
    table->ended_count = table->page_count = 0;
    table->mapped = 0;
}
