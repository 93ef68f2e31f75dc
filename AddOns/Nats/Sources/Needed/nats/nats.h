/* SPDX-License-Identifier: Apache-2.0 */
/* For SwiftPM: stands before the system's header of this name, and says what to install where there is none. */
#if __has_include_next(<nats/nats.h>)
#include_next <nats/nats.h>
#else
#error "CCoreRunLoopNats needs cnats: sudo apt install libnats-dev"
#endif
