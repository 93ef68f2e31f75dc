/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The home lock of a timer or observer: the lock of the loop that the item is in, or the item's own lock while it is in none.
 *
 * Loop locks come before item locks in the lock order. Who starts from an item therefore reads its loop under the item's lock, drops that
 * lock, takes the loop's, and looks again whether the item is still there.
 */
#ifndef CRL_LOOP_CORE_HOME_LOCK_H
#define CRL_LOOP_CORE_HOME_LOCK_H

#include "Loop/link_names.h"

#include "Loop/Core/loop.h"

/*
 * Takes the item's home lock. `item_loop` is the field in which the item keeps its loop. Returns that loop, which stays alive until
 * home_lock_drop, or NULL if the item's own lock was taken.
 *
 * An item may leave its loop without its own lock as long as the loop's thread has not begun to end; see item_locks_pass.
 */
CFRunLoopRef home_lock_take(const void *item, const _Atomic(CFRunLoopRef) *item_loop);
/* Drops the lock that home_lock_take took. `loop` is what that call returned. */
void home_lock_drop(const void *item, CFRunLoopRef loop);

#endif
