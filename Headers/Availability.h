/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * What declarations say of Apple's releases, which has no meaning here: the macros accept their arguments and expand to nothing. No release
 * has a constant, so the preprocessor compares MAC_OS_X_VERSION_MAX_ALLOWED with MAC_OS_X_VERSION_10_13 as 0 with 0.
 */

#if !defined(__AVAILABILITY__)
#define __AVAILABILITY__ 1

#include "CoreFoundation/CFAvailability.h"

#pragma GCC system_header

#define __OSX_AVAILABLE_STARTING(_osx, _ios)
#define __OSX_AVAILABLE_BUT_DEPRECATED(_osxIntro, _osxDep, _iosIntro, _iosDep)
#define __OSX_AVAILABLE_BUT_DEPRECATED_MSG(_osxIntro, _osxDep, _iosIntro, _iosDep, _msg)

#endif
