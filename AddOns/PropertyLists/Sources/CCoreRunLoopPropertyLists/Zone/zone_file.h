/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the tz database: below $TZDIR, or /usr/share/zoneinfo. Only regular files of at most a megabyte are read. A program that
 * runs with more rights than its user does not follow the user's environment. Any thread, no lock.
 */
#ifndef CRL_PLIST_ZONE_FILE_H
#define CRL_PLIST_ZONE_FILE_H

#include "plist_link_names.h"

#include "CoreFoundation/CFData.h"

enum { longest_zone_name = 255 };

/* The zone's file; NULL: there is none, or the name is no path below the folder. */
CFDataRef zone_file_copy(const char *name);
CFDataRef zone_file_copy_at(const char *path);
/*
 * The zone that a path stands for, if it is that of a file of the database or of a link to one: what comes behind "zoneinfo/". False
 * otherwise.
 */
bool zone_file_name_at(const char *path, char ret_name[longest_zone_name + 1]);

#endif
