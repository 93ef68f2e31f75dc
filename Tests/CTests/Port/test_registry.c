/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of names and what can be wrong with it: H16 to H21, M2, M4, M5, M16, and crashes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Port/port_probe.h"

static CFMessagePortRef local(CFStringRef name)
{
    return CFMessagePortCreateLocal(NULL, name, port_echo, NULL, NULL);
}

static bool can_register(void)
{
    CFMessagePortRef port = local(NAME);

    if (port) {
        port_drop(port);
    }
    return port != NULL;
}

static void remove_names(void)
{
    char command[256];

    (void)snprintf(command, sizeof command, "rm -rf %s", port_probe_names());
    (void)!system(command);
}

PORT_TEST(a_directory_that_is_not_safe_is_not_used, "210 H16")
{
    Boolean should_free = false;

    EXPECT(can_register());
    (void)chmod(port_probe_names(), 0755);
    EXPECT_EQ(CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, &should_free), NULL);
    EXPECT(should_free);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
    (void)chmod(port_probe_names(), 0700);
    EXPECT(can_register());
    remove_names();
    (void)!symlink("/tmp", port_probe_names());
    EXPECT(!can_register());
    (void)unlink(port_probe_names());
    (void)close(open(port_probe_names(), O_CREAT | O_WRONLY, 0600));
    EXPECT(!can_register());
    (void)unlink(port_probe_names());
    if (geteuid() == 0) {
        (void)mkdir(port_probe_names(), 0700);
        (void)!chown(port_probe_names(), 65534, 65534);
        EXPECT(!can_register());
        (void)rmdir(port_probe_names());
    }
    EXPECT(can_register());
}

PORT_TEST(odd_values_of_the_variable_are_passed_over, "M16 210")
{
    static const char *const odd[] = {"", "relative/path", "/does/not/exist", "/etc/passwd"};
    char shared[128];
    char path[256];
    struct stat status;

    (void)snprintf(path, sizeof path, "/run/user/%u", (unsigned)geteuid());
    if (stat(path, &status) == 0) {
        SKIP("/run/user has a directory of this user's, which is not the test's");
    }
    (void)snprintf(shared, sizeof shared, "%s/shared", port_probe_directory());
    (void)mkdir(shared, 0700);
    (void)chmod(shared, 01777);
    (void)setenv("TMPDIR", shared, 1);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        (void)setenv("XDG_RUNTIME_DIR", odd[i], 1);
        EXPECT(can_register());
    }
    (void)unsetenv("XDG_RUNTIME_DIR");
    EXPECT(can_register());
    (void)snprintf(path, sizeof path, "%s/corerunloop-%u/corerunloop.v1", shared, (unsigned)geteuid());
    EXPECT(stat(path, &status) == 0 && (status.st_mode & 0777) == 0700);
    (void)chmod(shared, 0777); /* not sticky: anybody could replace what is in it */
    EXPECT(!can_register());
}

PORT_TEST(a_long_path_will_do, "M16")
{
    char path[3300];
    CFMessagePortRef port, remote;

    (void)snprintf(path, sizeof path, "%s", port_probe_directory());
    while (strlen(path) < 3000) {
        (void)snprintf(path + strlen(path), sizeof path - strlen(path), "/%0200d", 1);
        (void)mkdir(path, 0700);
    }
    (void)strcat(path, "///");
    (void)setenv("XDG_RUNTIME_DIR", path, 1);
    port = local(NAME);
    remote = CFMessagePortCreateRemote(NULL, NAME);
    EXPECT(port && remote);
    CFRelease(remote);
    port_drop(port);
}

static void plant(const char *leaf, int kind)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", port_probe_names(), leaf);
    (void)remove(path);
    if (kind == 0) {
        (void)close(open(path, O_CREAT | O_WRONLY, 0600));
    } else if (kind == 1) {
        (void)!symlink("/tmp/corerunloop-test-target", path);
    } else if (kind == 2) {
        (void)mkfifo(path, 0600);
    } else {
        (void)mkdir(path, 0700);
    }
}

PORT_TEST(planted_files_do_not_mislead, "195 H17")
{
    EXPECT(can_register());
    for (int kind = 0; kind < 4; kind++) {
        plant("a%20port.sock", kind);
        plant("a%20port.lock", 0);
        EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
        EXPECT(can_register() || kind == 3); /* a directory cannot be replaced by a socket */
        remove_names();
        EXPECT(can_register());
        plant("a%20port.lock", kind);
        EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
        EXPECT(can_register() == (kind == 0 || kind == 2)); /* a file that nobody holds is swept */
        EXPECT(access("/tmp/corerunloop-test-target", F_OK) != 0);
        remove_names();
    }
}

PORT_TEST(a_deleted_directory_is_made_again, "H20")
{
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, MODE);
    CFMessagePortRef early = CFMessagePortCreateRemote(NULL, NAME);
    CFMessagePortRef remote, other;

    remove_names();
    EXPECT_EQ(port_ask(early, 1, NULL, NULL), kCFMessagePortSuccess); /* who is connected stays connected */
    other = local(CFSTR("other")); /* and the next use of the directory registers again */
    EXPECT(other != NULL);
    remote = CFMessagePortCreateRemote(NULL, NAME);
    REQUIRE(remote != NULL);
    if (remote == early || !CFMessagePortIsValid(early)) {
        EXPECT_EQ(port_ask(remote, 1, NULL, NULL), CFMessagePortIsValid(remote) ? kCFMessagePortSuccess : kCFMessagePortIsInvalid);
    }
    CFRelease(early);
    CFRelease(remote);
    port_drop(other);
    port_drop(port);
}

/* ---- crashes ---- */

static void register_until_killed(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        CFMessagePortRef port = local(NAME);

        if (port) {
            port_drop(port);
        }
    }
}

PORT_TEST_LIMIT(stress_a_process_killed_at_any_moment_blocks_no_name, "195 H19 M2", 60)
{
    int rounds = test_is_soak() ? 1000 : 100;
    unsigned random_state = (unsigned)getpid();

    for (int i = 0; i < rounds; i++) {
        pid_t pid = fork();
        CFMessagePortRef port;

        if (pid == 0) {
            register_until_killed();
        }
        usleep((useconds_t)(rand_r(&random_state) % 3000)); /* any moment will do */
        port_process_kill(pid);
        port = local(NAME);
        EXPECT(port != NULL);
        if (port) {
            EXPECT_EQ(port_probe_count_files(), 2);
            port_drop(port);
        }
        EXPECT_EQ(port_probe_count_files(), 0);
    }
}

PORT_TEST(what_the_dead_leave_is_swept_by_the_next_to_register, "195 H19")
{
    CFMessagePortRef port;

    for (int i = 0; i < 10; i++) {
        CFStringRef name = CFStringCreateWithFormat(NULL, NULL, CFSTR("dead %d"), i);

        port_process_kill(port_process_start_idle(name));
        CFRelease(name);
    }
    port = local(NAME);
    REQUIRE(port != NULL);
    EXPECT_EQ(port_probe_count_files(), 2);
    port_drop(port);
}

enum { contenders = 8 };

static void contend(int start, int result, int hold)
{
    CFMessagePortRef port;
    char byte = 0;

    (void)!read(start, &byte, 1);
    port = local(NAME);
    byte = port ? 'y' : 'n';
    (void)!write(result, &byte, 1);
    (void)!read(hold, &byte, 1); /* the owner holds the name until all have tried */
    _exit(0);
}

PORT_TEST_LIMIT(stress_of_eight_contenders_one_gets_the_name, "193 195 M4", 60)
{
    for (int round = 0; round < (test_is_soak() ? 300 : 10); round++) {
        int start[2], result[2], hold[2];
        pid_t pids[contenders];
        int owners = 0;
        char bytes[contenders] = {0};

        port_process_kill(port_process_start_idle(NAME)); /* a stale name */
        REQUIRE(pipe(start) == 0 && pipe(result) == 0 && pipe(hold) == 0);
        for (int i = 0; i < contenders; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                (void)close(hold[1]);
                contend(start[0], result[1], hold[0]);
            }
        }
        (void)!write(start[1], bytes, contenders);
        for (int i = 0; i < contenders; i++) {
            char byte = 0;

            REQUIRE(read(result[0], &byte, 1) == 1);
            owners += byte == 'y' ? 1 : 0;
        }
        EXPECT_EQ(owners, 1);
        (void)close(hold[1]);
        for (int i = 0; i < contenders; i++) {
            waitpid(pids[i], NULL, 0);
        }
        (void)close(hold[0]);
        (void)close(start[0]);
        (void)close(start[1]);
        (void)close(result[0]);
        (void)close(result[1]);
    }
}
