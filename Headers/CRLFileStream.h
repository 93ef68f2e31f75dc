/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Streams of files that never wait for the disk on the loop: a file is opened, read, written, synced and closed on the threads of the pool
 * of CRLWork.h. They are in the add-on library libcorerunloop-services.
 *
 * They are the streams of CFStream.h, with a client, a loop or a queue, and the same calls. A read stream reads ahead, up to 256 KiB, from
 * when it is opened; kCFStreamEventHasBytesAvailable is told when bytes are there. A write stream takes up to 256 KiB, which are written
 * behind the program's back; kCFStreamEventCanAcceptBytes is told when there is room. An error of the file, also of one that is not there,
 * is told by kCFStreamEventErrorOccurred, with the errno; a read stream tells it behind the bytes before it. A call that finds no bytes or
 * no room waits, as documented; one that no thread of the pool works for does the work itself.
 *
 * A stream needs a thread of the pool only while there is something to do. A file that hangs keeps its thread, and its descriptor, until
 * the system lets go, also if the stream is closed meanwhile. Where no thread can be started and there is none, the stream fails with
 * EAGAIN.
 *
 * kCFStreamPropertyFileCurrentOffset and kCFStreamPropertyAppendToFile can be set before a stream is opened only. The offset is where the
 * program is, not the file: bytes that were read ahead do not count, and those that wait to be written do.
 *
 * In the child of a fork a stream that was made before it neither reads nor writes (ECHILD), and may only be closed and released: the
 * parent goes on. `CoreFoundation.h` does not include this header.
 */

#if !defined(CRL_FILE_STREAM_H)
#define CRL_FILE_STREAM_H 1

#include "CoreFoundation/CFBase.h"
#include "CoreFoundation/CFStream.h"
#include "CoreFoundation/CFURL.h"

CF_EXTERN_C_BEGIN

/**
 * Creates a stream that reads the file of `fileURL`, from its start or from kCFStreamPropertyFileCurrentOffset.
 *
 * A pipe or a device can be read as well.
 * Ownership: the caller releases the stream.
 * Threads: any.
 * Errors: NULL if the URL is none of a file, or without memory. What opening or reading finds is told by the stream.
 */
CF_EXPORT CFReadStreamRef CRLReadStreamCreateWithFileInBackground(CFAllocatorRef allocator, CFURLRef fileURL)
    CRL_LINK(CRLReadStreamCreateWithFileInBackground) CF_RETURNS_RETAINED;

/**
 * Creates a stream that writes the file of `fileURL`. Opening it makes the file, or empties it; see kCFStreamPropertyAppendToFile.
 *
 * CFWriteStreamClose, or the last release, does not wait: what was taken is still written in the background, but nobody hears of an error,
 * and a process that ends before loses it. CRLWriteStreamFinish tells.
 * Ownership: the caller releases the stream.
 * Threads: any.
 * Errors: as CRLReadStreamCreateWithFileInBackground. After an error that the stream tells, what waited is dropped.
 */
CF_EXPORT CFWriteStreamRef CRLWriteStreamCreateWithFileInBackground(CFAllocatorRef allocator, CFURLRef fileURL)
    CRL_LINK(CRLWriteStreamCreateWithFileInBackground) CF_RETURNS_RETAINED;

/**
 * Ends the writing: once all that was taken is written, if `syncs` also fsync has returned, and the file is closed, the stream tells
 * kCFStreamEventEndEncountered; or else kCFStreamEventErrorOccurred.
 *
 * It does not wait, and holds no loop. A write that comes later takes nothing and returns 0. fsync makes sure of the file, not of its name
 * in the folder; of a pipe or a device that cannot be synced there is nothing to make sure.
 * Threads: any.
 * Errors: false for any other stream, and for one that is neither open nor opening, has failed or is finishing already, or that another
 * thread is using.
 */
CF_EXPORT Boolean CRLWriteStreamFinish(CFWriteStreamRef stream, Boolean syncs) CRL_LINK(CRLWriteStreamFinish);

CF_EXTERN_C_END

#endif /* ! CRL_FILE_STREAM_H */
