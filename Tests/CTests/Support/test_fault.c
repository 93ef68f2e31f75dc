/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence before the end, and the line that is logged once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Support/fault.h"
#include "harness.h"

TEST(a_fault_prints_one_line_and_aborts, "")
{
    EXPECT_STOPS("CoreRunLoop: CFThing: the thing is NULL\n", { fault_stop("CFThing", "the thing is NULL"); });
    EXPECT_STOPS("CoreRunLoop: CFThing: 7 is too many\n", { fault_stop_format("CFThing", "%d is too many", 7); });
}

TEST(a_long_sentence_is_cut, "")
{
    char name[1000];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    EXPECT_STOPS("CoreRunLoop: CFThing: xxx", { fault_stop_format("CFThing", "%s", name); });
}

TEST(control_characters_of_others_do_not_reach_the_terminal, "")
{
    EXPECT_STOPS("CoreRunLoop: CFThing: a?[31mb?c\xC3\xA9\n", { fault_stop_format("CFThing", "%s", "a\x1b[31mb\nc\xC3\xA9"); });
    EXPECT_STOPS("CoreRunLoop: a?[31m?b\n", {
        static atomic_flag logged = ATOMIC_FLAG_INIT;
        fault_log_once(&logged, "a\x1b[31m\x7f"
                                "b");
        abort();
    });
}

TEST(a_line_is_logged_once_and_errno_is_kept, "")
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    int saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    errno = ENOTTY;
    fault_log_once(&logged, "said once");
    fault_log_once(&logged, "said once");
    EXPECT_EQ(errno, ENOTTY);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    char text[200] = "";
    ssize_t count = read(ends[0], text, sizeof text - 1);
    text[count > 0 ? count : 0] = '\0';
    EXPECT_STR(text, "CoreRunLoop: said once\n");
    close(ends[0]);
}
