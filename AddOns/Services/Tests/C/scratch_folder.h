/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of a test's own, in which the test runs. */
#ifndef CRL_SERVICES_SCRATCH_FOLDER_H
#define CRL_SERVICES_SCRATCH_FOLDER_H

enum { scratch_size = 32 };

/* Makes it and goes into it. */
void scratch_enter(char folder[scratch_size]);
/* Removes it with all that is in it. */
void scratch_leave(const char *folder);
/* Removes what is at the path, with all that is in it. */
void scratch_remove(const char *path);
/* Makes an empty file, or fails the test. */
void scratch_make_file(const char *path);
void scratch_make_folder(const char *path);

#endif
