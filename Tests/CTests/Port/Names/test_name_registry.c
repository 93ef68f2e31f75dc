/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of names and what can be wrong with it: H16 to H21, M2, M4, M5, M16, and crashes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Names/port_directory.h"
#include "Port/port_probe.h"
#include "Port/Names/name_registry.h"

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

/* In a child, as the harness's test process: where its folder was. */
static void end_in_the_middle_of_a_test(int answer)
{
    port_probe_begin(false);
    (void)!write(answer, port_probe_directory(), strlen(port_probe_directory()));
    EXPECT(can_register());
    if (fork() == 0) {
        exit(0); /* it is not this one's */
    }
    (void)wait(NULL);
    exit(access(port_probe_names(), F_OK) == 0 ? 0 : 1); /* as SKIP does, and REQUIRE */
}

TEST(a_test_that_ends_early_leaves_no_folder, "")
{
    char path[128] = "";
    int answer[2];
    int status = 1;

    REQUIRE(pipe(answer) == 0);
    if (fork() == 0) {
        end_in_the_middle_of_a_test(answer[1]);
    }
    (void)wait(&status);
    EXPECT_EQ(status, 0);
    REQUIRE(read(answer[0], path, sizeof path - 1) > 0);
    EXPECT(access(path, F_OK) < 0 && errno == ENOENT);
    (void)close(answer[0]);
    (void)close(answer[1]);
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
    if (geteuid() == 0) { /* another user's directory, as after `sudo -E` */
        (void)snprintf(path, sizeof path, "%s/foreign", port_probe_directory());
        (void)mkdir(path, 0700);
        REQUIRE(chown(path, 65534, 65534) == 0);
        (void)setenv("XDG_RUNTIME_DIR", path, 1);
        EXPECT(can_register());
        (void)snprintf(path, sizeof path, "%s/foreign/corerunloop.v1", port_probe_directory());
        EXPECT(stat(path, &status) != 0);
    }
    (void)snprintf(path, sizeof path, "%s/corerunloop-%u/corerunloop.v1", shared, (unsigned)geteuid());
    EXPECT(stat(path, &status) == 0 && (status.st_mode & 0777) == 0700);
    (void)chmod(shared, 0777); /* not sticky: anybody could replace what is in it */
    EXPECT(!can_register());
}

static int64_t ahead_ns;

static int64_t later(void)
{
    return kernel_linux.monotonic_ns() + ahead_ns;
}

/* What a try to register writes to the log, which takes one line a second. */
static void log_of_registering(char *ret_text, size_t size)
{
    int saved = dup(STDERR_FILENO);
    int ends[2];
    ssize_t length;

    REQUIRE(pipe(ends) == 0);
    ahead_ns += 2000000000;
    kernel.monotonic_ns = later;
    (void)dup2(ends[1], STDERR_FILENO);
    (void)can_register();
    (void)dup2(saved, STDERR_FILENO);
    (void)close(saved);
    (void)close(ends[1]);
    length = read(ends[0], ret_text, size - 1);
    ret_text[length > 0 ? length : 0] = '\0';
    (void)close(ends[0]);
}

PORT_TEST(a_setting_names_the_directory_and_no_other_is_tried, "911 M16")
{
    char path[128];
    char text[600];
    struct stat status;

    (void)snprintf(path, sizeof path, "%s/set", port_probe_directory());
    (void)mkdir(path, 0700);
    (void)setenv("CORERUNLOOP_PORTS", path, 1);
    EXPECT(can_register());
    (void)snprintf(path, sizeof path, "%s/set/corerunloop.v1", port_probe_directory());
    EXPECT(stat(path, &status) == 0);
    (void)setenv("CORERUNLOOP_PORTS", "relative", 1);
    log_of_registering(text, sizeof text);
    EXPECT(strstr(text, "the directory relative cannot be used: CORERUNLOOP_PORTS is no absolute path"));
    (void)setenv("CORERUNLOOP_PORTS", "/does/not/exist", 1);
    log_of_registering(text, sizeof text);
    EXPECT(strstr(text, "the directory /does/not/exist cannot be used"));
    (void)snprintf(path, sizeof path, "%s/set", port_probe_directory());
    (void)chmod(path, 0777);
    (void)setenv("CORERUNLOOP_PORTS", path, 1);
    log_of_registering(text, sizeof text);
    EXPECT(strstr(text, "others have access to it"));
    EXPECT(!can_register());
    (void)setenv("CORERUNLOOP_PORTS", "", 1); /* as if it were not set */
    EXPECT(can_register());
}

PORT_TEST(who_finds_the_last_directory_taken_is_told_what_helps, "210 M16")
{
    char shared[128];
    char path[200];
    char text[600];
    struct stat status;

    (void)snprintf(path, sizeof path, "/run/user/%u", (unsigned)geteuid());
    if (stat(path, &status) == 0 || geteuid() != 0) {
        SKIP("only root may give a directory to another user, and must have none in /run/user");
    }
    (void)snprintf(shared, sizeof shared, "%s/shared", port_probe_directory());
    (void)mkdir(shared, 0700);
    (void)chmod(shared, 01777);
    (void)setenv("TMPDIR", shared, 1);
    (void)unsetenv("XDG_RUNTIME_DIR");
    (void)snprintf(path, sizeof path, "%s/corerunloop-%u", shared, (unsigned)geteuid());
    (void)mkdir(path, 0700);
    REQUIRE(chown(path, 65534, 65534) == 0);
    log_of_registering(text, sizeof text);
    EXPECT(strstr(text, "it belongs to another user. There is no XDG_RUNTIME_DIR: name a directory of this user's by that, or by "
                        "CORERUNLOOP_PORTS"));
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

/* Locks of other users', and ones that nobody may open. */
PORT_TEST(locks_that_are_not_this_users_are_swept, "195 H17")
{
    char path[256];

    if (geteuid() != 0) {
        SKIP("needs root, to give files away");
    }
    EXPECT(can_register());
    (void)snprintf(path, sizeof path, "%s/a%%20port.lock", port_probe_names());
    plant("a%20port.lock", 0);
    REQUIRE(chown(path, 65534, 65534) == 0);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
    EXPECT(can_register());
    plant("a%20port.lock", 0);
    REQUIRE(chmod(path, 0) == 0);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
    EXPECT(can_register());
    EXPECT_EQ(port_probe_count_files(), 0);
}

static int meet_a_closed_lock(void)
{
    char path[256];

    if (chown(port_probe_directory(), 65534, 65534) != 0 || setgid(65534) != 0 || setuid(65534) != 0) {
        return 1;
    }
    EXPECT(can_register());
    (void)snprintf(path, sizeof path, "%s/a%%20port.lock", port_probe_names());
    plant("a%20port.lock", 0);
    EXPECT_EQ(chmod(path, 0), 0);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
    EXPECT(!can_register());
    EXPECT_EQ(chmod(path, 0600), 0);
    EXPECT(can_register());
    return 0;
}

PORT_TEST(a_lock_that_may_not_be_opened_gives_no_port, "195 H17")
{
    int status = 1;
    pid_t pid;

    if (geteuid() != 0) {
        SKIP("needs root, to become a user whom permissions bind");
    }
    pid = fork();
    if (pid == 0) {
        _exit(meet_a_closed_lock());
    }
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
}

static void squat(int ready)
{
    char path[256];
    int lock;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(path, sizeof path, "%s/a%%20port.lock", port_probe_names());
    lock = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    (void)!write(ready, flock(lock, LOCK_EX | LOCK_NB) == 0 ? "r" : "f", 1);
    for (;;) {
        (void)pause();
    }
}

PORT_TEST(a_name_that_is_locked_without_a_port_cannot_be_had, "193 H18")
{
    int ready[2];
    char byte = 0;
    double took = 1;
    pid_t pid;

    EXPECT(can_register());
    REQUIRE(pipe(ready) == 0);
    pid = fork();
    if (pid == 0) {
        squat(ready[1]);
    }
    REQUIRE(read(ready[0], &byte, 1) == 1 && byte == 'r');
    for (int attempt = 0; attempt < 4 && took >= 0.05; attempt++) { /* a machine that does other things too may be late */
        double begun = port_probe_own_time();

        EXPECT(!can_register());
        took = port_probe_own_time() - begun;
    }
    EXPECT(took < 0.05 || test_is_instrumented());
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
    port_process_kill(pid);
    EXPECT(can_register());
    (void)close(ready[0]);
    (void)close(ready[1]);
}

PORT_TEST(a_deleted_directory_is_made_again, "H20")
{
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, MODE);
    CFMessagePortRef early = port_connect(NAME);
    CFMessagePortRef remote, other;

    remove_names();
    EXPECT_EQ(port_ask(early, 1, NULL, NULL), kCFMessagePortSuccess); /* who is connected stays connected */
    other = local(CFSTR("other")); /* and the next use of the directory registers again */
    EXPECT(other != NULL);
    EXPECT(CFMessagePortIsValid(port));
    remote = port_connect(NAME);
    EXPECT(remote != early && !CFMessagePortIsValid(early));
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(early);
    CFRelease(remote);
    port_drop(other);
    port_drop(port);
    EXPECT_EQ(port_probe_count_files(), 0);
}

PORT_TEST(a_directory_that_is_replaced_is_left_for_the_new_one, "210 H16 H20")
{
    CFMessagePortRef port = port_open(NAME, port_echo, NULL, MODE);
    CFMessagePortRef remote;
    char aside[256];

    (void)snprintf(aside, sizeof aside, "%s/aside", port_probe_directory());
    REQUIRE(rename(port_probe_names(), aside) == 0);
    REQUIRE(mkdir(port_probe_names(), 0700) == 0);
    remote = port_connect(NAME); /* this process has noticed, and registered again */
    EXPECT_EQ(port_probe_count_files(), 2);
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    /* One that others may write into is not taken for the old one. */
    REQUIRE(rename(aside, port_probe_names()) != 0 && errno == ENOTEMPTY);
    remove_names();
    REQUIRE(mkdir(port_probe_names(), 0700) == 0 && chmod(port_probe_names(), 0777) == 0);
    EXPECT_EQ(local(CFSTR("other")), NULL);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, CFSTR("other")), NULL);
    REQUIRE(chmod(port_probe_names(), 0700) == 0);
    remote = port_connect(NAME);
    EXPECT_EQ(port_ask(remote, 2, NULL, NULL), kCFMessagePortSuccess);
    CFRelease(remote);
    port_drop(port);
}

static bool is_found(CFStringRef name)
{
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, name);
    bool found = remote && port_ask(remote, 1, NULL, NULL) == kCFMessagePortSuccess;

    if (remote) {
        CFMessagePortInvalidate(remote);
        CFRelease(remote);
    }
    return found;
}

/* As a cleaner of temporary files does it, which leaves the directory. */
PORT_TEST(who_lost_a_name_leaves_the_next_owners_lock, "195 H20")
{
    CFMessagePortRef first = local(NAME);
    char path[256];
    pid_t second;

    (void)snprintf(path, sizeof path, "%s/a%%20port.lock", port_probe_names());
    REQUIRE(unlink(path) == 0);
    (void)snprintf(path, sizeof path, "%s/a%%20port.sock", port_probe_names());
    REQUIRE(unlink(path) == 0);
    second = port_process_start(NAME, port_echo, NULL, NULL);
    port_drop(first);
    EXPECT(!can_register()); /* the second has it still */
    EXPECT(is_found(NAME));
    port_process_kill(second);
    EXPECT(can_register());
}

static int directory_open_without_descriptors(int directory, const char *path)
{
    return strcmp(path, port_probe_directory()) == 0 ? -EMFILE : kernel_ports_linux.directory_open(directory, path);
}

/* What passes must not send a process to another place than its peers'. */
PORT_TEST(without_descriptors_no_other_directory_is_taken, "210 M16 M23")
{
    kernel_ports.directory_open = directory_open_without_descriptors;
    EXPECT(!can_register());
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
    kernel_ports = kernel_ports_linux;
    EXPECT(can_register());
}

static bool status_has_failed;

static int file_status_that_fails_once(int descriptor, struct stat *ret_status)
{
    bool fails = !status_has_failed;

    status_has_failed = true;
    return fails ? -ENOMEM : kernel_ports_linux.file_status(descriptor, ret_status);
}

PORT_TEST(a_directory_that_cannot_be_asked_about_sends_nobody_elsewhere, "210 M16")
{
    kernel_ports.file_status = file_status_that_fails_once;
    EXPECT(!can_register());
    kernel_ports.file_status = kernel_ports_linux.file_status;
    EXPECT(can_register());
}

PORT_TEST(a_name_that_another_took_meanwhile_comes_back_when_it_is_free, "H20 195")
{
    CFStringRef const names[] = {CFSTR("one"), CFSTR("two")};

    for (int taken = 0; taken < 2; taken++) {
        CFMessagePortRef one = port_open(names[0], port_echo, NULL, MODE);
        CFMessagePortRef two = port_open(names[1], port_echo, NULL, MODE);
        pid_t other;

        remove_names();
        other = port_process_start(names[taken], port_echo, NULL, NULL);
        EXPECT(can_register()); /* the other name is there again, whichever comes first */
        EXPECT_EQ(port_probe_count_files(), 4);
        EXPECT(is_found(names[1 - taken]));
        port_process_kill(other);
        EXPECT(can_register());
        EXPECT(is_found(names[taken]));
        EXPECT(CFMessagePortIsValid(one) && CFMessagePortIsValid(two));
        port_drop(one);
        port_drop(two);
        EXPECT_EQ(port_probe_count_files(), 0);
    }
}

static int refuse_lock(int directory, const char *leaf)
{
    (void)directory;
    (void)leaf;
    return -ENOSPC;
}

static int refuse_contents(int descriptor, const void *bytes, size_t size)
{
    (void)descriptor;
    (void)bytes;
    (void)size;
    return -ENOSPC;
}

PORT_TEST(a_disk_without_room_for_a_lock_gives_no_port, "H21")
{
    EXPECT(can_register());
    kernel_ports.file_lock = refuse_lock;
    EXPECT(!can_register());
    kernel_ports = kernel_ports_linux;
    kernel_ports.file_replace = refuse_contents;
    EXPECT(!can_register());
    kernel_ports = kernel_ports_linux;
    EXPECT_EQ(port_probe_count_files(), 0);
    EXPECT(can_register());
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

PORT_TEST(stress_a_process_killed_at_any_moment_blocks_no_name, "195 H19 M2")
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

PORT_TEST(stress_of_eight_contenders_one_gets_the_name, "193 195 M4")
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

/* ---- the list that tools show ---- */

static void note_entry(void *info, const struct name_registry_entry *entry)
{
    trace_addf(info, "%s:%s%s", entry->card.name.bytes, entry->is_alive ? "alive" : "dead", entry->age_s > 100 ? ":old" : "");
}

static void note_limit(void *info, const struct name_registry_entry *entry)
{
    trace_addf(info, "%s:%u", entry->card.name.bytes, (unsigned)entry->card.queue_limit);
}

static void plant_text(const char *leaf, const char *text)
{
    char path[512];
    int file;

    (void)snprintf(path, sizeof path, "%s/%s", port_probe_names(), leaf);
    file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    (void)!write(file, text, strlen(text));
    (void)close(file);
}

PORT_TEST(the_list_of_names_leaves_out_what_is_no_card, "195 H17")
{
    static const char *const no_cards[] = {
        "",
        "no line end",
        "words instead of numbers\nname\n",
        "1 5 100 400\nshorter than it says\n",
        "1 5 100 0\n\n",
        "1 5 100 2\n\xFF\xFF\n",
    };
    struct trace trace = {0};
    char path[PATH_MAX];
    char long_leaf[240];
    CFMessagePortRef port = local(NAME);
    CFMessagePortRef other;

    EXPECT(port != NULL);
    EXPECT_EQ(name_registry_list(note_entry, &trace), 0);
    EXPECT_TRACE(&trace, "a port:alive");
    for (size_t i = 0; i < sizeof no_cards / sizeof no_cards[0]; i++) {
        plant_text("x.lock", no_cards[i]);
        plant_text("x.sock", "");
        trace_clear(&trace);
        EXPECT_EQ(name_registry_list(note_entry, &trace), 0);
        EXPECT_TRACE(&trace, "a port:alive");
    }
    memset(long_leaf, 'l', sizeof long_leaf - 1);
    long_leaf[sizeof long_leaf - 1] = '\0';
    plant_text(long_leaf, "");
    plant_text(".a", "");
    other = local(CFSTR("other")); /* sweeps, and leaves those alone */
    EXPECT(other != NULL);
    port_drop(other);
    plant_text("x.lock", "1 0 100 1\nx\n"); /* nor is a limit of none one */
    plant_text("x.sock", "");
    trace_clear(&trace);
    EXPECT_EQ(name_registry_list(note_entry, &trace), 0);
    EXPECT(strstr(trace.text, "x:dead") != NULL);
    (void)snprintf(path, sizeof path, "%s/x.sock", port_probe_names());
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/folder.lock", port_probe_names());
    (void)mkdir(path, 0700);
    trace_clear(&trace);
    EXPECT_EQ(name_registry_list(note_entry, &trace), 0);
    EXPECT_TRACE(&trace, "a port:alive"); /* a card without a socket is of one who is still starting */
    EXPECT_STR(name_registry_path(path, sizeof path), port_probe_names());
    port_drop(port);
    remove_names();
}

static int64_t wall_of_tomorrow(void)
{
    return kernel_linux.wall_ns() + INT64_C(86400) * 1000000000;
}

PORT_TEST(a_card_with_a_limit_that_no_queue_may_have_counts_as_one_with_the_default, "195 H17")
{
    static const char *const cards[] = {"1 70000 100 1\nx\n", "1 0 100 1\nx\n"};
    CFMessagePortRef port = local(NAME); /* makes the directory */

    for (size_t i = 0; i < sizeof cards / sizeof cards[0]; i++) {
        struct trace trace = {0};

        plant_text("x.lock", cards[i]);
        plant_text("x.sock", "");
        EXPECT_EQ(name_registry_list(note_limit, &trace), 0);
        EXPECT(strstr(trace.text, "x:5") != NULL);
    }
    port_drop(port);
    remove_names();
}

PORT_TEST(the_list_of_names_knows_their_age, "195")
{
    struct trace trace = {0};
    char path[PATH_MAX];
    CFMessagePortRef port = local(NAME);

    kernel.wall_ns = wall_of_tomorrow;
    EXPECT_EQ(name_registry_list(note_entry, &trace), 0);
    EXPECT_TRACE(&trace, "a port:alive:old");
    port_drop(port);
    remove_names();
    (void)close(open(port_probe_names(), O_CREAT | O_WRONLY, 0600)); /* no directory that can be used */
    EXPECT_EQ(name_registry_list(note_entry, &trace), -ENOENT);
    EXPECT_EQ(name_registry_path(path, sizeof path), NULL);
    (void)unlink(port_probe_names());
}

PORT_TEST(a_card_of_another_name_and_a_file_that_is_no_socket_are_no_port, "195 H17")
{
    CFMessagePortRef port = local(NAME);

    plant_text("odd.lock", "1 5 100 5\nother\n");
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, CFSTR("odd")), NULL);
    plant_text("odd.lock", "1 5 100 3\nodd\n");
    plant_text("odd.sock", "");
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, CFSTR("odd")), NULL);
    port_drop(port);
    remove_names();
}

static int interruptions;

static int lock_after_interruptions(int directory, const char *leaf)
{
    return interruptions-- > 0 ? -EINTR : kernel_ports_linux.file_lock(directory, leaf);
}

static mode_t pretended_type;
static uid_t pretended_owner;

/* A lock that was opened, and is something else by the time that it is looked at. */
static int pretend_status(int descriptor, struct stat *ret_status)
{
    int result = kernel_ports_linux.file_status(descriptor, ret_status);

    if (result == 0 && S_ISREG(ret_status->st_mode)) {
        ret_status->st_mode = pretended_type | 0600;
        ret_status->st_uid = pretended_owner;
    }
    return result;
}

static atomic_bool is_looked_up;

static void *change_limits(void *info)
{
    for (CFIndex i = 0; !atomic_load(&is_looked_up); i++) {
        CRLMessagePortSetQueueLimit(info, 1 + i % 20);
    }
    return NULL;
}

PORT_TEST(a_port_whose_limits_change_is_found_all_the_time, "196 226")
{
    enum { lookups = 3000 };
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, NULL);
    pthread_t thread;

    REQUIRE(pthread_create(&thread, NULL, change_limits, port) == 0);
    for (int i = 0; i < lookups; i++) {
        CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, NAME);

        REQUIRE(remote != NULL);
        CFRelease(remote);
    }
    atomic_store(&is_looked_up, true);
    (void)pthread_join(thread, NULL);
    port_drop(port);
}

PORT_TEST(only_a_regular_file_of_this_users_is_a_lock, "195 210 H17")
{
    pretended_owner = geteuid();
    pretended_type = S_IFIFO;
    kernel_ports.file_status = pretend_status;
    EXPECT(!can_register());
    pretended_type = S_IFREG;
    pretended_owner++;
    EXPECT(!can_register());
    kernel_ports.file_status = kernel_ports_linux.file_status;
    interruptions = 2;
    kernel_ports.file_lock = lock_after_interruptions;
    EXPECT(can_register());
    kernel_ports.file_lock = kernel_ports_linux.file_lock;
}

static int connect_without_proc(int socket, const char *path)
{
    return strncmp(path, "/proc/", 6) == 0 ? -ENOENT : kernel_ports_linux.datagram_connect(socket, path);
}

PORT_TEST(without_proc_a_receiver_is_not_taken_for_dead, "M22")
{
    CFMessagePortRef port = local(NAME);
    CFMessagePortRef remote = port_connect(NAME);
    CFMessagePortRef again;

    kernel_ports.datagram_connect = connect_without_proc;
    again = port_connect(NAME); /* asks whether the owner is still there */
    EXPECT_EQ(again, remote);
    EXPECT(CFMessagePortIsValid(remote));
    kernel_ports.datagram_connect = kernel_ports_linux.datagram_connect;
    CFRelease(again);
    CFRelease(remote);
    port_drop(port);
}

/* ---- many names ---- */

enum { many = 100, few_each = 20 };

static int connects;
static int looks;

static int count_connect(int socket, const char *path)
{
    connects++;
    return kernel_ports_linux.datagram_connect(socket, path);
}

static int count_look(int directory, const char *leaf, struct stat *ret_status)
{
    looks++;
    return kernel_ports_linux.path_status(directory, leaf, ret_status);
}

static CFStringRef numbered_name(const char *kind, int number)
{
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("%s %d"), kind, number);
}

static CFMessagePortRef numbered(const char *kind, int number)
{
    CFStringRef name = numbered_name(kind, number);
    CFMessagePortRef port = local(name);

    REQUIRE(port != NULL);
    CFRelease(name);
    return port;
}

static void open_many(CFMessagePortRef ports[many])
{
    for (int i = 0; i < many; i++) {
        ports[i] = numbered("living", i);
    }
}

static void drop_many(CFMessagePortRef ports[many])
{
    for (int i = 0; i < many; i++) {
        port_drop(ports[i]);
    }
}

PORT_TEST(a_name_among_many_costs_as_much_as_one_among_few, "189")
{
    CFMessagePortRef ports[many];

    kernel_ports.datagram_connect = count_connect;
    kernel_ports.path_status = count_look;
    open_many(ports);
    EXPECT(connects <= many * few_each);
    EXPECT(looks <= many * few_each);
    drop_many(ports);
}

PORT_TEST(what_the_dead_leave_among_many_is_swept_soon, "195 H19")
{
    CFMessagePortRef ports[many];

    open_many(ports);
    port_process_kill(port_process_start_idle(CFSTR("dead")));
    EXPECT(port_probe_count_files() >= 2 * many);
    for (int i = 0; i < many / 4; i++) {
        port_drop(numbered("passing", i));
    }
    EXPECT_EQ(port_probe_count_files(), 2 * many);
    port_process_kill(port_process_start_idle(CFSTR("dead")));
    port_drop(local(CFSTR("dead"))); /* its name itself is free at once */
    drop_many(ports);
    EXPECT_EQ(port_probe_count_files(), 0);
}

/* What a process leaves that was killed while it registered a name. */
static void leave_lock(int number)
{
    char path[256];

    (void)snprintf(path, sizeof path, "%s/dead%d.lock", port_probe_names(), number);
    (void)close(open(path, O_CREAT | O_WRONLY, 0600));
}

PORT_TEST(what_very_many_dead_leave_is_swept_in_portions, "195 H19")
{
    enum { dead = 1000, portion = 256 };
    CFMessagePortRef port = local(CFSTR("living"));

    for (int i = 0; i < dead; i++) {
        leave_lock(i);
    }
    for (int left = dead; left > 0; left -= portion) {
        EXPECT_EQ(port_probe_count_files(), left + 2);
        port_drop(local(CFSTR("next")));
    }
    EXPECT_EQ(port_probe_count_files(), 2);
    port_drop(port);
}

static void expect_connected(const char *kind, int number)
{
    CFStringRef name = numbered_name(kind, number);
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, name);

    EXPECT(remote != NULL);
    if (remote) {
        CFRelease(remote);
    }
    CFRelease(name);
}

PORT_TEST(of_many_that_lost_their_files_the_one_that_is_asked_for_is_registered_again, "H20")
{
    CFMessagePortRef ports[many];
    char path[256];

    open_many(ports);
    (void)snprintf(path, sizeof path, "%s/living%%20%d.sock", port_probe_names(), many / 2);
    REQUIRE(unlink(path) == 0);
    expect_connected("living", many / 2);
    remove_names();
    expect_connected("living", many - 1); /* with the directory all are gone, and all come back */
    EXPECT_EQ(port_probe_count_files(), 2 * many);
    drop_many(ports);
}

PORT_TEST(a_count_of_the_sweeper_that_is_none_keeps_nobody_from_sweeping, "H19")
{
    static const char *const odd[] = {"", "999999999\n", "4097\n", "-1\n", "x", "99999999999999999999"};
    char path[256];

    port_drop(numbered("living", 0));
    (void)snprintf(path, sizeof path, "%s/.sweep", port_probe_names());
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        FILE *sweeper;

        port_process_kill(port_process_start_idle(CFSTR("dead")));
        sweeper = fopen(path, "w");
        REQUIRE(sweeper != NULL);
        (void)fputs(odd[i], sweeper);
        (void)fclose(sweeper);
        port_drop(numbered("living", 0));
        EXPECT_EQ(port_probe_count_files(), 0);
    }
}
