/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of files in the background when memory, a thread, or a call of the kernel, is not to be had: refused or told; nothing is lost. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "CRLFileStream.h"
#include "Failure/nth_failure.h"
#include "File/file_kernel.h"
#include "Work/work.h"
#include "Work/work_kernel.h"
#include "work_probe.h"

static struct file_kernel linux_files;

/* Below 0: the error with which a call fails in its turn. */
static int failing(const char *name, int first, int second)
{
    const struct failing_call call = {name, {first, second}};

    return -nth_failure_take(&call);
}

static int failing_thread_start(void *(*function)(void *info))
{
    (void)function;
    return failing("work.thread_start", ENOMEM, 0);
}

static int failing_open(const char *path, int flags)
{
    int error = failing("file.open", EMFILE, ENOSPC);

    return error ? error : linux_files.open(path, flags);
}

static int64_t failing_seek(int file, int64_t offset)
{
    int error = failing("file.seek", EINVAL, 0);

    return error ? error : linux_files.seek(file, offset);
}

static ssize_t failing_read(int file, void *bytes, size_t size)
{
    int error = failing("file.read", EIO, 0);

    return error ? error : linux_files.read(file, bytes, size);
}

static ssize_t failing_write(int file, const void *bytes, size_t size)
{
    int error = failing("file.write", ENOSPC, EIO);

    return error ? error : linux_files.write(file, bytes, size);
}

static int failing_sync(int file)
{
    int error = failing("file.sync", EIO, 0);

    return error ? error : linux_files.sync(file);
}

static int failing_close(int file)
{
    int error = failing("file.close", EIO, 0);
    int result = linux_files.close(file);

    return error ? error : result;
}

static void install(void)
{
    if (!linux_files.open) {
        linux_files = file_kernel;
    }
    file_kernel = (struct file_kernel){failing_open, failing_seek, failing_read, failing_write, failing_sync, failing_close};
    work_kernel.thread_start = failing_thread_start;
}

static char path[64]; /* of this process alone */

static CFURLRef url_of_scratch(void)
{
    int length = snprintf(path, sizeof path, "/tmp/crl-file-stream-%d", (int)getpid());

    return CFURLCreateFromFileSystemRepresentation(NULL, (const UInt8 *)path, length, false);
}

/* The pool's threads are steps of this one. */
static void work_all(void)
{
    CRLWorkRef taken;

    while ((taken = work_step_take()) != NULL) {
        work_step_finish(taken);
    }
}

/* Whether the bytes were written and synced. False: the stream has told why not. */
static bool write_it(CFURLRef url)
{
    CFWriteStreamRef writer = bag_keep(CRLWriteStreamCreateWithFileInBackground(NULL, url));
    CFIndex written = 0;
    bool finishes = false;
    bool is_done;

    NEED(writer);
    (void)CFWriteStreamOpen(writer);
    work_all();
    written = CFWriteStreamWrite(writer, (const UInt8 *)"0123456789", 10);
    work_all();
    finishes = written == 10 && CRLWriteStreamFinish(writer, true);
    work_all();
    (void)CFWriteStreamCanAcceptBytes(writer); /* has the stream look */
    is_done = CFWriteStreamGetStatus(writer) == kCFStreamStatusAtEnd;
    MUST(is_done == (finishes && CFWriteStreamGetStatus(writer) != kCFStreamStatusError));
    MUST(is_done == (CFWriteStreamGetError(writer).error == 0));
    CFWriteStreamClose(writer);
    work_all();
    return is_done;
}

static bool read_it(CFURLRef url)
{
    const int64_t start = 2;
    CFReadStreamRef reader = bag_keep(CRLReadStreamCreateWithFileInBackground(NULL, url));
    CFNumberRef offset = bag_keep(CFNumberCreate(NULL, kCFNumberSInt64Type, &start));
    UInt8 bytes[20];
    CFIndex count;
    CFIndex more = 0;

    NEED(reader && offset);
    MUST(CFReadStreamSetProperty(reader, kCFStreamPropertyFileCurrentOffset, offset));
    (void)CFReadStreamOpen(reader);
    work_all();
    count = CFReadStreamRead(reader, bytes, sizeof bytes);
    work_all();
    if (count > 0) {
        MUST(count == 8 && bytes[0] == '2');
        more = CFReadStreamRead(reader, bytes, sizeof bytes);
        MUST(more <= 0);
    }
    MUST((count > 0 && more == 0) == (CFReadStreamGetError(reader).error == 0));
    CFReadStreamClose(reader);
    work_all();
    return count > 0 && more == 0;
}

static bool write_and_read_a_file(void)
{
    CFURLRef url = bag_keep(url_of_scratch());
    bool is_complete;

    NEED(url);
    install();
    is_complete = write_it(url) && read_it(url);
    (void)unlink(path);
    work_steps_end();
    return is_complete;
}

NTH_FAILURE(files_in_the_background, "2227 2228 2229 2230")
{
    return write_and_read_a_file();
}
