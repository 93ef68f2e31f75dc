/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "scratch_folder.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

void scratch_enter(char folder[scratch_size])
{
    (void)snprintf(folder, scratch_size, "/tmp/crl-services-XXXXXX");
    REQUIRE(mkdtemp(folder) && chdir(folder) == 0);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status;
    (void)type;
    (void)place;
    (void)remove(path);
    return 0;
}

void scratch_remove(const char *path)
{
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void scratch_leave(const char *folder)
{
    EXPECT(chdir("/") == 0);
    scratch_remove(folder);
    EXPECT(access(folder, F_OK) < 0);
}

void scratch_make_file(const char *path)
{
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    REQUIRE(file >= 0);
    (void)close(file);
}

void scratch_make_folder(const char *path)
{
    REQUIRE(mkdir(path, 0700) == 0);
}
