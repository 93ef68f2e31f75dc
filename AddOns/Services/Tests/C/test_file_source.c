/* SPDX-License-Identifier: Apache-2.0 */
/* What file sources tell of one file or folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "CRLFileSource.h"
#include "harness.h"
#include "scratch_folder.h"

static const CFOptionFlags everything = 0x7f;

static void note_events(CFRunLoopSourceRef source, CFOptionFlags events, void *info)
{
    (void)source;
    *(CFOptionFlags *)info |= events;
}

/* What has been told since the last call. */
static CFOptionFlags take_told(CFOptionFlags *told)
{
    CFOptionFlags taken;

    while (CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true) == kCFRunLoopRunHandledSource) {
    }
    taken = *told;
    *told = 0;
    return taken;
}

static CFRunLoopSourceRef watch_path(const char *path, CFOptionFlags *told)
{
    CRLSourceContext context = {.info = told};
    CFRunLoopSourceRef source = CRLFileSourceCreateWithPath(NULL, path, everything, 0, note_events, &context);

    REQUIRE(source);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    return source;
}

static void give_up(CFRunLoopSourceRef source)
{
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
}

TEST(a_file_source_tells_what_is_done_with_the_file, "")
{
    char folder[scratch_size];
    CFOptionFlags told = 0;
    int file;
    CFRunLoopSourceRef source;

    scratch_enter(folder);
    file = open("file", O_CREAT | O_RDWR, 0600);
    source = watch_path("file", &told);
    EXPECT_EQ(take_told(&told), 0);
    EXPECT_EQ(write(file, "abc", 3), 3);
    EXPECT_EQ(take_told(&told), kCRLFileWritten | kCRLFileExtended);
    EXPECT_EQ(pwrite(file, "abc", 3, 0), 3);
    EXPECT_EQ(take_told(&told), kCRLFileWritten);
    EXPECT_EQ(ftruncate(file, 0), 0);
    EXPECT_EQ(take_told(&told), kCRLFileWritten);
    EXPECT_EQ(fchmod(file, 0640), 0);
    EXPECT_EQ(take_told(&told), kCRLFileAttributesChanged);
    EXPECT_EQ(link("file", "other"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileLinked);
    EXPECT_EQ(rename("other", "renamed"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileRenamed);
    EXPECT_EQ(unlink("renamed"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileLinked);
    EXPECT_EQ(unlink("file"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileLinked | kCRLFileDeleted);
    give_up(source);
    (void)close(file);
    scratch_leave(folder);
}
