/* SPDX-License-Identifier: Apache-2.0 */
/* The table's entries on a descriptor of any kind, as Linux fills them; what each does is said in kernel.h. */
#ifndef CRL_KERNEL_KERNEL_DESCRIPTORS_H
#define CRL_KERNEL_KERNEL_DESCRIPTORS_H

#include "Kernel/link_names.h"

#include "Kernel/kernel.h"

/*
 * For what the library opens for itself and keeps: the same, or another number for it where that is one of the standard streams'. A program
 * that has closed those still prints and reads by their numbers. Negative errnos pass.
 */
int kernel_above_streams(int descriptor);

uint32_t kernel_descriptor_ready(int descriptor, uint32_t interest);
bool kernel_descriptor_is_open(int descriptor);
enum kernel_descriptor_kind kernel_descriptor_kind(int descriptor);
int kernel_descriptor_name(int descriptor, char *ret_name, size_t size);
int kernel_descriptor_close(int descriptor);

#endif
