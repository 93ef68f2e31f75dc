/* SPDX-License-Identifier: Apache-2.0 */
/* What a child is started with, what it does not inherit, and what is refused. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Child/child_exec.h"
#include "Child/child_kernel.h"
#include "Stream/stream_recorder.h"
#include "child_probe.h"

TEST(a_child_s_output_status_and_use_are_told, "")
{
    static const CRLChildDescriptor descriptors[] = {{1, kCRLChildWrites, 0}, {2, kCRLChildWrites, 0}};
    struct child_probe probe = {.specification = {.descriptors = descriptors, .descriptorCount = 2}};
    char text[64];

    probe_start_script(&probe, "echo out; echo problem >&2; exit 7");
    EXPECT(CRLChildGetProcessIdentifier(probe.child) > 0);
    EXPECT_STR(probe_read(&probe, 1, text, sizeof text), "out\n");
    EXPECT_STR(probe_read(&probe, 2, text, sizeof text), "problem\n");
    probe_run_to_end(&probe);
    EXPECT(WIFEXITED(probe.end.waitStatus) && WEXITSTATUS(probe.end.waitStatus) == 7);
    EXPECT(probe.end.usage.ru_maxrss > 0);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true), kCFRunLoopRunFinished);
    probe_give_up(&probe);
    EXPECT_EQ(probe.releases, 1);
    EXPECT_NO_CHILD();
}

TEST(a_child_has_the_arguments_environment_and_folder_that_were_given, "")
{
    static const CRLChildDescriptor descriptors[] = {{1, kCRLChildWrites, 0}};
    static const char *const environment[] = {"ONE=1", "EMPTY=", NULL};
    static const char *const print[] = {"env", NULL};
    struct child_probe probe = {.specification = {.descriptors = descriptors, .descriptorCount = 1}};
    char text[4096];

    probe.specification.file = "printf";
    probe.specification.arguments = (const char *const[]){"named", "[%s]", "", "a b", "$HOME\n", "\xff\xfe", NULL};
    REQUIRE(probe_start(&probe));
    EXPECT_STR(probe_read(&probe, 1, text, sizeof text), "[][a b][$HOME\n][\xff\xfe]");
    probe_run_to_end(&probe);
    probe_give_up(&probe);
    probe.specification = (CRLChildSpecification){
        .arguments = print, .environment = environment, .folder = "/usr", .descriptors = descriptors, .descriptorCount = 1};
    REQUIRE(probe_start(&probe));
    EXPECT_STR(probe_read(&probe, 1, text, sizeof text), "ONE=1\nEMPTY=\n");
    probe_run_to_end(&probe);
    probe_give_up(&probe);
    EXPECT_STR(probe_output_of(&probe, "/bin/pwd"), "/usr\n");
}

/* ---- descriptors ---- */

static int kernel_is_old(unsigned first, unsigned last)
{
    (void)first;
    (void)last;
    return -ENOSYS;
}

TEST(a_child_inherits_no_descriptor_that_was_not_asked_for, "")
{
    /* The shell itself has 3 for the list. */
    static const char list[] = "for i in /proc/$$/fd/*; do echo ${i##*/}; done";
    struct child_probe probe = {.specification = {.version = 0}};
    int many[100];

    for (int i = 0; i < 100; i++) {
        REQUIRE((many[i] = open("/dev/null", O_RDWR)) >= 0); /* no O_CLOEXEC */
    }
    EXPECT_EQ(dup2(many[0], 900), 900);
    EXPECT_STR(probe_output_of(&probe, list), "0\n1\n2\n3\n");
    child_kernel.close_on_exec = kernel_is_old;
    EXPECT_STR(probe_output_of(&probe, list), "0\n1\n2\n3\n");
    close(900);
    for (int i = 0; i < 100; i++) {
        close(many[i]);
    }
}

static int file_with(const char *text)
{
    char path[] = "/tmp/crl-child-XXXXXX";
    int file = mkostemp(path, O_CLOEXEC);

    REQUIRE(file >= 0 && unlink(path) == 0);
    EXPECT_EQ(write(file, text, strlen(text)), (ssize_t)strlen(text));
    EXPECT_EQ(lseek(file, 0, SEEK_SET), 0);
    return file;
}

/* The numbers of the two change places, and one stays. */
TEST(descriptors_of_a_child_may_have_each_other_s_numbers, "")
{
    int one = file_with("one");
    int two = file_with("two");
    int last = file_with("last");
    CRLChildDescriptor descriptors[] = {{one, kCRLChildGiven, two}, {two, kCRLChildGiven, one}, {last, kCRLChildGiven, last},
                                        {300, kCRLChildSame, last}, {1, kCRLChildWrites, 0},    {2, kCRLChildSame, 1}};
    struct child_probe probe = {.specification = {.descriptors = descriptors, .descriptorCount = 6}};
    char script[200];

    (void)snprintf(script, sizeof script, "cat /proc/self/fd/%d /proc/self/fd/%d /proc/self/fd/%d /proc/self/fd/300; echo >&2 .", one, two,
                   last);
    EXPECT_STR(probe_output_of(&probe, script), "twoonelastlast.\n");
    close(one);
    close(two);
    close(last);
}

TEST(a_child_finds_its_descriptors_when_the_program_has_no_standard_streams, "")
{
    struct child_probe probe = {.specification = {.version = 0}};
    int error = fcntl(2, F_DUPFD_CLOEXEC, 100);
    const char *output;

    for (int i = 0; i < 3; i++) {
        close(i);
    }
    output = probe_output_of(&probe, "echo fine");
    EXPECT_EQ(fcntl(0, F_GETFD), -1);
    dup2(error, 2);
    close(error);
    REQUIRE(open("/dev/null", O_RDWR) == 0 && dup(0) == 1);
    EXPECT_STR(output, "fine\n");
}

TEST(the_program_may_have_its_end_of_a_pipe_itself, "")
{
    struct child_probe probe = {.specification = {.version = 0}};
    char byte;
    int reader;
    int writer;

    probe_start_shell(&probe, "cat");
    writer = CRLChildTakeDescriptor(probe.child, 0);
    reader = CRLChildTakeDescriptor(probe.child, 1);
    EXPECT(reader >= 0 && writer >= 0);
    EXPECT_EQ(read(reader, &byte, 1) == -1 ? errno : 0, EAGAIN);
    EXPECT_EQ(CRLChildTakeDescriptor(probe.child, 1), -1);
    EXPECT_EQ(CRLChildTakeDescriptor(probe.child, 2), -1);
    EXPECT(!CRLChildCopyReadStream(probe.child, 1) && !CRLChildCopyReadStream(probe.child, 0));
    EXPECT(!CRLChildCopyWriteStream(probe.child, 0) && !CRLChildCopyWriteStream(probe.child, 9));
    close(writer);
    close(reader);
    probe_run_to_end(&probe);
    probe_give_up(&probe);
}

/* ---- signals, groups, limits ---- */

TEST(a_child_has_no_signal_blocked_or_ignored, "")
{
    struct child_probe probe = {.specification = {.version = 0}};
    sigset_t all;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    EXPECT_STR(probe_output_of(&probe, "grep -E 'SigBlk|SigIgn' /proc/self/status"),
               "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    (void)sigemptyset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
}

TEST(a_child_has_the_group_session_and_limits_that_were_asked_for, "")
{
    static const char ids[] = "read pid name state parent group session rest < /proc/$$/stat; echo $((pid - group)) $((pid - session))";
    static const CRLChildLimit limits[] = {{RLIMIT_CPU, {40, 50}}, {RLIMIT_CORE, {0, 0}}};
    struct child_probe probe = {.specification = {.limits = limits, .limitCount = 2}};
    struct child_probe leader = {.specification = {.group = -1}};

    EXPECT_STR(probe_output_of(&probe, "ulimit -t; ulimit -Ht; ulimit -c"), "40\n50\n0\n");
    probe.specification.startsSession = true;
    EXPECT_STR(probe_output_of(&probe, ids), "0 0\n");
    probe_start_shell(&leader, "cat");
    probe.specification.startsSession = false;
    probe.specification.group = CRLChildGetProcessIdentifier(leader.child);
    EXPECT_EQ(atoi(probe_output_of(&probe, "read pid name state parent group rest < /proc/$$/stat; echo $group")),
              CRLChildGetProcessIdentifier(leader.child));
    EXPECT(CRLChildKill(leader.child, SIGKILL, true));
    probe_run_to_end(&leader);
    probe_give_up(&leader);
}

/* ---- refusals ---- */

static void expect_refusal(CRLChildSpecification specification, CRLChildStep step, int error)
{
    static const char *const arguments[] = {"true", NULL};
    struct child_probe probe = {.specification = specification};

    probe.specification.arguments = specification.arguments ? specification.arguments : arguments;
    EXPECT(!probe_start(&probe));
    EXPECT_EQ(probe.error.step, step);
    EXPECT_EQ(probe.error.error, error);
    EXPECT_EQ(probe.releases, 0);
    EXPECT_NO_CHILD();
}

#define REFUSE(_step, _error, ...) expect_refusal((CRLChildSpecification){__VA_ARGS__}, kCRLChildStep##_step, _error)
#define DESCRIPTORS(...)                                      \
    .descriptors = (const CRLChildDescriptor[]){__VA_ARGS__}, \
    .descriptorCount = sizeof(CRLChildDescriptor[]){__VA_ARGS__} / sizeof(CRLChildDescriptor)

TEST(what_a_child_cannot_have_is_an_error_with_its_step, "")
{
    static const CRLChildLimit unknown = {999, {1, 1}};

    REFUSE(Execute, ENOENT, .file = "/nowhere/at/all");
    REFUSE(Execute, ENOENT, .file = "crl-no-such-program");
    REFUSE(Execute, ENOENT, .file = "");
    REFUSE(Execute, EACCES, .file = "/");
    REFUSE(Execute, EACCES, .file = "/etc/passwd");
    REFUSE(Folder, ENOENT, .folder = "/nowhere");
    REFUSE(Folder, ENOTDIR, .folder = "/etc/passwd");
    REFUSE(Descriptors, EBADF, DESCRIPTORS({0, kCRLChildGiven, 799}));
    REFUSE(Descriptors, EBADF, DESCRIPTORS({INT_MAX, kCRLChildNothing, 0}));
    REFUSE(Limits, EINVAL, .limits = &unknown, .limitCount = 1);
    REFUSE(Group, EPERM, .group = INT_MAX);
}

/* As under valgrind, whose vfork shares no memory: the child that starts the program is a copy, which ends as the program does. */
static pid_t start_by_fork(struct child_plan *plan)
{
    pid_t copy = fork();
    int status = 0;

    if (copy == 0) {
        pid_t pid = child_exec_start(plan);

        (void)close(plan->report);
        (void)waitpid(pid, &status, 0);
        _exit(WEXITSTATUS(status));
    }
    return copy;
}

TEST(a_child_that_shares_no_memory_reports_through_a_pipe, "")
{
    struct child_probe probe = {.specification = {.version = 0}};

    child_kernel.start = start_by_fork;
    EXPECT_STR(probe_output_of(&probe, "echo here"), "here\n");
    REFUSE(Execute, ENOENT, .file = "/nowhere/at/all");
    REFUSE(Folder, ENOTDIR, .folder = "/etc/passwd");
}

TEST(a_specification_that_makes_no_sense_is_refused, "")
{
    struct child_probe probe = {.specification = {.version = 0}};
    CRLSourceContext context = {.version = 1};

    REFUSE(Specification, EINVAL, .version = 1);
    REFUSE(Specification, EINVAL, .arguments = (const char *const[]){NULL});
    REFUSE(Specification, EINVAL, .group = -2);
    REFUSE(Specification, EINVAL, .group = 2, .startsSession = true);
    REFUSE(Specification, EINVAL, .descriptorCount = 1);
    REFUSE(Specification, EINVAL, .descriptorCount = -1);
    REFUSE(Specification, EINVAL, .limitCount = 1);
    REFUSE(Specification, EINVAL, .limitCount = -1);
    REFUSE(Specification, EINVAL, DESCRIPTORS({-1, kCRLChildNothing, 0}));
    REFUSE(Specification, EINVAL, DESCRIPTORS({3, kCRLChildGiven, -1}));
    REFUSE(Specification, EINVAL, DESCRIPTORS({3, (CRLChildDescriptorKind)5, 0}));
    REFUSE(Specification, EINVAL, DESCRIPTORS({3, kCRLChildNothing, 0}, {3, kCRLChildReads, 0}));
    REFUSE(Specification, EINVAL, DESCRIPTORS({3, kCRLChildSame, 4}));
    REFUSE(Specification, EINVAL, DESCRIPTORS({3, kCRLChildSame, 3}));
    REFUSE(Specification, EINVAL, DESCRIPTORS({1, kCRLChildSame, 2}, {2, kCRLChildSame, 1}));
    EXPECT(!CRLChildCreate(NULL, NULL, NULL, NULL, &probe.error));
    EXPECT_EQ(probe.error.error, EINVAL);
    probe.specification.arguments = (const char *const[]){"true", NULL};
    EXPECT(!CRLChildCreate(NULL, &probe.specification, NULL, &context, NULL));
}

TEST(the_path_is_searched_as_execvp_does_it, "")
{
    static const char *const arguments[] = {"crl-script", NULL};
    char folder[] = "/tmp/crl-path-XXXXXX";
    char path[200];
    struct child_probe probe = {.specification = {.file = "crl-script", .arguments = arguments}};
    int file;

    REQUIRE(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "/nowhere:%s:/usr/bin:", folder);
    REQUIRE(setenv("PATH", path, 1) == 0 && chdir(folder) == 0);
    file = open("crl-script", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    EXPECT_EQ(write(file, "exit 3\n", 7), 7);
    EXPECT(!probe_start(&probe) && probe.error.error == EACCES); /* there, but not to be executed */
    EXPECT_EQ(fchmod(file, 0700), 0);
    EXPECT_EQ(close(file), 0);
    EXPECT(!probe_start(&probe) && probe.error.error == ENOEXEC);
    file = open("crl-script", O_TRUNC | O_WRONLY | O_CLOEXEC);
    EXPECT_EQ(write(file, "#!/bin/sh\nexit 3\n", 17), 17);
    EXPECT_EQ(close(file), 0);
    REQUIRE(setenv("PATH", ":/usr/bin", 1) == 0); /* an empty part is the folder of the child */
    probe.specification.folder = folder;
    REQUIRE(chdir("/") == 0 && probe_start(&probe));
    probe_run_to_end(&probe);
    EXPECT_EQ(WEXITSTATUS(probe.end.waitStatus), 3);
    probe_give_up(&probe);
    REQUIRE(unsetenv("PATH") == 0);
    probe.specification.file = "true";
    REQUIRE(probe_start(&probe));
    probe_run_to_end(&probe);
    probe_give_up(&probe);
    (void)snprintf(path, sizeof path, "%s/crl-script", folder);
    EXPECT(unlink(path) == 0 && rmdir(folder) == 0);
}

TEST(what_is_no_child_stops_the_program, "")
{
    EXPECT_STOPS("CRLChildKill: the child is NULL", { CRLChildKill(NULL, SIGTERM, false); });
    EXPECT_STOPS("CRLChildGetEnd: the child is another object", { CRLChildGetEnd((CRLChildRef)(uintptr_t)kCFRunLoopDefaultMode, NULL); });
}
