/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of versions as "1.2.3b4", and codes of four letters. No state; any thread. */
#ifndef CRL_PLIST_BUNDLE_VERSION_H
#define CRL_PLIST_BUNDLE_VERSION_H

#include "plist_link_names.h"

#include "CoreFoundation/CoreFoundation.h"

/* The decimal digits of the parts, and behind them the stage and its number: 0x01236004. 0 for another text. */
UInt32 bundle_version_parse(CFTypeRef text);
/* False: the object is not four letters. */
bool bundle_code_parse(CFTypeRef text, UInt32 *ret_code);

#endif
