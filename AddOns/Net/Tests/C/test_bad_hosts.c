/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with /etc/hosts: in mounts of the test's own, where it lies over the machine's. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "CRLNetwork.h"
#include "Stream/stream_recorder.h"
#include "dns_server.h"
#include "query.h"

static void write_text_to(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);

    if (file >= 0) {
        (void)!write(file, text, strlen(text));
        close(file);
    }
}

/* The process has one thread. Skips the test where it may not have mounts of its own. */
static void cover_hosts(const char *path)
{
    char map[32];
    uid_t user = getuid();

    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
            SKIP("the process may not have mounts of its own");
        }
        (void)snprintf(map, sizeof map, "%d %d 1", (int)user, (int)user);
        write_text_to("/proc/self/uid_map", map);
    }
    if (mount("none", "/", "", MS_REC | MS_PRIVATE, NULL) != 0 || mount(path, "/etc/hosts", "", MS_BIND, NULL) != 0) {
        SKIP("the process may not have mounts of its own");
    }
}

/* Lines of which some are no lines at all, and one good one behind 10 MB of them. */
static void fill(FILE *file)
{
    static const char *const lines[] = {
        "192.0.2.1 other.test another.test # a comment\n",
        "192.0.2.300 last.test\n",
        "last.test\n",
        "\n",
        "#\n",
        ":::: last.test\n",
        "192.0.2.1\n",
    };
    size_t size = 0;

    for (int i = 0; i < 300000; i++) {
        fputc('x', file); /* one line that is too long */
    }
    fputc('\n', file);
    fwrite("192.0.2.1 last\0.test\n", 1, 21, file);
    for (size_t i = 0; size < 10 << 20; i++) {
        const char *line = lines[i % (sizeof lines / sizeof lines[0])];

        fputs(line, file);
        size += strlen(line);
    }
    fputs("127.0.0.9 last.test", file);
}

static void note_error(void *context, CFArrayRef addresses, CFStreamError error)
{
    struct trace *trace = context;

    if (addresses) {
        const struct sockaddr *address = (const void *)CFDataGetBytePtr(CFArrayGetValueAtIndex(addresses, 0));
        char host[64];

        REQUIRE(getnameinfo(address, sizeof(struct sockaddr_in), host, sizeof host, NULL, 0, NI_NUMERICHOST) == 0);
        trace_addf(trace, "%ld %s", (long)CFArrayGetCount(addresses), host);
    } else {
        trace_addf(trace, "error %d", (int)error.error);
    }
}

static void expect_told(CFStringRef name, const char *expected)
{
    struct trace trace = {0};
    void *query = query_resolve(name, 80, note_error, &trace);

    REQUIRE(query);
    query_wait(query);
    query_free(query);
    EXPECT_TRACE(&trace, expected);
}

TEST(hosts_of_ten_megabytes_are_read_to_their_end, "1000")
{
    char path[] = "/tmp/hosts.XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    struct dns_server server;

    REQUIRE(file);
    fill(file);
    fclose(file);
    cover_hosts(path);
    dns_server_start(&server);
    expect_told(CFSTR("last.test"), "1 127.0.0.9");
    EXPECT_EQ(server.questions, 0);
    expect_told(CFSTR("good.test"), "1 127.0.0.1");
    dns_server_stop(&server);
    EXPECT(umount("/etc/hosts") == 0);
    unlink(path);
}
