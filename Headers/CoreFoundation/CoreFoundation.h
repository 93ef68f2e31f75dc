/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * The whole C API with one include, and with it the headers of the C library that sources for Apple's systems expect from it.
 */

#if !defined(__COREFOUNDATION_COREFOUNDATION__)
#define __COREFOUNDATION_COREFOUNDATION__ 1

/** Says that Core Foundation's headers have been included. */
#define __COREFOUNDATION__ 1

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "CFBase.h"

#include "CFArray.h"
#include "CFByteOrder.h"
#include "CFData.h"
#include "CFDate.h"
#include "CFDictionary.h"
#include "CFError.h"
#include "CFNumber.h"
#include "CFSet.h"
#include "CFString.h"
#include "CFURL.h"
#include "CFUUID.h"

#include "CFRunLoop.h"

#include "CFBundle.h"
#include "CFFileDescriptor.h"
#include "CFMachPort.h"
#include "CFMessagePort.h"
#include "CFPreferences.h"
#include "CFPropertyList.h"
#include "CFSocket.h"
#include "CFStream.h"
#include "CFStringEncodingExt.h"
#include "CFTimeZone.h"

/* Where libdispatch is installed, CFMessagePort.h has brought its types, as on Apple's systems. */

#endif /* ! __COREFOUNDATION_COREFOUNDATION__ */
