/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of preferences, by the names of an application, a user and a host. What a program passes on as a name may come from strangers:
 * a name that is a path, or would hide a file, has no file. No state; any thread.
 */
#ifndef CRL_PLIST_PREFERENCE_NAME_H
#define CRL_PLIST_PREFERENCE_NAME_H

#include "plist_link_names.h"

#include <limits.h>
#include <stdbool.h>

#include "CoreFoundation/CoreFoundation.h"

enum { preference_name_max = 200 }; /* bytes of UTF-8 in a name: a file's name has room for what is put before and behind it */

struct preference_place {
    char application[preference_name_max + 1]; /* ".GlobalPreferences" for any */
    char host[preference_name_max + 1]; /* "" for any */
    bool is_of_any_user;
};

/* Stops the process with a message unless the object, a `noun` for `function`, is a string. */
CFStringRef preference_require_string(CFTypeRef object, const char *noun, const char *function);

/* False, with a line on stderr: a name is none, or it is of another user. */
bool preference_place_find(CFStringRef application, CFStringRef user, CFStringRef host, const char *function,
                           struct preference_place *ret_place);
bool preference_place_is_same(const struct preference_place *one, const struct preference_place *other);

/* Writes the folder of a place, which ends with a slash, and its file's path. False: there is none for this process, or it is too long. */
bool preference_place_folder(const struct preference_place *place, char path[PATH_MAX]);
bool preference_place_file(const struct preference_place *place, const char *prefix, const char *suffix, char path[PATH_MAX]);

/* The application of a file's name, or NULL: the file is none of preferences. The caller releases the string. */
CFStringRef preference_name_create_of_file(const char *name);

#endif
