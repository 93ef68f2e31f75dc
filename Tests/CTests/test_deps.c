/* SPDX-License-Identifier: Apache-2.0 */
/* What scripts/deps says when apt fails. With an apt-get of the test's own, and nothing else to be found, so that everything is missing. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void write_program(const char *directory, const char *name, const char *text)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "w");
    REQUIRE(file != NULL);
    (void)fprintf(file, "#!/bin/sh\n%s\n", text);
    REQUIRE(fclose(file) == 0 && chmod(path, 0755) == 0);
}

/* The exit status of scripts/deps, and what it has printed. */
static int run_deps(const char *apt_get, char *ret_text, size_t size)
{
    char directory[] = "/tmp/crl-deps-XXXXXX";
    char command[256];
    FILE *output;
    size_t length;
    int status;

    if (access("scripts/deps", X_OK) < 0) {
        SKIP("runs from the repository's folder only");
    }
    REQUIRE(mkdtemp(directory) != NULL);
    write_program(directory, "id", "echo 0");
    write_program(directory, "apt-get", apt_get);
    (void)snprintf(command, sizeof command, "PATH=%s scripts/deps build 2>&1", directory);
    output = popen(command, "r");
    REQUIRE(output != NULL);
    length = fread(ret_text, 1, size - 1, output);
    ret_text[length] = '\0';
    status = pclose(output);
    (void)snprintf(command, sizeof command, "rm -r %s", directory);
    EXPECT_EQ(system(command), 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(deps_shows_why_apt_failed, "")
{
    char text[4096];

    EXPECT_EQ(run_deps("echo 'Reading package lists...'; echo 'E: Could not get lock /var/lib/dpkg/lock-frontend' >&2; exit 100", text,
                       sizeof text),
              3);
    EXPECT(strstr(text, "E: Could not get lock /var/lib/dpkg/lock-frontend\n"));
    EXPECT(strstr(text, "please type:\nsudo apt-get install -y"));
}

TEST(deps_says_nothing_of_apt_when_the_second_attempt_succeeds, "")
{
    char text[4096];

    EXPECT_EQ(run_deps("case \"$*\" in *update*) : > \"${0%/*}/updated\" ;; *) [ -e \"${0%/*}/updated\" ] || { echo 'E: no such package'; "
                       "exit 100; } ;; esac",
                       text, sizeof text),
              0);
    EXPECT(!strstr(text, "E: "));
}

TEST(deps_waits_for_another_apt, "")
{
    char text[4096];

    EXPECT_EQ(run_deps("case \"$*\" in *DPkg::Lock::Timeout=*) ;; *) exit 100 ;; esac", text, sizeof text), 0);
}
