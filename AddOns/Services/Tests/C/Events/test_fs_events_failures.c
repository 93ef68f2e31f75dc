/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of events and file sources when memory, or a call of the kernel, fails: they are refused, or what was lost is told. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "CRLFileSource.h"
#include "Failure/nth_failure.h"
#include "File/notify_kernel.h"
#include "events_probe.h"
#include "scratch_folder.h"

/* `_arguments` are those of the call. */
#define FAILING(_type, _name, _first, _second, _parameters, _arguments)                \
    static _type failing_##_name _parameters                                           \
    {                                                                                  \
        static const struct failing_call call = {"notify." #_name, {_first, _second}}; \
        int error = nth_failure_take(&call);                                           \
        return error ? -error : notify_kernel_linux._name _arguments;                  \
    }

typedef bool (*list_callback)(void *info, const char *name, unsigned char type);

FAILING(int, notify_create, EMFILE, ENOMEM, (void), ())
FAILING(int, watch_add, ENOSPC, EACCES, (int notify, const char *path, uint32_t mask), (notify, path, mask))
FAILING(int, file_open, EMFILE, ENOENT, (const char *path), (path))
FAILING(int, file_status, ENOMEM, 0, (int file, struct stat *ret_status), (file, ret_status))
FAILING(int, folder_open, EMFILE, ENOENT, (int folder, const char *path, bool follows), (folder, path, follows))
FAILING(int, folder_list, ENOMEM, EMFILE, (int folder, list_callback each, void *info), (folder, each, info))
FAILING(int, name_status, ENOENT, ENOMEM, (int folder, const char *name, struct stat *ret_status), (folder, name, ret_status))
FAILING(int, set_create, EMFILE, 0, (void), ())
FAILING(int, set_add, ENOSPC, ENOMEM, (int set, int descriptor), (set, descriptor))
FAILING(int, alarm_create, EMFILE, 0, (void), ())
FAILING(int, mounts_open, EMFILE, ENOENT, (void), ())
FAILING(int, set_add_mounts, ENOSPC, ENOMEM, (int set, int mounts), (set, mounts))

static void install(void)
{
    notify_kernel.notify_create = failing_notify_create;
    notify_kernel.watch_add = failing_watch_add;
    notify_kernel.file_open = failing_file_open;
    notify_kernel.file_status = failing_file_status;
    notify_kernel.folder_open = failing_folder_open;
    notify_kernel.folder_list = failing_folder_list;
    notify_kernel.name_status = failing_name_status;
    notify_kernel.set_create = failing_set_create;
    notify_kernel.set_add = failing_set_add;
    notify_kernel.alarm_create = failing_alarm_create;
    notify_kernel.mounts_open = failing_mounts_open;
    notify_kernel.set_add_mounts = failing_set_add_mounts;
}

/* Whether the path, or one above it to be scanned, was told. */
static bool was_told(const struct events_probe *probe, const char *folder, const char *path)
{
    char above[scratch_size + 8];

    (void)snprintf(above, sizeof above, "%s/sub", folder);
    return events_probe_flags(probe, path) != 0 || events_probe_flags(probe, above) & kFSEventStreamEventFlagMustScanSubDirs ||
           events_probe_flags(probe, folder) & kFSEventStreamEventFlagMustScanSubDirs;
}

/* What could not be told is told the next time; two calls fail at most. */
static void flush_all(struct events_probe *probe)
{
    for (int i = 0; i < 3; i++) {
        events_probe_flush(probe);
    }
}

static bool tell_of_a_tree(const char *folder, FSEventStreamCreateFlags flags)
{
    struct events_probe probe;
    char path[scratch_size + 16];
    bool is_told;

    (void)snprintf(path, sizeof path, "%s/sub/file", folder);
    scratch_make_folder("sub");
    if (!events_probe_start(&probe, folder, 1, flags)) {
        return false;
    }
    flush_all(&probe);
    is_told = events_probe_flags(&probe, folder) & kFSEventStreamEventFlagHistoryDone;
    MUST(is_told || flags & kFSEventStreamCreateFlagUseCFTypes);
    scratch_make_file("sub/file");
    (void)mkdir("sub/more", 0700);
    (void)rename("sub/more", "moved");
    flush_all(&probe);
    is_told = was_told(&probe, folder, path);
    MUST(is_told);
    events_probe_end(&probe);
    return is_told;
}

static bool tell_with(FSEventStreamCreateFlags flags)
{
    char folder[scratch_size];
    bool result;

    install();
    scratch_enter(folder);
    result = tell_of_a_tree(folder, flags);
    scratch_leave(folder);
    return result;
}

static bool tell_texts(void)
{
    return tell_with(kFSEventStreamCreateFlagFileEvents | kFSEventStreamCreateFlagWatchRoot);
}

static bool tell_objects(void)
{
    return tell_with(kFSEventStreamCreateFlagFileEvents | kFSEventStreamCreateFlagUseCFTypes);
}

TEST_LIMIT(nth_failure_events_of_texts, "", 600)
{
    nth_failure_run("events of texts", tell_texts);
}

TEST_LIMIT(nth_failure_events_of_objects, "", 600)
{
    nth_failure_run("events of objects", tell_objects);
}

/* ---- file sources ---- */

static void note_file(CFRunLoopSourceRef source, CFOptionFlags events, void *info)
{
    (void)source;
    (void)events;
    ++*(_Atomic int *)info;
}

NTH_FAILURE(file_source, "")
{
    char folder[scratch_size];
    _Atomic int told = 0;
    CRLSourceContext context = {.info = (void *)&told};
    CFRunLoopSourceRef source;
    bool is_told = false;

    install();
    scratch_enter(folder);
    scratch_make_folder("sub");
    source = CRLFileSourceCreateWithPath(NULL, "sub", kCRLFileWritten, 0, note_file, &context);
    if (source) {
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
        scratch_make_file("sub/file");
        is_told = run_until(&told, 1, kCFRunLoopDefaultMode);
        CFRunLoopSourceInvalidate(source);
        CFRelease(source);
    }
    scratch_leave(folder);
    return is_told;
}
