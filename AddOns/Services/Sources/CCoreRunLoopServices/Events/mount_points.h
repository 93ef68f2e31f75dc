/* SPDX-License-Identifier: Apache-2.0 */
/* Where file systems are mounted: the fifth field of each line of /proc/self/mountinfo. Any thread; no state. */
#ifndef CRL_SERVICES_MOUNT_POINTS_H
#define CRL_SERVICES_MOUNT_POINTS_H

#include "services_link_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Stores a sorted list, which mount_points_free frees, and returns 0, or -1 without memory or /proc. */
int mount_points_read(char ***ret_points, size_t *ret_count);
void mount_points_free(char **points, size_t count);
/* Replaces the list by what is there now, and calls `tell` for each difference. */
void mount_points_compare(char ***points, size_t *count, void (*tell)(void *info, const char *path, bool is_mounted), void *info);
/* Returns the path where the whole of a device is mounted, for free(), or NULL. */
char *mount_point_of_device(dev_t device);

#endif
