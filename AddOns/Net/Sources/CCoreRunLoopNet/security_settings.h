/* SPDX-License-Identifier: Apache-2.0 */
/* Makes OpenSSL's object of kCFStreamPropertySSLSettings, or of a security level. Any thread, no locks. */
#ifndef CRL_NET_SECURITY_SETTINGS_H
#define CRL_NET_SECURITY_SETTINGS_H

#include "net_link_names.h"

#include <openssl/ssl.h>

#include "CoreFoundation/CFDictionary.h"
#include "CoreFoundation/CFStream.h"

/* `host` may be NULL. Returns NULL for settings that it refuses, with the error, or without memory, with ENOMEM. */
SSL *security_settings_create(CFStringRef host, CFDictionaryRef settings, CFStreamError *error);

#endif
