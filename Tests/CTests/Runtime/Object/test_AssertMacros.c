/* SPDX-License-Identifier: Apache-2.0 */
/* AssertMacros.h: what leaves, what is evaluated, and how often. */
#include "AssertMacros.h"
#include "harness.h"

static int evaluations;

static int status(int value)
{
    evaluations++;
    return value;
}

/* The way out that Apple's samples write. */
static const char *way_out(int error, int condition)
{
    const char *way = "start";

    require_noerr_action(status(error), done, way = "error");
    require_quiet(condition != 1, done);
    way = "middle";
    nrequire(condition == 2, done);
    way = "end";
done:
    return way;
}

TEST(a_require_leaves_for_its_label, "")
{
    EXPECT_STR(way_out(0, 0), "end");
    EXPECT_STR(way_out(-1, 0), "error");
    EXPECT_STR(way_out(0, 1), "start");
    EXPECT_STR(way_out(0, 2), "middle");
}

TEST(a_requires_error_is_evaluated_once, "")
{
    (void)way_out(-1, 0);
    EXPECT_EQ(evaluations, 1);
}

TEST(a_verify_is_evaluated_in_every_build_and_a_check_only_for_debugging, "")
{
    verify(status(0) == 0);
    verify_noerr(status(3));
    EXPECT_EQ(evaluations, 2);
    check(status(0) == 0);
    EXPECT_EQ(evaluations, 2);
}

TEST(a_verifys_action_may_leave_a_loop, "")
{
    int rounds = 0;

    for (;;) {
        rounds++;
        verify_action(rounds < 3, break);
    }
    EXPECT_EQ(rounds, 3);
}
