/* SPDX-License-Identifier: Apache-2.0 */
#include "events_probe.h"

#include <stdlib.h>
#include <string.h>

static char *copy_told(void *paths, size_t place, bool has_objects)
{
    char text[4096];

    if (!has_objects) {
        return strdup(((char **)paths)[place]);
    }
    return CFStringGetCString(CFArrayGetValueAtIndex(paths, (CFIndex)place), text, sizeof text, kCFStringEncodingUTF8) ? strdup(text)
                                                                                                                       : NULL;
}

static void note_events(struct events_probe *probe, size_t count, void *paths, bool has_objects, const FSEventStreamEventFlags *flags,
                        const FSEventStreamEventId *ids)
{
    for (size_t i = 0; i < count; i++, probe->count++) {
        if (probe->count < probe_events_most) {
            probe->paths[probe->count] = copy_told(paths, i, has_objects);
            probe->flags[probe->count] = flags[i];
            probe->ids[probe->count] = ids[i];
        }
    }
}

static void note_texts(ConstFSEventStreamRef stream, void *info, size_t count, void *paths, const FSEventStreamEventFlags *flags,
                       const FSEventStreamEventId *ids)
{
    (void)stream;
    note_events(info, count, paths, false, flags, ids);
}

static void note_objects(ConstFSEventStreamRef stream, void *info, size_t count, void *paths, const FSEventStreamEventFlags *flags,
                         const FSEventStreamEventId *ids)
{
    (void)stream;
    note_events(info, count, paths, true, flags, ids);
}

CFArrayRef events_probe_copy_paths(const char *path)
{
    CFTypeRef string = CFStringCreateWithCString(NULL, path, kCFStringEncodingUTF8);
    CFArrayRef paths = string ? CFArrayCreate(NULL, &string, 1, &kCFTypeArrayCallBacks) : NULL;

    if (string) {
        CFRelease(string);
    }
    return paths;
}

bool events_probe_start(struct events_probe *probe, const char *path, FSEventStreamEventId since, FSEventStreamCreateFlags flags)
{
    CFArrayRef paths = events_probe_copy_paths(path);
    bool is_started = paths && events_probe_start_all(probe, paths, since, flags);

    if (paths) {
        CFRelease(paths);
    }
    return is_started;
}

bool events_probe_start_all(struct events_probe *probe, CFArrayRef paths, FSEventStreamEventId since, FSEventStreamCreateFlags flags)
{
    FSEventStreamContext context = {.info = probe};
    FSEventStreamCallback callback = flags & kFSEventStreamCreateFlagUseCFTypes ? note_objects : note_texts;

    probe->count = 0;
    probe->stream = FSEventStreamCreate(NULL, callback, &context, paths, since, 0, flags);
    if (!probe->stream) {
        return false;
    }
    FSEventStreamScheduleWithRunLoop(probe->stream, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    if (!FSEventStreamStart(probe->stream)) {
        events_probe_end(probe);
        return false;
    }
    return true;
}

void events_probe_flush(struct events_probe *probe)
{
    FSEventStreamFlushSync(probe->stream);
}

FSEventStreamEventFlags events_probe_flags(const struct events_probe *probe, const char *path)
{
    FSEventStreamEventFlags flags = 0;

    for (size_t i = 0; i < probe->count && i < probe_events_most; i++) {
        if (probe->paths[i] && strcmp(probe->paths[i], path) == 0) {
            flags |= probe->flags[i];
        }
    }
    return flags;
}

void events_probe_forget(struct events_probe *probe)
{
    for (size_t i = 0; i < probe->count && i < probe_events_most; i++) {
        free(probe->paths[i]);
    }
    probe->count = 0;
}

void events_probe_end(struct events_probe *probe)
{
    FSEventStreamStop(probe->stream);
    FSEventStreamInvalidate(probe->stream);
    FSEventStreamRelease(probe->stream);
    events_probe_forget(probe);
    probe->stream = NULL;
}
