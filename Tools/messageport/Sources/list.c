/* SPDX-License-Identifier: Apache-2.0 */
/* messageport list and messageport watch: the names in the directory of names. */
#define LIBBSD_OPENBSD_VIS
#include <bsd/vis.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "Port/Names/port_names.h"
#include "json_string.h"
#include "messageport.h"

/* ---- processes ---- */

/* Stores the name of a process's program and returns its state: "stopped" or "alive". Without /proc they are "-" and "alive". */
static const char *state_of(pid_t pid, char program[32])
{
    char path[64];
    char line[512];
    FILE *file;
    char *begin;
    char *end;

    (void)snprintf(program, 32, "-");
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file)) {
        if (file) {
            (void)fclose(file);
        }
        return "alive";
    }
    (void)fclose(file);
    begin = strchr(line, '(');
    end = strrchr(line, ')');
    if (!begin || !end || end < begin || strlen(end) < 3) {
        return "alive";
    }
    (void)snprintf(program, 32, "%.*s", (int)(end - begin - 1), begin + 1);
    return end[2] == 'T' || end[2] == 't' ? "stopped" : "alive";
}

/* ---- list ---- */

struct port_listing {
    struct port_names_entry *entries;
    size_t count;
};

static void add_entry(void *info, const struct port_names_entry *entry)
{
    struct port_listing *listing = info;
    struct port_names_entry *entries;

    if (!entry->is_alive) {
        return; /* its process has died; the next process that registers a name removes the entry */
    }
    entries = realloc(listing->entries, (listing->count + 1) * sizeof *entries);
    if (entries) {
        listing->entries = entries;
        entries[listing->count++] = *entry;
    }
}

static int by_name(const void *one, const void *other)
{
    return strcmp(((const struct port_names_entry *)one)->name, ((const struct port_names_entry *)other)->name);
}

static void print_entry(const struct port_names_entry *entry, bool as_json, int width)
{
    char program[32];
    char visible_program[4 * sizeof program];
    char visible[4 * (port_names_longest + 1)];
    const char *state = state_of(entry->pid, program);

    if (!as_json) {
        (void)strvis(visible, entry->name, VIS_CSTYLE | VIS_NL | VIS_TAB);
        (void)strvis(visible_program, program, VIS_CSTYLE | VIS_NL | VIS_TAB);
        (void)printf("%-*s %8d  %-16s %-8s %8lld %6s\n", width, visible, (int)entry->pid, visible_program, state, (long long)entry->age_s,
                     "-");
        return;
    }
    (void)fputs("{\"name\":", stdout);
    write_json_string(stdout, entry->name, entry->length, "");
    (void)printf(",\"pid\":%d,\"program\":", (int)entry->pid);
    write_json_string(stdout, program, strlen(program), "");
    (void)printf(",\"state\":\"%s\",\"age\":%lld,\"queue\":null,\"queue_limit\":%u}\n", state, (long long)entry->age_s, entry->queue_limit);
}

int list_ports(const struct options *options)
{
    struct port_listing listing = {NULL, 0};
    int width = 4;

    if (port_names_list(add_entry, &listing) < 0) {
        return exit_error; /* the library has said why */
    }
    if (listing.count > 0) {
        qsort(listing.entries, listing.count, sizeof listing.entries[0], by_name);
    }
    for (size_t i = 0; i < listing.count; i++) {
        width = listing.entries[i].length > (size_t)width ? (int)listing.entries[i].length : width;
    }
    if (!options->is_json) {
        (void)printf("%-*s %8s  %-16s %-8s %8s %6s\n", width, "NAME", "PID", "PROGRAM", "STATE", "AGE", "QUEUE");
    }
    for (size_t i = 0; i < listing.count; i++) {
        print_entry(&listing.entries[i], options->is_json, width);
    }
    free(listing.entries);
    return exit_success;
}

/* ---- watch ---- */

struct search {
    const struct options *options;
    bool found;
    pid_t pid;
};

static void match_entry(void *info, const struct port_names_entry *entry)
{
    struct search *search = info;

    if (entry->is_alive && strcmp(entry->name, search->options->name) == 0) {
        search->found = true;
        search->pid = entry->pid;
    }
}

static void print_change(const struct search *search, pid_t pid)
{
    const char *name = search->options->name;

    if (search->options->is_json) {
        (void)fputs("{\"name\":", stdout);
        write_json_string(stdout, name, strlen(name), "");
        (void)printf(",\"event\":\"%s\",\"pid\":%d}\n", search->found ? "appeared" : "gone", (int)pid);
    } else {
        (void)printf("%s %s (process %d)\n", name, search->found ? "appeared" : "gone", (int)pid);
    }
    (void)fflush(stdout);
}

int watch_name(const struct options *options)
{
    enum { look_again_ms = 500 }; /* inotify tells nothing when a process is killed */
    char path[PATH_MAX];
    pid_t seen = 0;
    int changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (!port_names_directory(path, sizeof path)) {
        return exit_error;
    }
    if (changes < 0 || inotify_add_watch(changes, path, IN_CREATE | IN_DELETE | IN_MOVED_TO) < 0) {
        return fail(exit_error, "%s cannot be watched: %s", path, strerror(errno));
    }
    for (;;) {
        struct search search = {options, false, 0};
        struct pollfd one = {.fd = changes, .events = POLLIN};
        char events[4096];

        (void)port_names_list(match_entry, &search);
        if (seen != 0 && (!search.found || search.pid != seen)) {
            struct search gone = {options, false, 0};

            print_change(&gone, seen);
            seen = 0;
        }
        if (search.found && seen == 0) {
            seen = search.pid;
            print_change(&search, seen);
        }
        (void)poll(&one, 1, look_again_ms);
        while (read(changes, events, sizeof events) > 0) {
        }
    }
}
