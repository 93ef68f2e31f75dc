/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a local port; see line_table.h. */
#include "Port/line_table.h"

#include <stdlib.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"

enum { descriptor_share = 4, bell_share = 16 };

static struct server_line *line_of(struct link *link)
{
    return container_of(link, struct server_line, link);
}

static struct link *bucket_of(struct line_table *table, uint64_t token)
{
    return &table->buckets[token % line_buckets];
}

void line_table_init(struct line_table *table)
{
    for (int i = 0; i < line_buckets; i++) {
        link_init(&table->buckets[i]);
    }
    table->set = -1;
}

struct server_line *line_table_find(struct line_table *table, uint32_t number, uint64_t token, pid_t pid, bool is_control)
{
    list_for_each(link, bucket_of(table, token)) {
        struct server_line *line = line_of(link);

        if (line->token == token && line->pid == pid && line->is_control == is_control && (is_control || line->number == number)) {
            return line;
        }
    }
    return NULL;
}

bool line_table_was(const struct line_table *table, uint32_t number, uint64_t token, pid_t pid)
{
    for (uint32_t i = 0; table->gone && i < line_gone_max; i++) {
        if (table->gone[i].token == token && table->gone[i].number == number && table->gone[i].pid == pid) {
            return true;
        }
    }
    return false;
}

struct server_line *server_line_create(uint32_t number, uint64_t token, pid_t pid, int descriptor, bool is_control)
{
    struct server_line *line = calloc(1, sizeof *line);

    if (line) {
        link_init(&line->link);
        line->number = number;
        line->token = token;
        line->pid = pid;
        line->descriptor = descriptor;
        line->is_control = is_control;
    }
    return line;
}

void server_line_free(struct server_line *line)
{
    if (line->descriptor >= 0) {
        (void)kernel.close(line->descriptor);
    }
    arena_release(&line->arena);
    shared_page_release(line->acks);
    free(line);
}

static void release_page(struct line_table *table, struct server_line *line)
{
    if (line->page) {
        (void)kernel.close(line->bell);
        reply_page_release(line->page);
        line->page = NULL;
        table->page_count--;
    }
}

/* Of a line that is out of the table, and that no request holds. */
static void free_line(struct line_table *table, struct server_line *line)
{
    table->mapped -= line->arena.size;
    release_page(table, line);
    server_line_free(line);
}

static void remember(struct line_table *table, const struct server_line *line)
{
    if (!table->gone && !table->is_closed) {
        table->gone = calloc(line_gone_max, sizeof *table->gone);
    }
    if (table->gone) {
        table->gone[table->gone_next++ % line_gone_max] = (struct gone_line){line->token, line->number, line->pid};
    }
}

static uint32_t count_of_peer(struct line_table *table, pid_t pid)
{
    uint32_t count = 0;

    for (int i = 0; i < line_buckets; i++) {
        list_for_each(link, &table->buckets[i]) {
            count += line_of(link)->pid == pid && !line_of(link)->is_control ? 1 : 0;
        }
    }
    return count;
}

static bool has_room(struct line_table *table, const struct server_line *line)
{
    if (table->is_closed) {
        return false;
    }
    if (line->is_control) {
        return table->control_count < line_control_max;
    }
    return table->reply_count < line_reply_max && table->reply_count < kernel_ports.descriptor_limit() / descriptor_share &&
           (table->reply_count < line_reply_max_of_peer || count_of_peer(table, line->pid) < line_reply_max_of_peer);
}

bool line_table_keep(struct line_table *table, struct server_line *line)
{
    if (!has_room(table, line)) {
        line_table_drop_ended(table);
    }
    if (!has_room(table, line)) {
        return false;
    }
    if (table->set < 0) {
        table->set = kernel.set_create();
    }
    /* A line whose end would go unnoticed is not kept. */
    if (table->set < 0 || kernel.set_add(table->set, line->descriptor, kernel_readable, (uint64_t)(uintptr_t)line) < 0) {
        return false;
    }
    list_append(bucket_of(table, line->token), &line->link);
    line->is_kept = true;
    *(line->is_control ? &table->control_count : &table->reply_count) += 1;
    return true;
}

void line_table_drop(struct line_table *table, struct server_line *line)
{
    if (!line->is_kept) {
        return;
    }
    list_remove(&line->link);
    line->is_kept = false;
    *(line->is_control ? &table->control_count : &table->reply_count) -= 1;
    table->ended_count -= line->has_ended ? 1 : 0;
    if (line->descriptor >= 0) {
        (void)kernel.set_remove(table->set, line->descriptor);
    }
    if (line->holders > 0) {
        (void)kernel_ports.hang_up(line->descriptor);
        return;
    }
    free_line(table, line);
}

bool line_table_has_room_for_page(const struct line_table *table, const struct server_line *line)
{
    return line->is_kept && !line->has_ended && !line->page && table->page_count < line_page_max &&
           table->page_count < kernel_ports.descriptor_limit() / bell_share;
}

void line_table_give_page(struct line_table *table, struct server_line *line, struct reply_page *page, int bell)
{
    line->page = page;
    line->bell = bell;
    table->page_count++;
}

void server_line_begin(struct server_line *line)
{
    line->is_running = true;
    line->holders++;
}

void server_line_before_reply(struct server_line *line)
{
    line->is_running = false;
}

void line_table_end(struct line_table *table, struct server_line *line)
{
    if (--line->holders == 0 && !line->is_kept) {
        free_line(table, line);
    }
}

static void remember_and_drop(struct line_table *table, struct server_line *line)
{
    if (!line->is_control) {
        remember(table, line);
    }
    line_table_drop(table, line);
}

/* The kernel's queue may hold a request that the peer sent before it went; where its data is in the arena, both are kept for it. */
static void end_line(struct line_table *table, struct server_line *line)
{
    if (!line->arena.address || line->holders > 0) {
        remember_and_drop(table, line);
        return;
    }
    (void)kernel.set_remove(table->set, line->descriptor);
    (void)kernel.close(line->descriptor);
    line->descriptor = -1;
    release_page(table, line);
    line->has_ended = true;
    line->ended_at = table->taken;
    table->ended_count++;
}

static void drop_ended(struct line_table *table, uint64_t taken_since)
{
    for (int i = 0; i < line_buckets && table->ended_count > 0; i++) {
        list_for_each_removable(link, &table->buckets[i]) {
            if (line_of(link)->has_ended && table->taken - line_of(link)->ended_at >= taken_since) {
                remember_and_drop(table, line_of(link));
            }
        }
    }
}

void line_table_drop_ended(struct line_table *table)
{
    drop_ended(table, 0);
}

void line_table_sweep(struct line_table *table)
{
    enum { batch = 32 };
    struct kernel_event events[batch];
    int count;

    if (table->set < 0) {
        return;
    }
    do {
        count = kernel.set_wait(table->set, events, batch, 0);
        for (int i = 0; i < count; i++) {
            struct server_line *line = (struct server_line *)(uintptr_t)events[i].token; /* NOLINT(performance-no-int-to-ptr) */

            end_line(table, line); /* a peer that writes where it should only read goes the same way */
        }
    } while (count == batch);
    drop_ended(table, line_queue_most);
}

static void drop_where(struct line_table *table, bool all, pid_t pid)
{
    for (int i = 0; i < line_buckets; i++) {
        list_for_each_removable(link, &table->buckets[i]) {
            if (all || line_of(link)->pid == pid) {
                line_table_drop(table, line_of(link));
            }
        }
    }
}

void line_table_drop_peer(struct line_table *table, pid_t pid)
{
    drop_where(table, false, pid);
}

static void free_rest(struct line_table *table)
{
    if (table->set >= 0) {
        (void)kernel.close(table->set);
        table->set = -1;
    }
    free(table->gone);
    table->gone = NULL;
}

void line_table_drop_all(struct line_table *table)
{
    drop_where(table, true, 0);
    free_rest(table);
}

void line_table_close(struct line_table *table)
{
    table->is_closed = true;
    line_table_drop_all(table);
}

struct server_line *line_table_some_control(struct line_table *table)
{
    for (int i = 0; i < line_buckets; i++) {
        list_for_each(link, &table->buckets[i]) {
            if (line_of(link)->is_control) {
                return line_of(link);
            }
        }
    }
    return NULL;
}

void line_table_abandon(struct line_table *table)
{
    if (table->set >= 0) {
        (void)kernel.close(table->set); /* before the lines: the set is the parent's, and must not be changed */
        table->set = -1;
    }
    for (int i = 0; i < line_buckets; i++) {
        list_for_each_removable(link, &table->buckets[i]) {
            struct server_line *line = line_of(link);

            line->arena = (struct arena){NULL, 0}; /* not mapped here */
            line->acks = NULL; /* nor this */
            if (line->page) {
                (void)kernel.close(line->bell);
                line->page = NULL; /* nor this */
            }
            list_remove(link);
            line->is_kept = false;
            if (line->descriptor >= 0) {
                (void)kernel.close(line->descriptor);
            }
            line->descriptor = -1;
            if (line->holders == 0) {
                server_line_free(line);
            }
        }
    }
    table->reply_count = table->control_count = table->ended_count = table->page_count = 0;
    table->mapped = 0;
}
