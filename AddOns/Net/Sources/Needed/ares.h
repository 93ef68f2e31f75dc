/* SPDX-License-Identifier: Apache-2.0 */
/* For SwiftPM: stands before the system's header of this name, and says what to install where there is none. */
#if __has_include_next(<ares.h>)
#include_next <ares.h>
#else
#error "CCoreRunLoopNet needs c-ares: sudo apt install libc-ares-dev"
#endif
