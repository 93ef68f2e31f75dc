/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the error of a property list. Any thread. */
#ifndef CRL_PLIST_PLIST_ERROR_H
#define CRL_PLIST_PLIST_ERROR_H

#include "plist_link_names.h"

#include "CoreFoundation/CoreFoundation.h"
#include "Format/read_fault.h"

/* The caller releases the string, which is NULL without memory. */
CFStringRef plist_error_create_words(const struct read_fault *fault);
/* Sets `*error`, unless `error` is NULL, to one with the words of the fault. Takes `cause`, which may be NULL. */
void plist_error_set(CFErrorRef *error, CFIndex code, const struct read_fault *fault, CFErrorRef cause);

#endif
