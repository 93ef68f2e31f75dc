/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs: threads and processes make, write, move and remove what is in a tree, and a stream tells it. What it tells is folded
 * into a list of paths, which must be those of the tree after FSEventStreamFlushSync.
 *
 * The fold is what a program on Apple's systems does: it looks what is at a path that is told, and lists a folder only when it was
 * renamed or must be scanned, or, for events of folders, when it is new. SERVICES_PROGRAMS says how many programs run, SERVICES_SEED the
 * first one.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CoreFoundation/CoreFoundation.h"
#include "CoreServices/CoreServices.h"
#include "harness.h"
#include "scratch_folder.h"

enum { paths_most = 4096, threads_most = 3, operations = 60, name_count = 4, depth_most = 4 };

struct known_path {
    char *path;
    unsigned long long identity; /* 0: whatever is found there is new */
    bool is_listed; /* by the listing that runs */
};

struct fold {
    struct known_path known[paths_most];
    size_t count;
    bool is_of_folders;
    size_t scans; /* of all that is given */
};

/* ---- what is there ---- */

/* The inode with the time at which it was made, as its number is used again; 0: there is nothing. */
static unsigned long long identity_at(int folder, const char *name, mode_t *ret_mode)
{
    struct statx status;

    if (statx(folder, name, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_BTIME, &status) < 0) {
        return 0;
    }
    *ret_mode = status.stx_mode;
    return status.stx_ino * 1000003 ^ (unsigned long long)status.stx_btime.tv_sec * 1000000007 ^ status.stx_btime.tv_nsec;
}

static bool is_at_or_below(const char *path, const char *above)
{
    size_t length = strlen(above);

    return strncmp(path, above, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static struct known_path *fold_find(struct fold *fold, const char *path)
{
    for (size_t i = 0; i < fold->count; i++) {
        if (strcmp(fold->known[i].path, path) == 0) {
            return &fold->known[i];
        }
    }
    return NULL;
}

/*
 * Opens the folder of a path. A link that has taken the place of a folder on the way is not followed. Where another folder than the known
 * one is on the way, nothing that is known of it holds: what happened to it is still to be told.
 */
static int open_folder_of(struct fold *fold, const char *path, const char **ret_name)
{
    int folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *name = path + 1;

    for (const char *end; folder >= 0 && (end = strchr(name, '/')); name = end + 1) {
        char part[PATH_MAX];
        struct known_path *known;
        mode_t mode;
        int next;

        (void)snprintf(part, sizeof part, "%.*s", (int)(end - path), path);
        known = fold_find(fold, part);
        next = openat(folder, part + (name - path), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        (void)close(folder);
        folder = next;
        if (known && (next < 0 || identity_at(next, "", &mode) != known->identity)) {
            known->identity = 0;
        }
    }
    *ret_name = name;
    return folder;
}

/* ---- the fold ---- */

static void fold_remove(struct fold *fold, const char *path)
{
    size_t kept = 0;

    for (size_t i = 0; i < fold->count; i++) {
        if (is_at_or_below(fold->known[i].path, path)) {
            free(fold->known[i].path);
        } else {
            fold->known[kept++] = fold->known[i];
        }
    }
    fold->count = kept;
}

static void fold_put(struct fold *fold, const char *path, unsigned long long identity)
{
    struct known_path *known = fold_find(fold, path);

    if (!known) {
        REQUIRE(fold->count < paths_most);
        known = &fold->known[fold->count++];
        known->path = strdup(path);
    }
    known->identity = identity;
    known->is_listed = true;
}

static void fold_folder(struct fold *fold, int folder, const char *path);

/* What was known stays as it is known; what is new is scanned. */
static void fold_name(struct fold *fold, int folder, const char *name, const char *path)
{
    int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    mode_t mode;
    unsigned long long identity = inner >= 0 ? identity_at(inner, "", &mode) : identity_at(folder, name, &mode);
    struct known_path *known = fold_find(fold, path);

    if (identity && known && known->identity == identity) {
        for (size_t i = 0; i < fold->count; i++) {
            fold->known[i].is_listed |= is_at_or_below(fold->known[i].path, path);
        }
    } else if (identity) {
        fold_remove(fold, path);
        fold_put(fold, path, identity);
        if (inner >= 0) {
            fold_folder(fold, inner, path);
            return;
        }
    }
    if (inner >= 0) {
        (void)close(inner);
    }
}

/* Takes over the descriptor, by which all is looked at: the folder may have another path meanwhile. */
static void fold_folder(struct fold *fold, int folder, const char *path)
{
    DIR *stream = fdopendir(folder);

    REQUIRE(stream);
    for (const struct dirent *entry; (entry = readdir(stream));) {
        char inner[PATH_MAX];

        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
            fold_name(fold, folder, entry->d_name, inner);
        }
    }
    (void)closedir(stream);
}

/* Folds what is at the path, which is nothing, a folder or something else. */
static void fold_list(struct fold *fold, const char *path)
{
    const char *name;
    int around = open_folder_of(fold, path, &name);
    int folder = openat(around, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    mode_t mode;
    unsigned long long identity = folder >= 0 ? identity_at(folder, "", &mode) : identity_at(around, name, &mode);
    size_t kept = 0;

    for (size_t i = 0; i < fold->count; i++) {
        fold->known[i].is_listed = !is_at_or_below(fold->known[i].path, path);
    }
    if (identity) {
        fold_put(fold, path, identity);
    }
    if (folder >= 0) {
        fold_folder(fold, folder, path);
    }
    for (size_t i = 0; i < fold->count; i++) { /* what has gone */
        if (fold->known[i].is_listed) {
            fold->known[kept++] = fold->known[i];
        } else {
            free(fold->known[i].path);
        }
    }
    fold->count = kept;
    (void)close(around);
}

static void fold_scan(struct fold *fold, const char *path)
{
    fold_remove(fold, path);
    fold_list(fold, path);
}

/* Of an event of a file, or of a folder whose contents are told by themselves. */
static void fold_item(struct fold *fold, const char *path)
{
    const char *name;
    int around = open_folder_of(fold, path, &name);
    mode_t mode = 0;
    unsigned long long identity = identity_at(around, name, &mode);

    if (!S_ISDIR(mode)) { /* or nothing is there */
        fold_remove(fold, path);
    }
    if (identity) {
        fold_put(fold, path, identity);
    }
    (void)close(around);
}

/* A folder was found, in one that was renamed, before it was told to be new. What was in it and has gone since may not be told. */
static bool is_told_late(struct fold *fold, const char *path, FSEventStreamEventFlags flags)
{
    return !fold->is_of_folders && flags & kFSEventStreamEventFlagItemCreated && fold_find(fold, path);
}

static void fold_events(ConstFSEventStreamRef stream, void *info, size_t count, void *paths, const FSEventStreamEventFlags *flags,
                        const FSEventStreamEventId *ids)
{
    struct fold *fold = info;

    (void)stream;
    for (size_t i = 0; i < count; i++) {
        char path[PATH_MAX];

        (void)snprintf(path, sizeof path, "%s", ((char **)paths)[i]);
        if (path[strlen(path) - 1] == '/') {
            path[strlen(path) - 1] = '\0';
        }
        EXPECT(i == 0 || ids[i] > ids[i - 1]);
        fold->scans += flags[i] & kFSEventStreamEventFlagKernelDropped ? 1 : 0;
        if (flags[i] & (kFSEventStreamEventFlagMustScanSubDirs | kFSEventStreamEventFlagItemRenamed) ||
            is_told_late(fold, path, flags[i])) {
            fold_scan(fold, path);
        } else if (fold->is_of_folders) {
            fold_list(fold, path);
        } else {
            fold_item(fold, path);
        }
    }
}

static int order_of(const void *one, const void *other)
{
    return strcmp(((const struct known_path *)one)->path, ((const struct known_path *)other)->path);
}

/* Whether the fold is the tree at the path. */
static void expect_equal(struct fold *fold, const char *path, unsigned seed)
{
    struct fold *real = calloc(1, sizeof *real);
    size_t i = 0;
    size_t j = 0;

    fold_scan(real, path);
    fold_item(fold, path);
    qsort(real->known, real->count, sizeof(struct known_path), order_of);
    qsort(fold->known, fold->count, sizeof(struct known_path), order_of);
    while (i < real->count || j < fold->count) {
        int order = i == real->count ? 1 : (j == fold->count ? -1 : strcmp(real->known[i].path, fold->known[j].path));

        if (order != 0) {
            test_failed(__FILE__, __LINE__, "SERVICES_SEED=%u: %s %s", seed,
                        order < 0 ? "untold:" : "told, but gone:", order < 0 ? real->known[i].path : fold->known[j].path);
        }
        i += order <= 0;
        j += order >= 0;
    }
    fold_remove(real, path);
    free(real);
}

/* ---- a random program ---- */

struct worker {
    unsigned state;
    const char *tree;
    const char *outside;
};

static unsigned draw(struct worker *worker, unsigned limit)
{
    worker->state = worker->state * 1664525u + 1013904223u;
    return (worker->state >> 10) % limit;
}

static void draw_path(struct worker *worker, char path[PATH_MAX])
{
    unsigned depth = 1 + draw(worker, depth_most);
    int length = snprintf(path, PATH_MAX, "%s", draw(worker, 10) == 0 ? worker->outside : worker->tree);

    for (unsigned i = 0; i < depth; i++) {
        length += snprintf(path + length, (size_t)(PATH_MAX - length), "/%c", 'a' + (int)draw(worker, name_count));
    }
}

/* Some fail, as nothing is there, or something else. */
static void make_all(const char *path)
{
    char part[PATH_MAX];

    for (size_t end = 1; path[end]; end++) {
        if (path[end] == '/') {
            (void)snprintf(part, sizeof part, "%.*s", (int)end, path);
            (void)mkdir(part, 0700);
        }
    }
    (void)mkdir(path, 0700);
}

static void write_file(const char *path, int flags)
{
    int file = open(path, flags | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (file >= 0) {
        (void)!write(file, "x", 1);
        (void)close(file);
    }
}

static void do_operation(struct worker *worker)
{
    char one[PATH_MAX];
    char other[PATH_MAX];

    draw_path(worker, one);
    draw_path(worker, other);
    switch (draw(worker, 14)) {
    case 0:
    case 1:
        (void)mkdir(one, 0700);
        break;
    case 2:
    case 3:
        make_all(one);
        break;
    case 4:
        write_file(one, O_CREAT);
        break;
    case 5:
        make_all(one);
        (void)strcat(one, "/f");
        write_file(one, O_CREAT);
        break;
    case 6:
        write_file(one, O_APPEND);
        break;
    case 7:
        (void)unlink(one);
        break;
    case 8:
        (void)rmdir(one);
        break;
    case 9:
        scratch_remove(one);
        break;
    case 10:
        (void)!symlink("a", one);
        break;
    case 11:
        (void)!link(one, other);
        break;
    case 12:
        (void)renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
        break;
    default:
        (void)rename(one, other);
        break;
    }
}

static void *work(void *info)
{
    for (int i = 0; i < operations; i++) {
        do_operation(info);
    }
    return NULL;
}

/* Runs the workers, and lets the stream tell meanwhile. */
static void run_workers(FSEventStreamRef stream, unsigned seed, const char *tree, const char *outside)
{
    struct worker workers[threads_most];
    pthread_t threads[threads_most];
    unsigned count = 1 + seed % threads_most;
    pid_t process = seed % 4 == 0 ? fork() : -1;

    if (process == 0) {
        struct worker worker = {seed * 7919u + 1, tree, outside};

        (void)work(&worker);
        _exit(0);
    }
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (struct worker){seed * 31u + i, tree, outside};
        REQUIRE(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    }
    for (unsigned i = 0; i < seed % 16; i++) {
        if (i % 4 == 3) {
            FSEventStreamFlushSync(stream);
        } else {
            (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    if (process > 0) {
        (void)waitpid(process, NULL, 0);
    }
}

static void run_program(unsigned seed)
{
    char folder[scratch_size];
    char tree[scratch_size + 8];
    char outside[scratch_size + 8];
    struct fold *fold = calloc(1, sizeof *fold);
    FSEventStreamContext context = {.info = fold};
    struct worker before = {seed, tree, outside};
    FSEventStreamRef stream;
    CFTypeRef path;
    CFArrayRef paths;

    scratch_enter(folder);
    (void)snprintf(tree, sizeof tree, "%s/tree", folder);
    (void)snprintf(outside, sizeof outside, "%s/out", folder);
    scratch_make_folder(tree);
    scratch_make_folder(outside);
    for (int i = 0; i < 20; i++) {
        do_operation(&before);
    }
    path = CFStringCreateWithCString(NULL, tree, kCFStringEncodingUTF8);
    paths = CFArrayCreate(NULL, &path, 1, &kCFTypeArrayCallBacks);
    fold->is_of_folders = seed % 2;
    stream = FSEventStreamCreate(NULL, fold_events, &context, paths, kFSEventStreamEventIdSinceNow, seed % 3 == 0 ? 0.001 : 0,
                                 fold->is_of_folders ? 0 : kFSEventStreamCreateFlagFileEvents);
    REQUIRE(stream);
    FSEventStreamScheduleWithRunLoop(stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    REQUIRE(FSEventStreamStart(stream));
    fold_scan(fold, tree);
    run_workers(stream, seed, tree, outside);
    FSEventStreamFlushSync(stream);
    expect_equal(fold, tree, seed);
    for (int i = 0; i < 20; i++) { /* it goes on to watch all of it */
        do_operation(&before);
    }
    FSEventStreamFlushSync(stream);
    expect_equal(fold, tree, seed);
    FSEventStreamStop(stream);
    FSEventStreamInvalidate(stream);
    FSEventStreamRelease(stream);
    fold_remove(fold, tree);
    free(fold);
    CFRelease(paths);
    CFRelease(path);
    scratch_leave(folder);
}

static unsigned setting(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);

    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

TEST_LIMIT(what_a_stream_tells_folds_into_the_tree, "", 3600)
{
    unsigned first = setting("SERVICES_SEED", 1);
    unsigned count = setting("SERVICES_PROGRAMS", test_is_instrumented() ? 50 : 300);

    for (unsigned i = 0; i < count; i++) {
        run_program(first + i);
    }
}
