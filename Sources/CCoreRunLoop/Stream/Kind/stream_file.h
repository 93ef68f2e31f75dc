/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of files: regular ones, which never make a reader wait, and pipes and terminals, which the loops watch. */
#ifndef CRL_STREAM_STREAM_FILE_H
#define CRL_STREAM_STREAM_FILE_H

#include "Stream/link_names.h"

#include "Stream/Core/stream.h"

/* Copies the path, which is opened with the stream. Returns NULL if there is no memory. */
struct stream *stream_file_create(CFAllocatorRef allocator, const char *path, bool is_reader);

#endif
