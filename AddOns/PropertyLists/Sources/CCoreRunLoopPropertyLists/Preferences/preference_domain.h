/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A domain: the preferences of one application, user and host, as this process sees them. They are what the file held when it was read
 * last, and over it what the process has changed since and not yet written. Any thread.
 *
 * Domains are made at their first use and stay, as many as the program has used names for. What is in them are copies that belong to this
 * file alone, in the system's memory: so no code of the program runs when they are compared and hashed, and they may be under the lock. The
 * last reference to what came from the program is never given back there.
 */
#ifndef CRL_PLIST_PREFERENCE_DOMAIN_H
#define CRL_PLIST_PREFERENCE_DOMAIN_H

#include "plist_link_names.h"

#include "CoreFoundation/CoreFoundation.h"
#include "Preferences/preference_name.h"
#include "fork_lock.h"

struct preference_domain;

/* Finds the domain or makes it, and reads its file if that has not been done. NULL without memory. */
struct preference_domain *preference_domain_get(const struct preference_place *place);

/* The value, or NULL; the caller releases it. */
CFTypeRef preference_domain_copy_value(struct preference_domain *domain, CFStringRef key);
/* All keys and values; NULL without memory. The caller releases it. */
CFDictionaryRef preference_domain_copy_all(struct preference_domain *domain);
/* Sets the value, or removes it if it is NULL. False: it is no property list, or there is no memory. */
bool preference_domain_set_value(struct preference_domain *domain, CFStringRef key, CFTypeRef value);

/*
 * Writes what the process has changed, over what the file holds by now, and sees what others have written. Waits for other processes that
 * do so with the same file. False, with a line on stderr: it could not be written; nothing is lost, and the next call tries again.
 */
bool preference_domain_synchronize(struct preference_domain *domain);

#if defined(CRL_TESTING)
void preference_domains_give_back(void);
#endif

#endif
