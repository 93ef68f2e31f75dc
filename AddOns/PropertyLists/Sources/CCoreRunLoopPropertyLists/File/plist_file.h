/* SPDX-License-Identifier: Apache-2.0 */
/* Files that hold one dictionary as a property list, in any format. No state; any thread. What is read is judged once, and a copy. */
#ifndef CRL_PLIST_PLIST_FILE_H
#define CRL_PLIST_PLIST_FILE_H

#include "plist_link_names.h"

#include "CoreFoundation/CoreFoundation.h"
#include "Format/read_fault.h"

enum { plist_file_limit = 1 << 26 }; /* bytes */

/*
 * Opens a file of this process's user, which is made if it is not there, and waits for its lock, which lasts until the drop. Returns the
 * descriptor, or -1 and errno. Nobody else may open it: who can open it can hold it.
 */
int plist_file_take_lock(const char *path);
void plist_file_drop_lock(int file);

enum plist_file_state {
    plist_file_is_read,
    plist_file_is_absent,
    plist_file_is_damaged, /* it has been seen to hold something else than a dictionary */
    plist_file_is_unknown /* it could not be read now */
};

/* Gives the dictionary, which the caller releases, or NULL and why there is none. */
enum plist_file_state plist_file_read(const char *path, CFDictionaryRef *ret_dictionary, struct read_fault *fault);

/*
 * Writes a dictionary so that others see the old file or the new one, and that either is there after a crash: into the file `.new` beside
 * it, which then takes its name. One that was left there is written anew, and one that is being written is waited for. Keeps the
 * permissions of the old file, or else has `mode`. If `is_kept_aside`, the old file, or the link to it, keeps a second name, which is told
 * in a line on stderr. False: nothing has changed, and why.
 */
bool plist_file_write(const char *path, CFDictionaryRef dictionary, mode_t mode, bool is_kept_aside, struct read_fault *fault);

#endif
