/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of a test's own, and files in it. One thread. */
#ifndef CRL_TESTS_FOLDER_MAKER_H
#define CRL_TESTS_FOLDER_MAKER_H

#include <limits.h>
#include <stdbool.h>

#include "CoreFoundation/CoreFoundation.h"

/* Makes it, and names it in XDG_CONFIG_HOME; the folder for any user is the folder "any" in it. */
void folder_make(void);
/* Removes it with all in it, and gives back what the library keeps. */
void folder_remove(void);

/* The path of a name in it, until the next call but three. */
const char *folder_path(const char *name);
/* Writes a file, and makes the folders that lead to it. */
void folder_write(const char *name, const char *text);
/* The text of a file, until the next call; "" if there is none. */
const char *folder_read(const char *name);
/* How many files in a folder have names that begin so. */
int folder_count(const char *name, const char *beginning);

/* The text of a string, until the next call but three; "none" for NULL, "other" for another object. */
const char *text_of(CFTypeRef string);
/* The same, and the object is released. */
const char *take_text(CFTypeRef string);

/* What comes on stderr goes to a file until `stderr_taken` gives it, up to the next call. */
void stderr_take(void);
const char *stderr_taken(void);

#endif
