/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The harness's own tests: it sees what it should see. Failures are provoked in a second run of this same binary, since a test that
 * fails on purpose cannot pass.
 */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The subjects of the tests below: they do something only when the environment asks for it. */
static bool is_provoked(void)
{
    return getenv("TEST_PROVOKE") != NULL;
}

TEST(provoked_failed_expectation, "")
{
    EXPECT(!is_provoked());
}

TEST(provoked_open_descriptor, "")
{
    if (is_provoked())
        EXPECT(open("/dev/null", O_RDONLY) >= 0);
}

TEST_LIMIT(provoked_endless_test, "", 5)
{
    while (is_provoked())
        pause();
}

TEST(provoked_signal, "")
{
    if (is_provoked())
        raise(SIGTERM);
}

TEST(provoked_failure_in_a_forked_child, "")
{
    if (fork() == 0) {
        EXPECT_EQ(is_provoked(), false);
        _exit(0);
    }
    wait(NULL);
}

TEST(provoked_survivor, "")
{
    EXPECT_STOPS("gone", {
        fputs("gone\n", stderr);
        if (!is_provoked())
            abort();
    });
}

/* Runs this binary again on one of the tests above and returns what it printed. */
static char *output_of(const char *name, int *ret_status)
{
    char self[4096], command[8192];
    static char text[65536];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    REQUIRE(size > 0);
    self[size] = 0;
    snprintf(command, sizeof command, "TEST_PROVOKE=1 '%s' --time-factor 0.2 --filter provoked_%s 2>&1", self, name);
    FILE *pipe = popen(command, "r");
    REQUIRE(pipe != NULL);
    text[fread(text, 1, sizeof text - 1, pipe)] = 0;
    *ret_status = pclose(pipe);
    return text;
}

static void expect_seen(const char *name, const char *fragment)
{
    int status;
    const char *text = output_of(name, &status);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    EXPECT(strstr(text, "not ok 1 - provoked_"));
    EXPECT(strstr(text, "\n0 passed, 1 failed, 0 skipped\n"));
    if (!strstr(text, fragment))
        test_failed(__FILE__, __LINE__, "no \"%s\" in:\n%s", fragment, text);
}

TEST(harness_sees_a_failed_expectation, "")
{
    expect_seen("failed_expectation", "!is_provoked()");
}

TEST(harness_sees_a_descriptor_left_open, "")
{
    expect_seen("open_descriptor", "is left open: /dev/null");
}

TEST(harness_stops_a_test_at_its_limit, "")
{
    expect_seen("endless_test", "time limit of 1 s");
}

TEST(harness_sees_a_signal, "")
{
    expect_seen("signal", "ended by signal 15");
}

TEST(harness_counts_failures_of_forked_children, "")
{
    expect_seen("failure_in_a_forked_child", "is_provoked() is 1 (0x1), not 0 (0x0)");
}

TEST(harness_sees_that_a_process_did_not_stop, "")
{
    expect_seen("survivor", "should have stopped with \"gone\" but ended with status");
}

static void *add_events(void *trace)
{
    for (int i = 0; i < 100; i++)
        trace_add(trace, "e");
    return NULL;
}

TEST(traces_take_events_from_any_thread, "")
{
    static struct trace trace;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(pthread_create(&threads[i], NULL, add_events, &trace), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    EXPECT_EQ(trace.length, 4 * 100 * 2 - 1);
    trace_clear(&trace);
    EXPECT_TRACE(&trace, "");
    trace_add(&trace, "E");
    trace_addf(&trace, "T%d", 1);
    EXPECT_TRACE(&trace, "E T1");
}
