/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of a bundle lie in its folder. No state; any thread. A path that is too long is none. */
#ifndef CRL_PLIST_BUNDLE_LAYOUT_H
#define CRL_PLIST_BUNDLE_LAYOUT_H

#include "plist_link_names.h"

#include <limits.h>
#include <stdbool.h>

enum bundle_layout {
    bundle_is_flat,
    bundle_has_contents, /* applications and plug-ins: all in Contents */
    bundle_has_resources, /* frameworks: Resources, or a link to those of a version */
    bundle_has_versions, /* frameworks without these links: all in Versions/Current */
    bundle_layout_count
};

enum bundle_part {
    bundle_support,
    bundle_resources,
    bundle_info, /* the file Info.plist */
    bundle_private_frameworks,
    bundle_shared_frameworks,
    bundle_shared_support,
    bundle_plug_ins,
    bundle_part_count
};

enum bundle_layout bundle_layout_find(const char *root);
bool bundle_layout_path(enum bundle_layout layout, const char *root, enum bundle_part part, char ret_path[PATH_MAX]);
/* The file of a program or of a library of this name, or false: there is none. */
bool bundle_layout_executable(enum bundle_layout layout, const char *root, const char *name, char ret_path[PATH_MAX]);

/* Joins two parts with a slash, unless one is empty. */
bool bundle_path_join(const char *folder, const char *name, char ret_path[PATH_MAX]);
/* A part of a path that leads nowhere else. */
bool bundle_name_is_plain(const char *name);
bool bundle_folder_exists(const char *path);

#endif
