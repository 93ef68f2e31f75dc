/* SPDX-License-Identifier: Apache-2.0 */
/* Folders for tests (folder_maker.h). */
#define _GNU_SOURCE
#include "folder_maker.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Bundle/main_bundle.h"
#include "Preferences/preference_search.h"
#include "harness.h"

static char root[32];
static int stderr_before = -1;
static int stderr_file = -1;

void folder_make(void)
{
    (void)snprintf(root, sizeof root, "/tmp/crl-folder-XXXXXX");
    REQUIRE(mkdtemp(root));
    REQUIRE(setenv("XDG_CONFIG_HOME", root, 1) == 0);
    REQUIRE(setenv("XDG_CONFIG_DIRS", folder_path("any"), 1) == 0);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

void folder_remove(void)
{
    preference_domains_give_back();
    preference_search_give_back();
    main_bundle_give_back();
    bundles_give_back();
    (void)nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *folder_path(const char *name)
{
    static char paths[4][PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, PATH_MAX, "%s%s%s", root, name[0] != '\0' ? "/" : "", name);
    return path;
}

void folder_write(const char *name, const char *text)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s", folder_path(name));
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    REQUIRE(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static const char *read_text(int file)
{
    static char text[16384];
    ssize_t count = file >= 0 ? pread(file, text, sizeof text - 1, 0) : 0;

    text[count > 0 ? count : 0] = '\0';
    return text;
}

const char *folder_read(const char *name)
{
    FILE *file = fopen(folder_path(name), "re"); /* it fails in no test of failures, as open would */
    const char *text = read_text(file ? fileno(file) : -1);

    if (file) {
        (void)fclose(file);
    }
    return text;
}

int folder_count(const char *name, const char *beginning)
{
    DIR *folder = opendir(folder_path(name));
    int count = 0;

    for (struct dirent *entry = folder ? readdir(folder) : NULL; entry; entry = readdir(folder)) {
        count += strncmp(entry->d_name, beginning, strlen(beginning)) == 0;
    }
    if (folder) {
        (void)closedir(folder);
    }
    return count;
}

const char *text_of(CFTypeRef string)
{
    static char texts[4][PATH_MAX];
    static int next;
    char *text = texts[next++ % 4];

    if (!string || CFGetTypeID(string) != CFStringGetTypeID()) {
        return string ? "other" : "none";
    }
    REQUIRE(CFStringGetCString(string, text, PATH_MAX, kCFStringEncodingUTF8));
    return text;
}

const char *take_text(CFTypeRef string)
{
    const char *text = text_of(string);

    if (string) {
        CFRelease(string);
    }
    return text;
}

void stderr_take(void)
{
    (void)fflush(stderr);
    stderr_before = dup(STDERR_FILENO);
    stderr_file = memfd_create("stderr", MFD_CLOEXEC);
    REQUIRE(stderr_before >= 0 && stderr_file >= 0 && dup2(stderr_file, STDERR_FILENO) >= 0);
}

const char *stderr_taken(void)
{
    (void)fflush(stderr);
    (void)dup2(stderr_before, STDERR_FILENO);
    (void)close(stderr_before);
    const char *text = read_text(stderr_file);
    (void)close(stderr_file);
    return text;
}
