/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * What declarations say of Apple's releases. That has no meaning here, and so no release is named: the macros accept their arguments and
 * expand to nothing, and a comparison of MAC_OS_X_VERSION_MAX_ALLOWED or the like is one of names that are not defined.
 */

#if !defined(__AVAILABILITY__)
#define __AVAILABILITY__ 1

#include "CoreFoundation/CFAvailability.h"

#pragma GCC system_header

#define __OSX_AVAILABLE_STARTING(_osx, _ios)
#define __OSX_AVAILABLE_BUT_DEPRECATED(_osxIntro, _osxDep, _iosIntro, _iosDep)
#define __OSX_AVAILABLE_BUT_DEPRECATED_MSG(_osxIntro, _osxDep, _iosIntro, _iosDep, _msg)

#endif
