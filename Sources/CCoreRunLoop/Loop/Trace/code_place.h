/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an address of code lies: in which file, and in which function. The names are those of the file's symbol table, which has static
 * functions too. The file is read anew for each question, in pieces of bounded size, and no memory is taken. Any thread.
 */
#ifndef CRL_LOOP_TRACE_CODE_PLACE_H
#define CRL_LOOP_TRACE_CODE_PLACE_H

#include "Loop/link_names.h"

#include <stddef.h>
#include <stdint.h>

#include "Support/lock.h"

struct dl_phdr_info;

struct code_place {
    char file[200]; /* the last part of its path; "": the code is in no file */
    uintptr_t at; /* in the file, as addr2line takes it */
    char function[200]; /* "": the file has no name for it, or is another one than the process has loaded */
    uintptr_t into; /* from the function's beginning */
};

void code_place_find(struct code_place *ret_place, const void *address);

/*
 * The lock under which this library calls dl_iterate_phdr, and takes no other lock. A fork takes it, too: dl_iterate_phdr has a lock of its
 * own, which glibc leaves taken in the child if another thread of the parent had it.
 */
extern struct lock code_objects_lock;
/* dl_iterate_phdr under that lock. */
int code_objects_visit(int (*visit)(struct dl_phdr_info *info, size_t size, void *context), void *context);

#endif
