/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boolean is bool in C++, _Bool in C, and Apple's unsigned char in bindings of other languages. As an argument, a result, in a callback and
 * in a struct they are the same: scripts/check-headers links this with truth.c, compiled with each, and runs it.
 */
#include <CoreFoundation/CoreFoundation.h>

struct truths {
    char before;
    Boolean truth;
    int behind;
};

extern "C" Boolean opposite(Boolean truth);
extern "C" Boolean call(Boolean (*function)(Boolean), Boolean truth);
extern "C" Boolean member(struct truths truths);

static Boolean turn(Boolean truth)
{
    return !truth;
}

int main()
{
    const struct truths truths = {'b', true, 7};

    static_assert(sizeof(Boolean) == 1 && alignof(Boolean) == 1, "an unsigned char");
    return opposite(false) == 1 && opposite(true) == 0 && call(turn, false) == 1 && call(turn, true) == 0 && member(truths) == 1 ? 0 : 1;
}
