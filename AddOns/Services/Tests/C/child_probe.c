/* SPDX-License-Identifier: Apache-2.0 */
/* See child_probe.h. */
#include "child_probe.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Stream/stream_recorder.h"

static void note_end(CRLChildRef child, const CRLChildEnd *end, void *info)
{
    struct child_probe *probe = info;

    EXPECT_EQ(child, probe->child);
    probe->end = *end;
    probe->ends++;
    if (probe->action) {
        probe->action(probe);
    }
}

static void note_release(const void *info)
{
    ((struct child_probe *)(uintptr_t)info)->releases++;
}

CRLChildRef probe_start(struct child_probe *probe)
{
    CRLSourceContext context = {.info = probe, .release = note_release};

    probe->ends = 0;
    probe->child = CRLChildCreate(NULL, &probe->specification, note_end, &context, &probe->error);
    if (probe->child) {
        EXPECT_EQ(probe->error.error, 0);
        EXPECT(CRLChildScheduleWithRunLoop(probe->child, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
    }
    return probe->child;
}

CRLChildRef probe_start_script(struct child_probe *probe, const char *script)
{
    const char *arguments[] = {"sh", "-c", script, NULL};

    probe->specification.arguments = arguments;
    REQUIRE(probe_start(probe));
    return probe->child;
}

CRLChildRef probe_start_shell(struct child_probe *probe, const char *script)
{
    static const CRLChildDescriptor descriptors[] = {{0, kCRLChildReads, 0}, {1, kCRLChildWrites, 0}};

    probe->specification.descriptors = descriptors;
    probe->specification.descriptorCount = 2;
    return probe_start_script(probe, script);
}

void probe_run_to_end(struct child_probe *probe)
{
    run_until_count(&probe->ends, 1);
}

const char *probe_read(const struct child_probe *probe, int number, char *text, size_t size)
{
    CFReadStreamRef stream = CRLChildCopyReadStream(probe->child, number);
    CFIndex got = 1;
    size_t length = 0;

    REQUIRE(stream);
    if (CFReadStreamGetStatus(stream) == kCFStreamStatusNotOpen) {
        EXPECT(CFReadStreamOpen(stream));
    }
    while (got > 0 && length < size - 1) {
        got = CFReadStreamRead(stream, (UInt8 *)text + length, (CFIndex)(size - 1 - length));
        length += got > 0 ? (size_t)got : 0;
    }
    text[length] = '\0';
    CFRelease(stream);
    return text;
}

void probe_give_up(struct child_probe *probe)
{
    CFRelease(probe->child);
    probe->child = NULL;
}

const char *probe_output_of(struct child_probe *probe, const char *script)
{
    static char text[4096];

    if (probe->specification.descriptors) {
        probe_start_script(probe, script);
    } else {
        probe_start_shell(probe, script);
    }
    probe_read(probe, 1, text, sizeof text);
    probe_run_to_end(probe);
    EXPECT_EQ(probe->end.waitStatus, 0);
    probe_give_up(probe);
    return text;
}
