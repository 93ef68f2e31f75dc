/* SPDX-License-Identifier: Apache-2.0 */
/* See sample.h. */
#include "sample.h"

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

#include "regular_file.h"
#include "runloop.h"

enum { path_most = 4096 };

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- reading ---- */

void copy_plain(char *ret_text, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);

    invariant(size > 0);
    for (size_t i = 0; i < length; i++) {
        ret_text[i] = (char)(text[i] < ' ' || text[i] > '~' ? '?' : text[i]);
    }
    ret_text[length] = '\0';
}

/* The numbers that the kernel has of the thread; without them they are 0. */
static void read_thread(struct seen *seen)
{
    char path[64];
    char line[256];
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)seen->process, (int)seen->thread);
    file = fopen(path, "re");
    if (file) {
        if (fscanf(file, "%" SCNd64 " %" SCNd64, &seen->processor_ns, &seen->delay_ns) != 2) {
            seen->processor_ns = seen->delay_ns = 0;
        }
        (void)fclose(file);
    }
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)seen->process, (int)seen->thread);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        (void)sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &seen->waits);
    }
    if (file) {
        (void)fclose(file);
    }
}

static void add_tables(struct seen *seen, const struct loop_statistics *place)
{
    seen->function_count = place->callout_count < statistics_callouts_most ? (uint32_t)place->callout_count : statistics_callouts_most;
    for (uint32_t i = 0; i < seen->function_count; i++) {
        const struct callout_statistics *function = &place->functions[i];

        seen->functions[i] = (struct seen_function){function->function,   function->count,      function->total_ns,
                                                    function->longest_ns, function->descriptor, function->kind};
    }
    copy_plain(seen->asked, sizeof seen->asked, place->asked);
    for (int i = 0; i < statistics_ports_most; i++) {
        copy_plain(seen->ports[i], sizeof seen->ports[i], place->ports[i]);
    }
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
        .awake_since_ns = awake_since_ns > 0 && awake_since_ns < sample->time_ns ? awake_since_ns : 0,
        .asked_ns = place->asked_ns > 0 && place->asked_ns < sample->time_ns ? (int64_t)place->asked_ns : 0,
        .message = (int32_t)place->message,
    };
    add_tables(seen, place);
    if (is_here) {
        read_thread(seen);
    }
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

/* Where the library has it: in the runtime directory or, without one, in a folder of the user in that for temporary files. */
static void path_of_directory(char ret_path[path_most])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *shared = getenv("TMPDIR");

    if (runtime && *runtime == '/') {
        (void)snprintf(ret_path, path_most, "%s/" STATISTICS_DIRECTORY, runtime);
        return;
    }
    (void)snprintf(ret_path, path_most, "/run/user/%u", (unsigned)geteuid());
    if (access(ret_path, W_OK) == 0) {
        (void)snprintf(ret_path, path_most, "/run/user/%u/" STATISTICS_DIRECTORY, (unsigned)geteuid());
    } else {
        (void)snprintf(ret_path, path_most, "%s/corerunloop-%u/" STATISTICS_DIRECTORY, shared && *shared == '/' ? shared : "/tmp",
                       (unsigned)geteuid());
    }
}

/* A directory that does not exist has no processes. One that others can use is an error. */
int take_sample(struct sample *sample)
{
    char path[path_most];
    struct stat status;
    int directory;
    DIR *entries;

    path_of_directory(path);
    directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
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

const char *function_name(const struct seen *seen, uint64_t address)
{
    char path[64];
    char line[path_most + 128];
    char file_path[path_most];
    struct object_map object = {0};
    uint64_t base = 0;
    FILE *maps;

    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)seen->process);
    maps = seen->is_here && address != 0 ? fopen(path, "re") : NULL;
    while (maps && !object.path && fgets(line, sizeof line, maps)) {
        uint64_t begin, end, offset;
        int at = 0;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &begin, &end, &offset, &at) < 3 || at == 0 ||
            line[at] != '/') {
            continue;
        }
        line[strcspn(line, "\n")] = '\0';
        base = offset == 0 ? begin : base;
        if (address >= begin && address < end) {
            (void)snprintf(file_path, sizeof file_path, "%s", line + at);
            object = (struct object_map){.bias = is_fixed(file_path) ? 0 : base, .begin = begin, .end = end, .path = file_path};
        }
    }
    if (maps) {
        (void)fclose(maps);
    }
    return object.path ? symbol_name(&(struct process){.began_s = INT64_MAX, .objects = &object, .object_count = 1}, address).name : NULL;
}

/* ---- figures ---- */

const struct seen *find_before(const struct sample *before, const struct seen *seen)
{
    const struct seen *one = before->count > 0 ? bsearch(seen, before->loops, before->count, sizeof *seen, by_process) : NULL;

    return one && one->thread == seen->thread && one->began_ns == seen->began_ns ? one : NULL;
}

static double rate_of(uint64_t before, uint64_t after, double seconds)
{
    return after > before ? (double)(after - before) / seconds : 0;
}

/*
 * Waits that returned at once count as awake: if those are most, the loop is awake for as long as its thread was on a processor or was
 * ready for one.
 */
struct figures figures_of(const struct seen *before, const struct seen *after, double seconds)
{
    uint64_t timers = after->timers > before->timers ? after->timers - before->timers : 0;
    double busy = after->busy_ns > before->busy_ns ? (double)(after->busy_ns - before->busy_ns) / 1e9 / seconds : 0;
    double processor = rate_of((uint64_t)before->processor_ns, (uint64_t)after->processor_ns, seconds * 1e9);
    double ready = processor + rate_of((uint64_t)before->delay_ns, (uint64_t)after->delay_ns, seconds * 1e9);
    double waits = rate_of(before->waits, after->waits, seconds);
    double sleeps = rate_of(before->sleeps, after->sleeps, seconds);
    double futile = after->processor_ns > 0 && sleeps > waits ? 1 - waits / sleeps : 0;

    busy = futile > 0.5 && ready > busy ? ready : busy;

    return (struct figures){
        .passes = rate_of(before->passes, after->passes, seconds),
        .sleeps = sleeps,
        .callouts = rate_of(before->callouts, after->callouts, seconds),
        .timers = rate_of(before->timers, after->timers, seconds),
        .busy = busy > 1 ? 1 : busy,
        .processor = processor,
        .futile = futile,
        .late_us = timers > 0 && after->late_ns > before->late_ns ? (double)(after->late_ns - before->late_ns) / 1e3 / (double)timers : 0,
    };
}

/* ---- who waits for whom ---- */

const struct seen *find_server(const struct sample *sample, const struct seen *asker, const char *port)
{
    const struct seen *found = NULL;

    for (size_t i = 0; i < sample->count; i++) {
        const struct seen *one = &sample->loops[i];

        for (int k = 0; k < statistics_ports_most; k++) {
            if (one->ports[k][0] != '\0' && strcmp(one->ports[k], port) == 0 && (!found || one->process == asker->process)) {
                found = one;
            }
        }
    }
    return found;
}

bool describe_wait(const struct sample *sample, const struct seen *seen, char *ret_text, size_t size)
{
    enum { steps_most = 16 };
    const struct seen *at = seen;
    size_t length = (size_t)snprintf(ret_text, size, "waits for a reply from %s, message %d, since %.1f s", seen->asked, (int)seen->message,
                                     (double)(sample->time_ns - seen->asked_ns) / 1e9);

    for (int i = 0; i < steps_most && length < size; i++) {
        at = find_server(sample, at, at->asked);
        if (!at) {
            return false;
        }
        if (at == seen) {
            (void)snprintf(ret_text + length, size - length, ": a deadlock");
            return true;
        }
        if (at->asked_ns == 0) {
            (void)snprintf(ret_text + length, size - length, ", which thread %d (%s) answers", (int)at->thread, at->name);
            return false;
        }
        length += (size_t)snprintf(ret_text + length, size - length, ", which waits for %s", at->asked);
    }
    return false;
}

void pause_for(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}
