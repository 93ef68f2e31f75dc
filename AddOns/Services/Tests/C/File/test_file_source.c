/* SPDX-License-Identifier: Apache-2.0 */
/* What file sources tell of one file or folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLFileSource.h"
#include "File/notify_kernel.h"
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

TEST(a_file_source_goes_on_with_a_file_that_was_moved, "")
{
    char folder[scratch_size];
    CFOptionFlags told = 0;
    CFRunLoopSourceRef source;

    scratch_enter(folder);
    scratch_make_file("file");
    REQUIRE(symlink("file", "link") == 0);
    source = watch_path("link", &told);
    EXPECT_EQ(rename("file", "moved"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileRenamed);
    scratch_make_file("file");
    EXPECT_EQ(unlink("link"), 0);
    EXPECT_EQ(take_told(&told), 0);
    EXPECT_EQ(truncate("moved", 10), 0);
    EXPECT_EQ(take_told(&told), kCRLFileWritten | kCRLFileExtended);
    scratch_make_file("other");
    EXPECT_EQ(rename("other", "moved"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileLinked | kCRLFileDeleted);
    give_up(source);
    scratch_leave(folder);
}

/* ---- folders ---- */

TEST(a_file_source_tells_what_is_done_in_a_folder, "")
{
    char folder[scratch_size];
    CFOptionFlags told = 0;
    CFRunLoopSourceRef source;

    scratch_enter(folder);
    scratch_make_folder("watched");
    scratch_make_file("other");
    source = watch_path("watched", &told);
    EXPECT_EQ(take_told(&told), 0);
    scratch_make_file("watched/file");
    EXPECT_EQ(take_told(&told), kCRLFileWritten);
    EXPECT_EQ(unlink("watched/file"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileWritten);
    scratch_make_folder("watched/sub");
    EXPECT_EQ(take_told(&told), kCRLFileWritten | kCRLFileLinked);
    EXPECT_EQ(rename("watched/sub", "watched/renamed"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileWritten | kCRLFileLinked | kCRLFileExtended);
    EXPECT_EQ(rmdir("watched/renamed"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileWritten | kCRLFileLinked);
    EXPECT_EQ(rename("other", "watched/other"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileWritten | kCRLFileExtended);
    EXPECT_EQ(rename("watched/other", "other"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileWritten | kCRLFileExtended);
    EXPECT_EQ(chmod("watched", 0750), 0);
    EXPECT_EQ(take_told(&told), kCRLFileAttributesChanged);
    scratch_make_folder("beside"); /* the folder around it is watched for its own end alone */
    EXPECT_EQ(rmdir("beside"), 0);
    EXPECT_EQ(take_told(&told), 0);
    give_up(source);
    scratch_leave(folder);
}

/* While somebody has the folder open, only the folder around it, wherever that is by now, tells its end. */
TEST(a_file_source_tells_the_end_of_a_folder_that_is_open, "")
{
    char folder[scratch_size];
    CFOptionFlags told = 0;
    CFRunLoopSourceRef source;
    int open_folder;

    scratch_enter(folder);
    scratch_make_folder("watched");
    scratch_make_folder("other");
    open_folder = open("watched", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    source = CRLFileSourceCreateWithDescriptor(NULL, open_folder, everything, 0, note_events, &(CRLSourceContext){.info = &told});
    REQUIRE(source);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    EXPECT_EQ(rename("watched", "renamed"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileRenamed);
    EXPECT_EQ(rename("renamed", "other/moved"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileRenamed);
    EXPECT_EQ(rmdir("other/moved"), 0);
    EXPECT_EQ(take_told(&told), kCRLFileDeleted);
    (void)close(open_folder);
    EXPECT_EQ(take_told(&told), 0);
    give_up(source);
    scratch_leave(folder);
}

TEST(a_file_source_of_the_root_has_no_folder_around, "")
{
    CFOptionFlags told = 0;
    CRLSourceContext context = {.info = &told};
    CFRunLoopSourceRef source = CRLFileSourceCreateWithPath(NULL, "/", kCRLFileDeleted | kCRLFileRenamed, 0, note_events, &context);

    REQUIRE(source);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    EXPECT_EQ(take_told(&told), 0);
    give_up(source);
}

/* ---- what is given ---- */

static CFRunLoopSourceRef create(const char *path, CFOptionFlags events, const CRLSourceContext *context)
{
    errno = 0;
    return CRLFileSourceCreateWithPath(NULL, path, events, 0, note_events, context);
}

TEST(a_file_source_that_is_refused_says_why, "")
{
    CRLSourceContext later = {.version = 1};
    char longest[5000];

    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    EXPECT(!create(NULL, everything, NULL) && errno == EINVAL);
    EXPECT(!create("/", 0, NULL) && errno == EINVAL);
    EXPECT(!create("/", everything + 1, NULL) && errno == EINVAL);
    EXPECT(!create("/", everything, &later) && errno == EINVAL);
    EXPECT(!create("/nowhere/at/all", everything, NULL) && errno == ENOENT);
    EXPECT(!create("/dev/null/file", everything, NULL) && errno == ENOTDIR);
    EXPECT(!create(longest, everything, NULL) && errno == ENAMETOOLONG);
    errno = 0;
    EXPECT(!CRLFileSourceCreateWithPath(NULL, "/", everything, 0, NULL, NULL) && errno == EINVAL);
    errno = 0;
    EXPECT(!CRLFileSourceCreateWithDescriptor(NULL, -1, everything, 0, note_events, NULL) && errno == EBADF);
    errno = 0;
    EXPECT(!CRLFileSourceCreateWithDescriptor(NULL, 0, 0, 0, note_events, NULL) && errno == EINVAL);
}

static int retained;

static const void *count_retain(const void *info)
{
    retained++;
    return info;
}

static void count_release(const void *info)
{
    (void)info;
    retained--;
}

static CFStringRef copy_word(const void *info)
{
    return CFStringCreateWithCString(NULL, info, kCFStringEncodingUTF8);
}

static void expect_description(CFRunLoopSourceRef source, const char *part)
{
    CFStringRef text = CFCopyDescription(source);
    char bytes[1024] = "";

    EXPECT(text && CFStringGetCString(text, bytes, sizeof bytes, kCFStringEncodingUTF8) && strstr(bytes, part));
    CFRelease(text);
}

TEST(a_file_source_keeps_its_context, "")
{
    CRLSourceContext context = {.info = "what it says", .retain = count_retain, .release = count_release, .copyDescription = copy_word};
    CFRunLoopSourceRef source = create("/", kCRLFileRenamed, &context);
    CFRunLoopSourceRef plain = create("/", kCRLFileRenamed, NULL);

    REQUIRE(source && plain);
    EXPECT_EQ(retained, 1);
    expect_description(source, "what it says");
    expect_description(plain, "<file source");
    EXPECT(!create("/nowhere/at/all", everything, &context));
    EXPECT_EQ(retained, 1);
    give_up(source);
    EXPECT_EQ(retained, 0);
    give_up(plain);
}

TEST(a_file_source_tells_what_it_was_asked_for, "")
{
    char folder[scratch_size];
    CFOptionFlags told = 0;
    CRLSourceContext context = {.info = &told};
    CFRunLoopSourceRef source;

    scratch_enter(folder);
    scratch_make_file("file");
    source = create("file", kCRLFileAttributesChanged, &context);
    REQUIRE(source);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    EXPECT_EQ(truncate("file", 10), 0);
    EXPECT_EQ(take_told(&told), 0);
    EXPECT_EQ(link("file", "other"), 0);
    EXPECT_EQ(take_told(&told), 0);
    EXPECT(truncate("file", 5) == 0 && chmod("file", 0640) == 0);
    EXPECT_EQ(take_told(&told), kCRLFileAttributesChanged);
    give_up(source);
    scratch_leave(folder);
}

/* ---- what a kernel may say ---- */

static uint32_t masks_to_come[4]; /* the last is 0 */
static int wd_to_come;

/* Once something has really happened, these come instead. */
static ssize_t read_given(int notify, void *bytes, size_t size)
{
    char *place = bytes;
    ssize_t count = notify_kernel_linux.notify_read(notify, bytes, size);

    for (int i = 0; count > 0 && masks_to_come[i] != 0; i++) {
        struct inotify_event event = {.wd = masks_to_come[i] & IN_Q_OVERFLOW ? -1 : wd_to_come, .mask = masks_to_come[i]};

        memcpy(place, &event, sizeof event);
        place += sizeof event;
    }
    return place == (char *)bytes ? count : place - (char *)bytes;
}

static CFOptionFlags told_of(const char *path, uint32_t first, uint32_t second)
{
    CFOptionFlags told = 0;
    CFRunLoopSourceRef source = watch_path(path, &told);
    CFOptionFlags result;

    masks_to_come[0] = first;
    masks_to_come[1] = second;
    wd_to_come = 1;
    EXPECT_EQ(chmod(path, 0711), 0);
    result = take_told(&told);
    masks_to_come[0] = 0;
    EXPECT_EQ(chmod(path, 0700), 0);
    (void)take_told(&told);
    give_up(source);
    return result;
}

TEST(a_file_source_tells_what_a_full_queue_may_have_hidden, "")
{
    char folder[scratch_size];

    notify_kernel.notify_read = read_given;
    scratch_enter(folder);
    scratch_make_file("file");
    scratch_make_folder("sub");
    EXPECT_EQ(told_of("file", IN_Q_OVERFLOW, 0), kCRLFileWritten | kCRLFileAttributesChanged);
    EXPECT_EQ(told_of("sub", IN_Q_OVERFLOW, 0), kCRLFileWritten | kCRLFileAttributesChanged | kCRLFileExtended | kCRLFileLinked);
    scratch_leave(folder);
}

TEST(a_file_source_tells_the_end_once, "")
{
    char folder[scratch_size];

    notify_kernel.notify_read = read_given;
    scratch_enter(folder);
    scratch_make_file("file");
    EXPECT_EQ(told_of("file", IN_UNMOUNT, IN_IGNORED), kCRLFileRevoked);
    EXPECT_EQ(told_of("file", IN_DELETE_SELF, IN_IGNORED), kCRLFileDeleted);
    EXPECT_EQ(told_of("file", IN_IGNORED, 0), 0);
    scratch_leave(folder);
}

static int status_refused(int file, struct stat *ret_status)
{
    (void)file;
    (void)ret_status;
    return -EIO;
}

TEST(a_file_source_tells_what_it_knows_of_a_file_without_a_status, "")
{
    char folder[scratch_size];
    CFOptionFlags told = 0;
    CFRunLoopSourceRef source;

    scratch_enter(folder);
    scratch_make_file("file");
    source = watch_path("file", &told);
    notify_kernel.file_status = status_refused;
    EXPECT_EQ(truncate("file", 10), 0);
    EXPECT_EQ(take_told(&told), kCRLFileWritten);
    EXPECT_EQ(chmod("file", 0640), 0);
    EXPECT_EQ(take_told(&told), kCRLFileAttributesChanged);
    notify_kernel.file_status = notify_kernel_linux.file_status;
    EXPECT_EQ(truncate("file", 10), 0);
    EXPECT(take_told(&told) & kCRLFileExtended);
    EXPECT(!create("/nowhere/at/all", everything, NULL) && errno == ENOENT);
    notify_kernel.file_status = status_refused;
    EXPECT(!create("file", everything, NULL) && errno == EIO);
    give_up(source);
    scratch_leave(folder);
}

/* ---- forks ---- */

TEST(the_child_of_a_fork_leaves_its_parents_file_alone, "")
{
    char folder[scratch_size];
    CFOptionFlags told = 0;
    CFRunLoopSourceRef source;
    pid_t child;
    int status;

    scratch_enter(folder);
    scratch_make_file("file");
    source = watch_path("file", &told);
    EXPECT_EQ(truncate("file", 10), 0);
    child = fork();
    if (child == 0) {
        bool is_over = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false) == kCFRunLoopRunFinished;

        _exit(is_over && told == 0 && !CFRunLoopSourceIsValid(source) ? 0 : 1);
    }
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(take_told(&told), kCRLFileWritten | kCRLFileExtended);
    give_up(source);
    scratch_leave(folder);
}
