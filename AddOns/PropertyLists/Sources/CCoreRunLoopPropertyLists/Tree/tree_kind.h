/* SPDX-License-Identifier: Apache-2.0 */
/* What an object is in a property list. Any thread. */
#ifndef CRL_PLIST_TREE_KIND_H
#define CRL_PLIST_TREE_KIND_H

#include "plist_link_names.h"

#include <stdbool.h>

#include "CoreFoundation/CoreFoundation.h"

enum tree_kind { tree_string, tree_number, tree_dictionary, tree_array, tree_boolean, tree_data, tree_date, tree_foreign };

/* A foreign object is of a type that no property list holds. `object` is not NULL. */
static inline enum tree_kind tree_kind_of(CFTypeRef object)
{
    CFTypeID type = CFGetTypeID(object);

    return type == CFStringGetTypeID()       ? tree_string
           : type == CFNumberGetTypeID()     ? tree_number
           : type == CFDictionaryGetTypeID() ? tree_dictionary
           : type == CFArrayGetTypeID()      ? tree_array
           : type == CFBooleanGetTypeID()    ? tree_boolean
           : type == CFDataGetTypeID()       ? tree_data
           : type == CFDateGetTypeID()       ? tree_date
                                             : tree_foreign;
}

static inline bool tree_kind_is_container(enum tree_kind kind)
{
    return kind == tree_dictionary || kind == tree_array;
}

#endif
