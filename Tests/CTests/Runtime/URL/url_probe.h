/* SPDX-License-Identifier: Apache-2.0 */
/* URLs and texts as C strings, for the tests of URLs. */
#ifndef CRL_TESTS_URL_PROBE_H
#define CRL_TESTS_URL_PROBE_H

#include "CoreFoundation/CoreFoundation.h"

/* A URL of UTF-8; NULL if it is refused. */
CFURLRef url_with(const char *text, CFURLRef base);

/* Compares the string of a URL; NULL stands for no URL. */
void expect_url(CFURLRef url, const char *expected);

/* Compares a text, which it releases; NULL stands for none. */
void expect_text(CFStringRef text, const char *expected);

#endif
