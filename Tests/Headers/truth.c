/* SPDX-License-Identifier: Apache-2.0 */
/* What takes and gives truth values of the type TRUTH, for truth.cpp. */
struct truths {
    char before;
    TRUTH truth;
    int behind;
};

TRUTH opposite(TRUTH truth)
{
    return !truth;
}

TRUTH call(TRUTH (*function)(TRUTH), TRUTH truth)
{
    return function(truth);
}

TRUTH member(struct truths truths)
{
    return truths.truth && truths.behind == 7;
}
