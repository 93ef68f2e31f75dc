/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole files that others may change, and never waits for one. No state; any thread. */
#ifndef CRL_PLIST_WHOLE_FILE_H
#define CRL_PLIST_WHOLE_FILE_H

#include "plist_link_names.h"

#include "Format/byte_buffer.h"

/*
 * Reads a regular file of at most `limit` bytes, to which links may lead. Returns 0 or the error: EINVAL if it is another kind of file,
 * EFBIG if it is too large. The buffer is empty before; byte_buffer_free gives it back after an error, too.
 */
int whole_file_read(const char *path, size_t limit, struct byte_buffer *buffer);

#endif
