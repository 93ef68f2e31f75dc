/* SPDX-License-Identifier: Apache-2.0 */
/* The bundle of the process's own program. Any thread; it is looked for at the first use. */
#ifndef CRL_PLIST_MAIN_BUNDLE_H
#define CRL_PLIST_MAIN_BUNDLE_H

#include "plist_link_names.h"

#include "Bundle/bundle.h"

/* Borrowed; NULL without memory. */
struct bundle *main_bundle_get(void);
/* The caller releases it; NULL if it has none. */
CFStringRef main_bundle_copy_identifier(void);

/* The path of the process's own file; without /proc that with which it was started. False: it is too long. */
bool main_bundle_find_program(char ret_path[PATH_MAX]);
/* The folder of the bundle of a program with an absolute path. False: the path is too long. */
bool main_bundle_find_root(const char *program, char ret_root[PATH_MAX]);

#if defined(CRL_TESTING)
void main_bundle_give_back(void);
#endif

#endif
