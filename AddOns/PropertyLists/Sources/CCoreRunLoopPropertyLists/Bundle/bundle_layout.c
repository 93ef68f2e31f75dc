/* SPDX-License-Identifier: Apache-2.0 */
/* The folders of bundles (bundle_layout.h). */
#include "Bundle/bundle_layout.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The folder of programs and settings, and that of resources. */
static const char *const folders[bundle_layout_count][2] = {
    {"", ""}, {"Contents", "Contents/Resources"}, {"", "Resources"}, {"Versions/Current", "Versions/Current/Resources"}};
static const char *const parts[bundle_part_count] = {"", "", "Info.plist", "Frameworks", "SharedFrameworks", "SharedSupport", "PlugIns"};

bool bundle_path_join(const char *folder, const char *name, char ret_path[PATH_MAX])
{
    const char *slash = folder[0] != '\0' && name[0] != '\0' ? "/" : "";
    int length = snprintf(ret_path, PATH_MAX, "%s%s%s", folder, slash, name);

    return length >= 0 && length < PATH_MAX;
}

bool bundle_name_is_plain(const char *name)
{
    return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/');
}

bool bundle_folder_exists(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool has_folder(const char *root, const char *name)
{
    char path[PATH_MAX];

    return bundle_path_join(root, name, path) && bundle_folder_exists(path);
}

enum bundle_layout bundle_layout_find(const char *root)
{
    return has_folder(root, "Contents")           ? bundle_has_contents
           : has_folder(root, "Resources")        ? bundle_has_resources
           : has_folder(root, "Versions/Current") ? bundle_has_versions
                                                  : bundle_is_flat;
}

bool bundle_layout_path(enum bundle_layout layout, const char *root, enum bundle_part part, char ret_path[PATH_MAX])
{
    char folder[PATH_MAX];
    bool is_in_resources =
        part == bundle_resources || (part == bundle_info && (layout == bundle_has_resources || layout == bundle_has_versions));

    return bundle_path_join(root, folders[layout][is_in_resources], folder) && bundle_path_join(folder, parts[part], ret_path);
}

static bool is_file(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static bool find_in(const char *folder, const char *name, char ret_path[PATH_MAX])
{
    static const char *const forms[][2] = {{"", ""}, {"lib", ".so"}, {"", ".so"}};

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        int length = snprintf(ret_path, PATH_MAX, "%s/%s%s%s", folder, forms[i][0], name, forms[i][1]);

        if (length >= 0 && length < PATH_MAX && is_file(ret_path)) {
            return true;
        }
    }
    return false;
}

bool bundle_layout_executable(enum bundle_layout layout, const char *root, const char *name, char ret_path[PATH_MAX])
{
    static const char *const programs[] = {"Linux", "MacOS", ""};
    char support[PATH_MAX];
    char folder[PATH_MAX];

    if (!bundle_name_is_plain(name) || !bundle_layout_path(layout, root, bundle_support, support)) {
        return false;
    }
    for (size_t i = layout == bundle_has_contents ? 0 : 2; i < sizeof programs / sizeof *programs; i++) {
        if (bundle_path_join(support, programs[i], folder) && find_in(folder, name, ret_path)) {
            return true;
        }
    }
    return layout == bundle_has_resources && bundle_path_join(root, "Versions/Current", folder) && find_in(folder, name, ret_path);
}
