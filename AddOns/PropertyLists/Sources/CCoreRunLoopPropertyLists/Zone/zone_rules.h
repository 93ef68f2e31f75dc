/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file of the tz database says of a zone (RFC 8536, versions 1 to 4): when its offset changed, and by which rule it goes on.
 *
 * The bytes may be anything. What is read lies within them, and the memory is at most two times as much. Constant once made; any thread.
 * Leap seconds are not counted: the system's clock does not count them, or its zones are made for that.
 */
#ifndef CRL_PLIST_ZONE_RULES_H
#define CRL_PLIST_ZONE_RULES_H

#include "plist_link_names.h"

#include "Zone/zone_footer.h"

struct zone_rules;

/* NULL: the bytes are no such file, or there is no memory. Freed by free(). */
struct zone_rules *zone_rules_create(const uint8_t *bytes, size_t size);
struct zone_period zone_rules_period(const struct zone_rules *rules, int64_t instant);

#endif
