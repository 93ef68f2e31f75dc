/* SPDX-License-Identifier: Apache-2.0 */
/* See input.h. Used on the loop's thread only. */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "timeline.h"

struct input {
    int data; /* what the lines are read from */
    int notices; /* the inotify descriptor; -1 for standard input */
    CFFileDescriptorRef watched;
    void (*on_end)(void);
};

/* Shows the first line of what came, and how many there are. */
static void show(const char *bytes, size_t length)
{
    const char *end = memchr(bytes, '\n', length);
    size_t first = end ? (size_t)(end - bytes) : length;
    unsigned lines = 0;

    for (size_t i = 0; i < length; i++) {
        lines += bytes[i] == '\n';
    }
    timeline_text(event_input, "input", bytes, first);
    if (lines > 1) {
        timeline_event(event_note, "%u lines, %zu bytes", lines, length);
    }
}

/* False when there is nothing to read now. */
static bool read_some(struct input *input)
{
    char bytes[16384];
    ssize_t length = read(input->data, bytes, sizeof bytes);

    if (length > 0) {
        show(bytes, (size_t)length);
    }
    return length > 0 || (length < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Follows a file: everything behind what was read before; from its beginning when it has become shorter. */
static void read_file(struct input *input)
{
    char notice[4096];
    struct stat file;
    off_t at = lseek(input->data, 0, SEEK_CUR);

    while (read(input->notices, notice, sizeof notice) > 0) {
    }
    if (fstat(input->data, &file) == 0 && file.st_size < at) {
        timeline_event(event_note, "the file has become shorter");
        (void)lseek(input->data, 0, SEEK_SET);
    }
    while (read_some(input)) {
    }
}

static void ready(CFFileDescriptorRef watched, CFOptionFlags kinds, void *info)
{
    struct input *input = info;

    (void)kinds;
    if (input->notices >= 0) {
        read_file(input);
    } else if (!read_some(input)) {
        timeline_event(event_input, "end of input");
        input->on_end();
        return;
    }
    CFFileDescriptorEnableCallBacks(watched, kCFFileDescriptorReadCallBack); /* one notice for each asking */
}

static bool open_descriptors(struct input *input, const char *path)
{
    if (!path) {
        return true;
    }
    input->data = open(path, O_RDONLY | O_CLOEXEC);
    input->notices = input->data < 0 ? -1 : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    return input->notices >= 0 && inotify_add_watch(input->notices, path, IN_MODIFY) >= 0 && lseek(input->data, 0, SEEK_END) >= 0;
}

struct input *input_open(CFRunLoopRef loop, CFStringRef mode, const char *path, void (*on_end)(void))
{
    struct input *input = calloc(1, sizeof *input);
    CFFileDescriptorContext context = {.info = input};
    CFRunLoopSourceRef source;

    if (!input) {
        abort();
    }
    input->data = STDIN_FILENO;
    input->notices = -1;
    input->on_end = on_end;
    if (!open_descriptors(input, path)) {
        free(input);
        return NULL;
    }
    input->watched = CFFileDescriptorCreate(NULL, path ? input->notices : STDIN_FILENO, path != NULL, ready, &context);
    if (!input->watched) {
        free(input);
        errno = EBADF;
        return NULL;
    }
    source = CFFileDescriptorCreateRunLoopSource(NULL, input->watched, 0);
    CFRunLoopAddSource(loop, source, mode);
    CFRelease(source);
    CFFileDescriptorEnableCallBacks(input->watched, kCFFileDescriptorReadCallBack);
    return input;
}

void input_close(struct input *input)
{
    CFFileDescriptorInvalidate(input->watched); /* closes the inotify descriptor */
    CFRelease(input->watched);
    if (input->data != STDIN_FILENO) {
        (void)close(input->data);
    }
    free(input);
}
