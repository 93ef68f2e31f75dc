/* SPDX-License-Identifier: Apache-2.0 */
/* Availability.h and AvailabilityMacros.h: what they say of Apple's releases is accepted, and says nothing here. */
#include <AvailabilityMacros.h>

#include "harness.h"

#if MAC_OS_X_VERSION_MAX_ALLOWED < MAC_OS_X_VERSION_10_13 || defined(__MAC_10_13)
#error "no release of Apple's is older than another here"
#endif

int function_of_a_release(void) __OSX_AVAILABLE_STARTING(__MAC_10_7, __IPHONE_5_0);
int function_of_a_release(void) API_AVAILABLE(macos(10.13), ios(11.0));

int function_of_a_release(void)
{
    return 7;
}

TEST(availability_is_accepted_and_says_nothing, "")
{
    EXPECT_EQ(function_of_a_release(), 7);
}
