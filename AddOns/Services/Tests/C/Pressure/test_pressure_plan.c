/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of the environment, and of the kernel's texts: nothing that is said there is trusted. */
#include <errno.h>
#include <string.h>

#include "Pressure/pressure_plan.h"
#include "harness.h"

static struct pressure_plan plan;

TEST(the_managers_path_and_bytes_are_what_is_used, "2222")
{
    EXPECT_EQ(pressure_plan_make(&plan, "/run/pressure", "aGVsbG8=", "0::/app\n"), 0);
    EXPECT(plan.is_given);
    EXPECT_STR(plan.paths[0], "/run/pressure");
    EXPECT_STR(plan.paths[1], "");
    EXPECT_EQ(plan.size, 5);
    EXPECT(memcmp(plan.request, "hello", 5) == 0);
    EXPECT_STR(plan.events, "/sys/fs/cgroup/app/memory.events");
    EXPECT_EQ(pressure_plan_make(&plan, "/run/pressure", NULL, ""), 0);
    EXPECT_EQ(plan.size, 0);
    EXPECT_STR(plan.events, "");
}

TEST(base64_is_read_whole_or_refused, "2222")
{
    static const char *const wrong[] = {"aGVsbG8", "aGVsb!8=", "a===", "====", "aG=sbG8=", " aGVsbG8", "aGVs\nbG8"};
    char longest[pressure_request_size / 3 * 4 + 5];

    EXPECT_EQ(pressure_plan_make(&plan, "/a", "AP+/", ""), 0);
    EXPECT_EQ(plan.size, 3);
    EXPECT(memcmp(plan.request, "\x00\xff\xbf", 3) == 0);
    EXPECT_EQ(pressure_plan_make(&plan, "/a", "YQ==", ""), 0);
    EXPECT_EQ(plan.size, 1);
    EXPECT_EQ(pressure_plan_make(&plan, "/a", "", ""), 0);
    EXPECT_EQ(plan.size, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        EXPECT_EQ(pressure_plan_make(&plan, "/a", wrong[i], ""), -EBADMSG);
    }
    memset(longest, 'A', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    EXPECT_EQ(pressure_plan_make(&plan, "/a", longest, ""), -EBADMSG);
    longest[sizeof longest - 5] = '\0';
    EXPECT_EQ(pressure_plan_make(&plan, "/a", longest, ""), 0);
    EXPECT_EQ(plan.size, pressure_request_size);
}

TEST(a_managers_path_that_is_none_is_refused, "2222")
{
    static char longest[PATH_MAX + 1];

    EXPECT_EQ(pressure_plan_make(&plan, "/dev/null", NULL, ""), -EHOSTDOWN);
    EXPECT_EQ(pressure_plan_make(&plan, "run/pressure", NULL, ""), -EBADMSG);
    memset(longest, '/', sizeof longest - 1);
    EXPECT_EQ(pressure_plan_make(&plan, longest, NULL, ""), -EBADMSG);
    longest[PATH_MAX - 1] = '\0';
    EXPECT_EQ(pressure_plan_make(&plan, longest, NULL, ""), 0);
}

TEST(without_a_manager_the_own_group_comes_before_the_system, "2223")
{
    EXPECT_EQ(pressure_plan_make(&plan, NULL, "!", "3:memory:/old\n0::/user.slice/app\n"), 0);
    EXPECT(!plan.is_given);
    EXPECT_STR(plan.paths[0], "/sys/fs/cgroup/user.slice/app/memory.pressure");
    EXPECT_STR(plan.paths[1], "/proc/pressure/memory");
    EXPECT_STR((const char *)plan.request, "some 200000 2000000");
    EXPECT_EQ(plan.size, sizeof "some 200000 2000000");
    EXPECT_EQ(pressure_plan_make(&plan, "", NULL, "0::/"), 0);
    EXPECT_STR(plan.paths[0], "/sys/fs/cgroup//memory.pressure");
}

TEST(a_group_that_cannot_be_found_is_left_out, "2223")
{
    static const char *const texts[] = {"", "\n", "3:memory:/old", "0::", "0::/..\n", "0::/../../app\n", "10::/app\n"};
    static char longest[2 * PATH_MAX];

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        EXPECT_EQ(pressure_plan_make(&plan, NULL, NULL, texts[i]), 0);
        EXPECT_STR(plan.paths[0], "");
        EXPECT_STR(plan.events, "");
    }
    memset(longest, 'a', sizeof longest - 1);
    memcpy(longest, "0::/", 4);
    EXPECT_EQ(pressure_plan_make(&plan, NULL, NULL, longest), 0);
    EXPECT_STR(plan.events, "");
    longest[PATH_MAX - 1] = '\0'; /* there is room for the group, but not for the names around it */
    EXPECT_EQ(pressure_plan_make(&plan, NULL, NULL, longest), 0);
    EXPECT_STR(plan.paths[0], "");
    EXPECT_STR(plan.events, "");
}

TEST(the_counters_of_limits_are_added, "2224")
{
    EXPECT_EQ(pressure_events_sum(""), 0);
    EXPECT_EQ(pressure_events_sum("low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\nsock_throttled 7\n"), 14);
    EXPECT_EQ(pressure_events_sum("high\nhigh x\nmaximum 3\nmax 18446744073709551615"), 18446744073709551615ull);
}
