/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * The older name of Availability.h. Of Apple's releases none is named here.
 */

#if !defined(__AVAILABILITYMACROS__)
#define __AVAILABILITYMACROS__ 1

#include "Availability.h"

#endif
