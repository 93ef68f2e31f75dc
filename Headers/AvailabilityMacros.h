/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * The older name of Availability.h, where no release of Apple's has a constant either.
 */

#if !defined(__AVAILABILITYMACROS__)
#define __AVAILABILITYMACROS__ 1

#include "Availability.h"

#endif
