/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes, also where a filter of system calls withholds those of the kernel. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "Support/random_bytes.h"
#include "harness.h"

static void expect_random_bytes(void)
{
    unsigned char first[256] = {0};
    unsigned char second[256] = {0};

    errno = EDOM;
    random_bytes_fill(first, sizeof first);
    random_bytes_fill(second, sizeof second);
    EXPECT_EQ(errno, EDOM);
    EXPECT(memcmp(first, second, sizeof first) != 0);
}

TEST(random_bytes_differ_from_call_to_call, "")
{
    expect_random_bytes();
}

/* A filter that withholds getrandom, and all that opens a file if `and_files`. False where there are no filters. */
static bool withhold(bool and_files)
{
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, and_files ? SYS_openat : SYS_getrandom, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof instructions / sizeof instructions[0], .filter = instructions};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(random_bytes_need_no_call_that_a_filter_may_withhold, "")
{
    if (!withhold(false)) {
        SKIP("there are no filters here");
    }
    expect_random_bytes();
}

TEST(a_process_without_random_bytes_stops, "")
{
    unsigned char bytes[16];

    if (!withhold(false)) {
        SKIP("there are no filters here");
    }
    EXPECT_STOPS("random bytes: the kernel has none", {
        EXPECT(withhold(true));
        random_bytes_fill(bytes, sizeof bytes);
    });
}
