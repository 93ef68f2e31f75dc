/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a background stream: a ring of bytes between the program, which reads or writes at one end, and whoever works on the file at
 * the other. CRLFileStream.c makes streams of them.
 *
 * One at a time works: a thread of the pool; or the program's own, where a call has to wait and nobody works yet, or no thread is to be
 * had. It does step after step (open, read or write, sync, close) until nothing is to be done, each without the lock. The program gives the
 * work to the pool when there is something to do again.
 *
 * The work object owns the file. The stream has a reference to it, and so has the pool while it waits or runs, so that the file outlives a
 * stream that is released in the midst of a read. The file has no reference to its stream, so that this is gone with the program's last
 * one, and tells nothing after that.
 *
 * Threads: any; the program's calls for one file come one after the other. The file's lock guards the fields, and is held over no call of
 * the system, the pool or the stream but CRLStreamSetState. In the child of a fork each call refuses.
 */
#ifndef CRL_SERVICES_BACKGROUND_FILE_H
#define CRL_SERVICES_BACKGROUND_FILE_H

#include "services_link_names.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "CRLAddOn.h"
#include "CRLWork.h"
#include "service_lock.h"

enum { file_block = 128 * 1024, file_room = 2 * file_block }; /* a read or write of the file at most; what the ring holds */

enum file_worker {
    file_has_no_worker,
    file_waits_for_worker, /* the work is given to the pool, or is about to be */
    file_has_worker,
};

/* Constant from before the open on where nothing guards them. */
struct background_file {
    CRLWorkRef work; /* no reference: it owns the file */
    CFTypeRef stream GUARDED_BY(the_service_lock); /* no reference; NULL: closed, or not made yet */
    char *path;
    pid_t process;
    bool is_reader;
    bool appends;
    int64_t start; /* where reading or writing begins */

    struct service_lock lock;
    pthread_cond_t changed; /* after each step and each telling */
    enum file_worker worker GUARDED_BY(the_service_lock);
    int descriptor; /* of whoever works, and read under the lock; -1: not open */
    bool has_begun GUARDED_BY(the_service_lock); /* the program has asked to open it */
    bool was_opened GUARDED_BY(the_service_lock); /* it is, or was, open */
    bool is_at_end GUARDED_BY(the_service_lock); /* the reader has come to it */
    bool is_finishing GUARDED_BY(the_service_lock); /* the writer gets no more bytes */
    bool syncs GUARDED_BY(the_service_lock); /* once all is written */
    bool is_closed GUARDED_BY(the_service_lock); /* the stream is */
    unsigned tellers GUARDED_BY(the_service_lock); /* threads that tell the stream its state, without a reference */
    unsigned steps GUARDED_BY(the_service_lock); /* made; wraps */
    int error GUARDED_BY(the_service_lock); /* a negative errno, for good */
    CFIndex state GUARDED_BY(the_service_lock); /* that the stream was told last */
    int64_t moved GUARDED_BY(the_service_lock); /* by the program */
    size_t begin GUARDED_BY(the_service_lock); /* the place of the first byte in the ring */
    size_t count GUARDED_BY(the_service_lock); /* of bytes in it */
    UInt8 bytes[file_room]; /* those in the ring belong to whoever takes them out, the others to whoever puts them in */
};

/* NULL: no memory. */
struct background_file *background_file_make(const char *path, bool is_reader);
EXCLUDES(the_service_lock) void background_file_set_stream(struct background_file *file, CFTypeRef stream);
/* Drops the stream's reference. */
void background_file_release(struct background_file *file);

/* See CRLStreamFunctions for these five. */
EXCLUDES(the_service_lock) void background_file_forget(struct background_file *file);
EXCLUDES(the_service_lock) int background_file_open(struct background_file *file, bool waits);
EXCLUDES(the_service_lock) CFIndex background_file_read(struct background_file *file, UInt8 *bytes, size_t size);
EXCLUDES(the_service_lock) CFIndex background_file_write(struct background_file *file, const UInt8 *bytes, size_t size);
EXCLUDES(the_service_lock) void background_file_close(struct background_file *file);
/* False: it is not open, or has failed. */
EXCLUDES(the_service_lock) bool background_file_finish(struct background_file *file, bool syncs);
/* Whether it was opened, or cannot be any more. */
EXCLUDES(the_service_lock) bool background_file_has_begun(struct background_file *file);
/* How many bytes the program has read or written. */
EXCLUDES(the_service_lock) int64_t background_file_moved(struct background_file *file);

#endif
