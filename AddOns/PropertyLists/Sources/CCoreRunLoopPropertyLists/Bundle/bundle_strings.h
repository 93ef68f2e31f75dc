/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of strings of a bundle, each read once and kept with it, under the fork lock. Any thread. */
#ifndef CRL_PLIST_BUNDLE_STRINGS_H
#define CRL_PLIST_BUNDLE_STRINGS_H

#include "plist_link_names.h"

#include "Bundle/bundle.h"

/*
 * The table in the file NAME.strings, whose format may be any of property lists. A file that is missing is as an empty one; a damaged one
 * as well, with a line on stderr. NULL without memory. The caller releases it.
 */
CFDictionaryRef bundle_strings_copy(struct bundle *bundle, CFStringRef name);
/* What the table InfoPlist has, borrowed for as long as the bundle lasts, or NULL. */
CFDictionaryRef bundle_strings_local_info(struct bundle *bundle);

#endif
