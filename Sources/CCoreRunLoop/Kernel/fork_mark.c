/* SPDX-License-Identifier: Apache-2.0 */
/* The word that the kernel wipes in a child, as Linux gives it; see fork_mark.h. Made once, at the first call. */
#define _GNU_SOURCE
#include "Kernel/fork_mark.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "Support/lock.h"

static pthread_once_t mark_once = PTHREAD_ONCE_INIT;
static _Atomic uint32_t *mark;

static bool is_wiped_in_children(void *page, size_t size)
{
    return madvise(page, size, MADV_WIPEONFORK) == 0;
}

/*
 * With the item locks, which are free when they are wiped: their page is written to in any case. Elsewhere where a page is larger, and has
 * more than the locks in it, or the kernel has not made this one itself.
 */
static void make_mark(void)
{
    int saved = errno;
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page;

    if (size == item_locks_bytes && is_wiped_in_children(item_locks(), size)) {
        mark = item_locks()->spare;
    } else {
        page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page != MAP_FAILED && is_wiped_in_children(page, size)) {
            mark = page;
        }
    }
    errno = saved;
}

_Atomic uint32_t *kernel_fork_mark(void)
{
    (void)pthread_once(&mark_once, make_mark);
    return mark;
}
