/* SPDX-License-Identifier: Apache-2.0 */
/* Short calls that make trees for tests. The caller releases what they return; containers take what they are given. */
#ifndef CRL_TESTS_PLIST_MAKER_H
#define CRL_TESTS_PLIST_MAKER_H

#include <CoreFoundation/CoreFoundation.h>

CFStringRef make_text(const char *utf8);
CFNumberRef make_integer(long long value);
CFNumberRef make_real(double value);
CFDataRef make_data(const void *bytes, size_t count);
/* The values up to the first NULL. */
CFMutableArrayRef make_array(CFTypeRef first, ...);
/* Keys in UTF-8, each with its value, up to a NULL. */
CFMutableDictionaryRef make_dictionary(const char *first_key, ...);
/* An array in an array, `depth` in all. */
CFArrayRef make_deep(size_t depth);

#endif
