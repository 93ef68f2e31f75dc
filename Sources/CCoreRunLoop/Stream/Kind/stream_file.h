/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of files: regular ones, which never make a reader wait, and pipes and terminals, which the loops watch. By path or descriptor. */
#ifndef CRL_STREAM_STREAM_FILE_H
#define CRL_STREAM_STREAM_FILE_H

#include "Stream/link_names.h"

#include "Stream/Core/stream.h"

/* Copies the path, which is opened with the stream. Returns NULL if there is no memory. */
struct stream *stream_file_create(CFAllocatorRef allocator, const char *path, bool is_reader);
/* Of the program's descriptor, which `closes` gives to the stream. */
struct stream *stream_file_create_with_descriptor(CFAllocatorRef allocator, int descriptor, bool closes, bool is_reader);

#endif
