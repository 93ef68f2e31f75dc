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
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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
    unsigned long long identity;
};

struct fold {
    struct known_path known[paths_most];
    size_t count;
    bool is_of_folders;
    size_t scans; /* of all that is given */
};

/* ---- the fold ---- */

static bool is_at_or_below(const char *path, const char *above)
{
    size_t length = strlen(above);

    return strncmp(path, above, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

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

/* The inode with the time at which it was made, as its number is used again. */
static unsigned long long identity_of(const char *path)
{
    struct statx status;

    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &status) < 0) {
        return 0;
    }
    return status.stx_ino * 1000003 ^ (unsigned long long)status.stx_btime.tv_sec * 1000000007 ^ status.stx_btime.tv_nsec;
}

static bool fold_add(struct fold *fold, const char *path)
{
    for (size_t i = 0; i < fold->count; i++) {
        if (strcmp(fold->known[i].path, path) == 0) {
            return false;
        }
    }
    REQUIRE(fold->count < paths_most);
    fold->known[fold->count++] = (struct known_path){strdup(path), identity_of(path)};
    return true;
}

static struct fold *scanned; /* nftw passes nothing */

static int add_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    (void)fold_add(scanned, path);
    return 0;
}

static void fold_scan(struct fold *fold, const char *path)
{
    fold_remove(fold, path);
    scanned = fold;
    (void)nftw(path, add_entry, 16, FTW_PHYS);
}

static bool fold_has(const struct fold *fold, const char *path, unsigned long long identity)
{
    for (size_t i = 0; i < fold->count; i++) {
        if (strcmp(fold->known[i].path, path) == 0 && fold->known[i].identity == identity) {
            return true;
        }
    }
    return false;
}

static struct fold *listed;

/* Of a folder that is listed: what was known stays as it is known, and what is new is scanned. */
static int keep_or_scan(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    if (place->level > 0 && fold_has(listed, path, identity_of(path))) {
        return FTW_SKIP_SUBTREE;
    }
    if (place->level > 0) {
        fold_remove(listed, path);
    }
    (void)fold_add(listed, path);
    return FTW_CONTINUE;
}

static void fold_list(struct fold *fold, const char *path)
{
    struct stat status;
    size_t kept = 0;

    for (size_t i = 0; i < fold->count; i++) { /* what has gone */
        if (is_at_or_below(fold->known[i].path, path) && lstat(fold->known[i].path, &status) < 0) {
            free(fold->known[i].path);
        } else {
            fold->known[kept++] = fold->known[i];
        }
    }
    fold->count = kept;
    listed = fold;
    (void)nftw(path, keep_or_scan, 16, FTW_PHYS | FTW_ACTIONRETVAL);
}

static void fold_events(ConstFSEventStreamRef stream, void *info, size_t count, void *paths, const FSEventStreamEventFlags *flags,
                        const FSEventStreamEventId *ids)
{
    struct fold *fold = info;

    (void)stream;
    for (size_t i = 0; i < count; i++) {
        char path[PATH_MAX];
        struct stat status;

        (void)snprintf(path, sizeof path, "%s", ((char **)paths)[i]);
        if (path[strlen(path) - 1] == '/') {
            path[strlen(path) - 1] = '\0';
        }
        EXPECT(i == 0 || ids[i] > ids[i - 1]);
        fold->scans += flags[i] & kFSEventStreamEventFlagKernelDropped ? 1 : 0;
        if (lstat(path, &status) < 0) {
            fold_remove(fold, path);
        } else if (flags[i] & (kFSEventStreamEventFlagMustScanSubDirs | kFSEventStreamEventFlagItemRenamed)) {
            fold_scan(fold, path);
        } else if (fold->is_of_folders) {
            fold_list(fold, path);
        } else {
            if (!S_ISDIR(status.st_mode)) {
                fold_remove(fold, path);
            }
            (void)fold_add(fold, path);
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
    fold_add(fold, path);
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
