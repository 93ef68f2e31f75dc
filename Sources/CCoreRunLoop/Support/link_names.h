/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link names of what the files of Support shares. Written by `make symbols`.
 *
 * A hidden name is still seen when all is linked into one program, as SwiftPM does; a program's own heap_push is not to meet ours.
 */
#ifndef CRL_SUPPORT_LINK_NAMES_H
#define CRL_SUPPORT_LINK_NAMES_H

#pragma redefine_extname barrier_enable_everywhere crl_barrier_enable_everywhere
#pragma redefine_extname barrier_everywhere crl_barrier_everywhere
#pragma redefine_extname fault_log_lines crl_fault_log_lines
#pragma redefine_extname fault_log_once crl_fault_log_once
#pragma redefine_extname fault_stop crl_fault_stop
#pragma redefine_extname fault_stop_format crl_fault_stop_format
#pragma redefine_extname futex_wait crl_futex_wait
#pragma redefine_extname futex_wake crl_futex_wake
#pragma redefine_extname hash_table_adopt crl_hash_table_adopt
#pragma redefine_extname hash_table_capacity_for crl_hash_table_capacity_for
#pragma redefine_extname hash_table_find crl_hash_table_find
#pragma redefine_extname hash_table_insert crl_hash_table_insert
#pragma redefine_extname hash_table_next crl_hash_table_next
#pragma redefine_extname hash_table_remove crl_hash_table_remove
#pragma redefine_extname heap_change_key crl_heap_change_key
#pragma redefine_extname heap_free crl_heap_free
#pragma redefine_extname heap_grow crl_heap_grow
#pragma redefine_extname heap_push crl_heap_push
#pragma redefine_extname heap_remove crl_heap_remove
#pragma redefine_extname invariant_check crl_invariant_check
#pragma redefine_extname item_lock_space crl_item_lock_space
#pragma redefine_extname item_locks_drop_all crl_item_locks_drop_all
#pragma redefine_extname item_locks_pass crl_item_locks_pass
#pragma redefine_extname item_locks_reset_all crl_item_locks_reset_all
#pragma redefine_extname item_locks_take_all crl_item_locks_take_all
#pragma redefine_extname lock_drop_contended crl_lock_drop_contended
#pragma redefine_extname lock_places crl_lock_places
#pragma redefine_extname lock_take_contended crl_lock_take_contended
#pragma redefine_extname lock_wake_sleeper crl_lock_wake_sleeper

#endif
