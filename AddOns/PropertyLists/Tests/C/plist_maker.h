/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Short calls that make trees for tests, and compare what is read. The caller releases what they return; containers take what they are
 * given.
 */
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

/*
 * Reads the bytes and compares the tree with a text: 'string', -5, r0.5, f0.5 of four bytes, d3 for a date, <0a> for data, [array],
 * {key:value} in the order of keys. Behind a '!' is what the words of the error contain. NULL: any tree.
 */
void plist_expect(const void *bytes, size_t length, CFPropertyListFormat format, const char *expected);
/* The tree, which it releases, is not written; the words of the error contain the fragment. */
void plist_expect_refused(CFTypeRef tree, CFPropertyListFormat format, const char *fragment);

#endif
