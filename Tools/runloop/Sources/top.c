/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runloop top: reads the statistics of the user's processes again and again, and shows what their loops did in between.
 *
 * Whatever is in the directory may have been written by anybody who runs as this user, so nothing of it is believed: files are copied, not
 * mapped, sizes are checked, text is made plain, and a number that has become smaller counts as unchanged. A file whose process has ended
 * is removed.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "Loop/Trace/statistics_file.h"
#include "json_string.h"
#include "regular_file.h"
#include "runloop.h"

enum { path_most = 4096 };

/* One loop at one moment, as it was read. */
struct seen {
    int32_t process;
    uint32_t place;
    int32_t thread;
    int64_t began_ns; /* when the statistics began: it tells the process from a later one of the same number */
    char program[statistics_program_size];
    char name[17];
    bool is_here; /* the process has this number here, too, and not only in a container of its own */
    uint32_t queued;
    uint64_t passes, sleeps, callouts, timers;
    int64_t busy_ns; /* includes the time since the loop last woke */
    int64_t longest_ns, late_ns, latest_ns;
    uint64_t longest_function;
};

struct sample {
    int64_t time_ns;
    struct seen *loops;
    size_t count, capacity;
};

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- reading ---- */

static void copy_plain(char *ret_text, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);

    invariant(size > 0);
    for (size_t i = 0; i < length; i++) {
        ret_text[i] = (char)(text[i] < ' ' || text[i] > '~' ? '?' : text[i]);
    }
    ret_text[length] = '\0';
}

static void add_loop(struct sample *sample, const struct statistics_page *page, uint32_t number, bool is_here)
{
    const struct loop_statistics *place = &page->places[number];
    const char *slash = strrchr(page->program, '/');
    struct seen *seen;
    char name[sizeof place->name + 1] = {0};
    int64_t awake_since_ns = place->awake_since_ns;

    invariant(number < page->loops && page->loops <= statistics_loops_most); /* is_sound refuses others */
    memcpy(name, place->name, sizeof place->name);
    sample->loops = grow_array(sample->loops, sample->count, &sample->capacity, sizeof *sample->loops);
    seen = &sample->loops[sample->count++];
    *seen = (struct seen){
        .process = page->process,
        .place = number,
        .thread = place->thread,
        .began_ns = page->began_ns,
        .is_here = is_here,
        .queued = place->queued,
        .passes = place->passes,
        .sleeps = place->sleeps,
        .callouts = place->callouts,
        .timers = place->timers,
        .busy_ns = place->busy_ns,
        .longest_ns = place->longest_ns,
        .longest_function = place->longest_function,
        .late_ns = place->late_ns,
        .latest_ns = place->latest_ns,
    };
    if (awake_since_ns > 0 && awake_since_ns < sample->time_ns && seen->busy_ns >= 0 && seen->busy_ns < INT64_MAX / 2) {
        seen->busy_ns += sample->time_ns - awake_since_ns;
    }
    copy_plain(seen->program, sizeof seen->program, slash ? slash + 1 : page->program);
    copy_plain(seen->name, sizeof seen->name, name);
}

/* Returns true if the bytes are statistics of the process with that number. */
static bool is_sound(const struct statistics_page *page, long number)
{
    return memcmp(page->magic, statistics_magic, sizeof page->magic) == 0 && page->version == statistics_version &&
           page->order == statistics_order && page->process == number && page->loops <= statistics_loops_most &&
           memchr(page->program, '\0', sizeof page->program) != NULL;
}

/* Reads the file of one process. Removes it if its process has gone. */
static void read_process(struct sample *sample, int directory, const char *name)
{
    static union {
        struct statistics_page page;
        char bytes[statistics_file_size];
    } copy;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat status;
    char *end;
    long number = strtol(name, &end, 10);
    int file;
    bool is_whole;

    if (*name < '1' || *name > '9' || *end != '\0' || number > INT32_MAX) {
        return;
    }
    file = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) {
        return;
    }
    is_whole = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
               pread(file, copy.bytes, sizeof copy.bytes, 0) == (ssize_t)sizeof copy.bytes && is_sound(&copy.page, number) &&
               fcntl(file, F_GETLK, &lock) == 0;
    (void)close(file);
    if (is_whole && lock.l_type == F_UNLCK) {
        (void)unlinkat(directory, name, 0);
        return;
    }
    for (uint32_t i = 0; is_whole && i < copy.page.loops; i++) {
        if (copy.page.places[i].thread != 0) {
            add_loop(sample, &copy.page, i, lock.l_pid == number);
        }
    }
}

static int by_process(const void *one, const void *other)
{
    const struct seen *a = one;
    const struct seen *b = other;

    return a->process != b->process ? (a->process > b->process) - (a->process < b->process) : (a->place > b->place) - (a->place < b->place);
}

/* A directory that does not exist has no processes. One that others can use is an error. */
static int take_sample(struct sample *sample, const char *path)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    DIR *entries;

    *sample = (struct sample){.time_ns = now_ns()};
    if (directory < 0) {
        return errno == ENOENT ? exit_success : fail(exit_error, "%s: %s", path, strerror(errno));
    }
    if (fstat(directory, &status) != 0 || status.st_uid != geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        (void)close(directory);
        return fail(exit_error, "%s is not for this user alone", path);
    }
    entries = fdopendir(directory);
    if (!entries) {
        (void)close(directory);
        return fail(exit_error, "%s: %s", path, strerror(errno));
    }
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        read_process(sample, directory, entry->d_name);
    }
    (void)closedir(entries);
    if (sample->count > 0) {
        qsort(sample->loops, sample->count, sizeof *sample->loops, by_process);
    }
    return exit_success;
}

/* ---- the names of functions ---- */

/* An executable that is linked for fixed addresses is loaded without a bias. */
static bool is_fixed(const char *path)
{
    ElfW(Ehdr) header;
    struct stat status;
    const char *reason;
    int file = regular_file_open(path, &status, &reason);
    bool is_read = file >= 0 && regular_file_copy(file, 0, &header, sizeof header) == sizeof header;

    if (file >= 0) {
        (void)close(file);
    }
    return is_read && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_EXEC;
}

/* Returns the name of the longest callout's function, or NULL. Reads the process's map of memory for it. */
static const char *function_name(const struct seen *seen)
{
    char path[64];
    char line[path_most + 128];
    char file_path[path_most];
    struct object_map object = {0};
    uint64_t base = 0;
    FILE *maps;

    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)seen->process);
    maps = seen->is_here && seen->longest_function != 0 ? fopen(path, "re") : NULL;
    while (maps && !object.path && fgets(line, sizeof line, maps)) {
        uint64_t begin, end, offset;
        int at = 0;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &begin, &end, &offset, &at) < 3 || at == 0 ||
            line[at] != '/') {
            continue;
        }
        line[strcspn(line, "\n")] = '\0';
        base = offset == 0 ? begin : base;
        if (seen->longest_function >= begin && seen->longest_function < end) {
            (void)snprintf(file_path, sizeof file_path, "%s", line + at);
            object = (struct object_map){.bias = is_fixed(file_path) ? 0 : base, .begin = begin, .end = end, .path = file_path};
        }
    }
    if (maps) {
        (void)fclose(maps);
    }
    return object.path
               ? symbol_name(&(struct process){.began_s = INT64_MAX, .objects = &object, .object_count = 1}, seen->longest_function).name
               : NULL;
}

/* ---- writing ---- */

static const struct seen *find_before(const struct sample *before, const struct seen *seen)
{
    const struct seen *one = before->count > 0 ? bsearch(seen, before->loops, before->count, sizeof *seen, by_process) : NULL;

    return one && one->thread == seen->thread && one->began_ns == seen->began_ns ? one : NULL;
}

static double rate_of(uint64_t before, uint64_t after, double seconds)
{
    return after > before ? (double)(after - before) / seconds : 0;
}

/* What a loop did between two samples. */
struct figures {
    double passes, sleeps, callouts, timers; /* per second */
    double busy; /* share of the time, 0 to 1 */
    double late_us; /* mean of the timers that fired */
};

static struct figures figures_of(const struct seen *before, const struct seen *after, double seconds)
{
    uint64_t timers = after->timers > before->timers ? after->timers - before->timers : 0;
    double busy = after->busy_ns > before->busy_ns ? (double)(after->busy_ns - before->busy_ns) / 1e9 / seconds : 0;

    return (struct figures){
        .passes = rate_of(before->passes, after->passes, seconds),
        .sleeps = rate_of(before->sleeps, after->sleeps, seconds),
        .callouts = rate_of(before->callouts, after->callouts, seconds),
        .timers = rate_of(before->timers, after->timers, seconds),
        .busy = busy > 1 ? 1 : busy,
        .late_us = timers > 0 && after->late_ns > before->late_ns ? (double)(after->late_ns - before->late_ns) / 1e3 / (double)timers : 0,
    };
}

static void write_table(const struct sample *before, const struct sample *after, double seconds)
{
    if (isatty(STDOUT_FILENO)) {
        (void)fputs("\033[H\033[J", stdout);
    }
    (void)printf("%8s %8s %-15s %10s %10s %7s %9s %9s %10s %7s  %s\n", "PROCESS", "THREAD", "NAME", "PASSES/s", "CALLS/s", "BUSY",
                 "LATE us", "WORST us", "LONGEST us", "QUEUED", "LONGEST CALLOUT");
    for (size_t i = 0; i < after->count; i++) {
        const struct seen *seen = &after->loops[i];
        const struct seen *earlier = find_before(before, seen);
        const char *name = function_name(seen);
        struct figures figures;
        char plain[128];

        if (!earlier) {
            continue; /* the loop is new: its rates come with the next sample */
        }
        figures = figures_of(earlier, seen, seconds);
        copy_plain(plain, sizeof plain, name ? name : "");
        (void)printf("%8d %8d %-15s %10.1f %10.1f %6.1f%% %9.1f %9.1f %10.1f %7" PRIu32 "  %s\n", (int)seen->process, (int)seen->thread,
                     seen->name, figures.passes, figures.callouts, figures.busy * 100, figures.late_us, (double)seen->latest_ns / 1e3,
                     (double)seen->longest_ns / 1e3, seen->queued, plain);
    }
    if (after->count == 0) {
        (void)puts("no process of this user runs loops with CORERUNLOOP_STATISTICS=1 in its environment");
    }
}

static void write_text(const char *name, const char *text)
{
    size_t size = strlen(text) + 1;
    char *plain = make_room(size, 1);

    copy_plain(plain, size, text);
    (void)printf("\"%s\": ", name);
    write_json_string(stdout, plain, strlen(plain), "");
    (void)fputs(", ", stdout);
    free(plain);
}

static void write_json(const struct sample *before, const struct sample *after, double seconds)
{
    bool is_first = true;

    (void)printf("{\"interval_s\": %.6f, \"loops\": [", seconds);
    for (size_t i = 0; i < after->count; i++) {
        const struct seen *seen = &after->loops[i];
        const struct seen *earlier = find_before(before, seen);
        const char *name = function_name(seen);
        struct figures figures;

        if (!earlier) {
            continue;
        }
        figures = figures_of(earlier, seen, seconds);
        (void)printf("%s\n  {\"process\": %d, \"thread\": %d, ", is_first ? "" : ",", (int)seen->process, (int)seen->thread);
        is_first = false;
        write_text("program", seen->program);
        write_text("name", seen->name);
        write_text("longest_callout", name ? name : "");
        (void)printf("\"passes\": %" PRIu64 ", \"sleeps\": %" PRIu64 ", \"callouts\": %" PRIu64 ", \"timers\": %" PRIu64 ", ", seen->passes,
                     seen->sleeps, seen->callouts, seen->timers);
        (void)printf("\"passes_per_s\": %.3f, \"sleeps_per_s\": %.3f, \"callouts_per_s\": %.3f, \"timers_per_s\": %.3f, \"busy\": %.6f, ",
                     figures.passes, figures.sleeps, figures.callouts, figures.timers, figures.busy);
        (void)printf("\"late_us\": %.3f, \"latest_us\": %.3f, \"longest_us\": %.3f, \"queued\": %" PRIu32 "}", figures.late_us,
                     (double)seen->latest_ns / 1e3, (double)seen->longest_ns / 1e3, seen->queued);
    }
    (void)printf("%s]}\n", is_first ? "" : "\n");
}

/* ---- the command ---- */

static void pause_for(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static void path_of_directory(char ret_path[path_most])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    if (runtime && *runtime == '/') {
        (void)snprintf(ret_path, path_most, "%s/" STATISTICS_DIRECTORY, runtime);
    } else {
        (void)snprintf(ret_path, path_most, "/run/user/%u/" STATISTICS_DIRECTORY, (unsigned)geteuid());
    }
}

int show_top(double interval_s, long count, bool is_json)
{
    char path[path_most];
    struct sample before;
    struct sample after;
    int status;

    path_of_directory(path);
    status = take_sample(&before, path);
    for (long i = 0; status == exit_success && (count == 0 || i < count); i++) {
        pause_for(interval_s);
        status = take_sample(&after, path);
        if (status == exit_success) {
            double seconds = (double)(after.time_ns - before.time_ns) / 1e9;

            (is_json ? write_json : write_table)(&before, &after, seconds);
            free(before.loops);
            before = after;
            if (fflush(stdout) != 0) {
                status = fail(exit_error, "standard output cannot be written: %s", strerror(errno));
            }
        }
    }
    return status;
}
