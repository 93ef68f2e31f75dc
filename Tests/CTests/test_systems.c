/* SPDX-License-Identifier: Apache-2.0 */
/* What check-systems says where something is missing that it needs, and that it leaves nothing behind. With programs of the test's own. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/crl-systems-XXXXXX";

static void have(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "w");
    REQUIRE(file != NULL);
    (void)fprintf(file, "#!/bin/sh\n%s\n", text);
    REQUIRE(fclose(file) == 0 && chmod(path, 0755) == 0);
}

/* The script exits with 3 and has said the sentence. */
static void expect_lack(const char *arguments, const char *more_path, const char *sentence)
{
    char command[256];
    char text[2048];
    FILE *output;
    size_t length;
    int status;

    (void)snprintf(command, sizeof command, "PATH=%s%s TMPDIR=%s /bin/bash Tests/Systems/check-systems %s 2>&1", directory, more_path,
                   directory, arguments);
    output = popen(command, "r");
    REQUIRE(output != NULL);
    length = fread(text, 1, sizeof text - 1, output);
    text[length] = '\0';
    status = pclose(output);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    if (!strstr(text, sentence)) {
        FAIL(text);
    }
}

TEST(what_check_systems_lacks_is_one_sentence_and_leaves_nothing, "")
{
    static const char rest[] = ":/usr/bin:/bin";
    char command[128];

    if (access("Tests/Systems/check-systems", X_OK) < 0 || access("/bin/bash", X_OK) < 0) {
        SKIP("runs from the repository's folder only");
    }
    REQUIRE(mkdtemp(directory) != NULL);
    expect_lack("fedora-40", rest, "there is no system 'fedora-40'");
    expect_lack("", "", "there is no apt-get here");
    have("apt-get", "");
    expect_lack("", "", "there is no mmdebstrap here");
    have("mmdebstrap", "");
    have("unshare", "echo 'E: cannot reach it' >&2; exit 1");
    have("id", "echo 1000");
    expect_lack("", rest, "only root can make systems");
    have("id", "echo 0");
    expect_lack("", rest, "apt knows no mirror of Debian here");
    have("apt-get", "echo Debian http://nowhere.test/debian/");
    expect_lack("debian-11", rest, "E: cannot reach it");
    expect_lack("debian-11", rest, "the mirror http://nowhere.test/debian/ gives no bullseye");
    (void)snprintf(command, sizeof command, "cd %s && rm apt-get mmdebstrap unshare id && cd .. && rmdir %s", directory, directory);
    EXPECT_EQ(system(command), 0); /* nothing else was in it */
}
