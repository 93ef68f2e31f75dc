/* SPDX-License-Identifier: Apache-2.0 */
#include "Loop/Trace/trace_reader.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64];
static char path[128];

const char *trace_directory_begin(void)
{
    (void)snprintf(directory, sizeof directory, "/tmp/crl-trace-XXXXXX");
    REQUIRE(mkdtemp(directory) != NULL);
    (void)snprintf(path, sizeof path, "%s/trace", directory);
    return path;
}

static int each_file(bool removes)
{
    DIR *files = opendir(directory);
    struct dirent *file;
    char name[PATH_MAX];
    int count = 0;

    REQUIRE(files != NULL);
    while ((file = readdir(files)) != NULL) {
        if (file->d_name[0] != '.') {
            count++;
            (void)snprintf(name, sizeof name, "%s/%s", directory, file->d_name);
            if (removes) {
                (void)unlink(name);
            }
        }
    }
    closedir(files);
    return count;
}

void trace_directory_end(void)
{
    (void)each_file(true);
    EXPECT_EQ(rmdir(directory), 0);
}

int trace_directory_count(void)
{
    return each_file(false);
}

bool trace_open(const char *name, struct trace_reading *ret_reading)
{
    FILE *file = fopen(name, "rb");

    *ret_reading = (struct trace_reading){.bytes = NULL};
    if (!file) {
        test_failed(__FILE__, __LINE__, "there is no %s", name);
        return false;
    }
    REQUIRE(fseek(file, 0, SEEK_END) == 0);
    ret_reading->size = (uint64_t)ftell(file);
    rewind(file);
    ret_reading->bytes = malloc(ret_reading->size);
    REQUIRE(ret_reading->bytes != NULL);
    REQUIRE(fread(ret_reading->bytes, 1, ret_reading->size, file) == ret_reading->size);
    (void)fclose(file);
    ret_reading->header = (const struct trace_file_header *)(const void *)ret_reading->bytes;
    EXPECT(memcmp(ret_reading->header->magic, trace_file_magic, sizeof trace_file_magic) == 0);
    EXPECT_EQ(ret_reading->header->version, trace_file_version);
    return true;
}

void trace_close(struct trace_reading *reading)
{
    free(reading->bytes);
    reading->bytes = NULL;
}

const struct trace_ring *trace_ring_at(const struct trace_reading *reading, uint32_t number)
{
    uint64_t at = trace_file_rings_at + number * reading->header->ring_size;
    const struct trace_ring *ring = (const struct trace_ring *)(const void *)(reading->bytes + at);

    return at + reading->header->ring_size <= reading->size && ring->is_made == 1 ? ring : NULL;
}

uint64_t trace_ring_lost(const struct trace_reading *reading, const struct trace_ring *ring)
{
    return ring->next > reading->header->ring_capacity ? ring->next - reading->header->ring_capacity : 0;
}

const struct trace_event *trace_event_at(const struct trace_reading *reading, const struct trace_ring *ring, uint64_t number)
{
    const struct trace_event *events = (const struct trace_event *)(const void *)((const char *)ring + trace_ring_events_at);
    const struct trace_event *event = &events[number & (reading->header->ring_capacity - 1)];

    return number < ring->next && event->stamp == (uint32_t)(number + 1) ? event : NULL;
}

const struct trace_event *trace_find(const struct trace_reading *reading, const struct trace_ring *ring, enum trace_kind kind,
                                     uint64_t *from)
{
    for (; *from < ring->next; ++*from) {
        const struct trace_event *event = trace_event_at(reading, ring, *from);

        if (event && event->kind == kind) {
            return event;
        }
    }
    return NULL;
}

uint64_t trace_count(const struct trace_reading *reading, enum trace_kind kind)
{
    const struct trace_ring *ring;
    uint64_t count = 0;

    for (uint32_t i = 0; (ring = trace_ring_at(reading, i)) != NULL; i++) {
        for (uint64_t at = 0; trace_find(reading, ring, kind, &at); at++) {
            count++;
        }
    }
    return count;
}

void trace_words(const struct trace_reading *reading, const struct trace_ring *ring, struct trace *ret_words)
{
    static const char *const causes[trace_cause_count] = {"limit", "wake-up", "timer", "source", "main-queue", "stop", "reply"};
    static const char *const callouts[trace_callout_count] = {"source", "port",       "timer",  "observer", "block",   "queue",
                                                              "socket", "descriptor", "signal", "child",    "message", "mach"};

    trace_clear(ret_words);
    for (uint64_t number = trace_ring_lost(reading, ring); number < ring->next; number++) {
        const struct trace_event *event = trace_event_at(reading, ring, number);
        int ms = event ? (int)((event->time_ns - reading->header->began_ns + 500000) / 1000000) : 0;

        switch (event ? event->kind : 0) {
        case trace_usage:
        case trace_item_joins:
            break; /* beside what the loop does */
        case trace_run_begins:
            trace_addf(ret_words, "run@%d", ms);
            break;
        case trace_run_ends:
            trace_addf(ret_words, event->detail ? "left@%d" : "end@%d", ms);
            break;
        case trace_pass_begins:
            trace_add(ret_words, "pass");
            break;
        case trace_sleep_begins:
            trace_addf(ret_words, "sleep@%d", ms);
            break;
        case trace_sleep_ends:
            trace_addf(ret_words, "%s@%d", causes[event->detail], ms);
            break;
        case trace_callout_begins:
            trace_addf(ret_words, "%s(", callouts[event->detail & 0xff]);
            break;
        case trace_callout_ends:
            trace_add(ret_words, ")");
            break;
        case trace_timer_is_due:
            trace_addf(ret_words, "due@%d", (int)(((int64_t)event->value - reading->header->began_ns + 500000) / 1000000));
            break;
        case trace_signal:
            trace_addf(ret_words, "signal@%d", ms);
            break;
        case trace_wake:
            trace_addf(ret_words, "wake@%d", ms);
            break;
        case trace_post:
            trace_addf(ret_words, "post@%d", ms);
            break;
        case trace_name:
            break;
        default:
            trace_addf(ret_words, "event-%d", event ? event->kind : 0);
        }
    }
}
