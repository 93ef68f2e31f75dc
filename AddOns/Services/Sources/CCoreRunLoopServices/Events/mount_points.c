/* SPDX-License-Identifier: Apache-2.0 */
/* See mount_points.h. */
#define _GNU_SOURCE
#include "Events/mount_points.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "Support/uncancelled.h"

/* A line: number, parent, major:minor, root, mount point, and more. In names, some bytes are a backslash and three octal digits. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] && from[3]) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

static int order_of(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Returns the mount point in the line, which it cuts, or NULL. */
static char *point_in(char *line, dev_t *ret_device, bool *ret_is_whole)
{
    unsigned minor_number;
    unsigned major_number;
    int root_start = 0;
    int point_start = 0;
    char *point;

    if (sscanf(line, "%*u %*u %u:%u %n%*s %n", &major_number, &minor_number, &root_start, &point_start) != 2 || point_start == 0) {
        return NULL;
    }
    point = line + point_start;
    point[strcspn(point, " \n")] = '\0';
    unescape(point);
    *ret_device = makedev(major_number, minor_number);
    *ret_is_whole = strncmp(line + root_start, "/ ", 2) == 0;
    return point;
}

static int each_line(bool (*take)(void *info, const char *point, dev_t device, bool is_whole), void *info)
{
    FILE *file = uncancelled(fopen("/proc/self/mountinfo", "re"));
    char *line = NULL;
    size_t size = 0;
    bool goes_on = true;

    if (!file) {
        return -1;
    }
    while (goes_on && uncancelled(getline(&line, &size, file)) > 0) {
        dev_t device;
        bool is_whole;
        const char *point = point_in(line, &device, &is_whole);

        goes_on = !point || take(info, point, device, is_whole);
    }
    free(line);
    (void)uncancelled(fclose(file));
    return goes_on ? 0 : -1;
}

struct point_list {
    char **points;
    size_t count;
    size_t size;
};

static bool add_point(void *info, const char *point, dev_t device, bool is_whole)
{
    struct point_list *list = info;

    (void)device;
    (void)is_whole;
    if (list->count == list->size) {
        char **larger = realloc(list->points, (list->size * 2 + 16) * sizeof(char *));

        if (!larger) {
            return false;
        }
        list->points = larger;
        list->size = list->size * 2 + 16;
    }
    list->points[list->count] = strdup(point);
    return list->points[list->count] && ++list->count > 0;
}

int mount_points_read(char ***ret_points, size_t *ret_count)
{
    struct point_list list = {NULL, 0, 0};

    if (each_line(add_point, &list) < 0) {
        mount_points_free(list.points, list.count);
        return -1;
    }
    if (list.count > 0) {
        qsort(list.points, list.count, sizeof(char *), order_of);
    }
    *ret_points = list.points;
    *ret_count = list.count;
    return 0;
}

void mount_points_free(char **points, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(points[i]);
    }
    free(points);
}

void mount_points_compare(char ***points, size_t *count, void (*tell)(void *info, const char *path, bool is_mounted), void *info)
{
    char **now;
    size_t now_count;
    size_t i = 0;
    size_t j = 0;

    if (mount_points_read(&now, &now_count) < 0) {
        return;
    }
    while (i < *count || j < now_count) {
        int order = i == *count ? 1 : (j == now_count ? -1 : strcmp((*points)[i], now[j]));

        if (order != 0) {
            tell(info, order < 0 ? (*points)[i] : now[j], order > 0);
        }
        i += order <= 0;
        j += order >= 0;
    }
    mount_points_free(*points, *count);
    *points = now;
    *count = now_count;
}

struct device_search {
    dev_t device;
    char *found;
};

static bool find_device(void *info, const char *point, dev_t device, bool is_whole)
{
    struct device_search *search = info;

    if (device == search->device && is_whole) {
        search->found = strdup(point);
        return false;
    }
    return true;
}

char *mount_point_of_device(dev_t device)
{
    struct device_search search = {device, NULL};

    (void)each_line(find_device, &search);
    return search.found;
}
