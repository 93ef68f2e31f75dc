/* SPDX-License-Identifier: Apache-2.0 */
/* CRLHostLibuv.h for Swift, without libuv's types. A NULL loop is the default loop. */
#ifndef CORERUNLOOP_LIBUV_SHIMS_H
#define CORERUNLOOP_LIBUV_SHIMS_H

#include <stdbool.h>

void *libuv_attach(void *loop, bool keeps_running, void (*stopped)(void *info), void *info);
void libuv_detach(void *poll);

#endif
