/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the object of OpenSSL for a session from kCFStreamPropertySSLSettings. Any thread, no locks. */
#ifndef CRL_NET_SECURITY_SETTINGS_H
#define CRL_NET_SECURITY_SETTINGS_H

#include "net_link_names.h"

#include <openssl/ssl.h>
#include <stdbool.h>

#include "CoreFoundation/CFDictionary.h"
#include "CoreFoundation/CFStream.h"

/* `host` may be NULL. Returns NULL and an error for settings that it refuses; the error without memory is ENOMEM. */
SSL *security_settings_create(CFStringRef host, CFDictionaryRef settings, CFStreamError *error);
/* Whether the settings, which have made an object, offer the protocol by ALPN. */
bool security_settings_offer(CFDictionaryRef settings, const unsigned char *protocol, size_t length);

#endif
