/* SPDX-License-Identifier: Apache-2.0 */
/* For SwiftPM: stands before the system's header of this name, and says what to install where there is none. */
#if __has_include_next(<openssl/ssl.h>)
#include_next <openssl/ssl.h>
#else
#error "CCoreRunLoopNet needs OpenSSL: sudo apt install libssl-dev"
#endif
