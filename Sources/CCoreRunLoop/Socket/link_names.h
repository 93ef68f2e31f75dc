/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link names of what the files of Socket shares. Written by `make symbols`.
 *
 * A hidden name is still seen when all is linked into one program, as SwiftPM does; a program's own heap_push is not to meet ours.
 */
#ifndef CRL_SOCKET_LINK_NAMES_H
#define CRL_SOCKET_LINK_NAMES_H

#pragma redefine_extname delivery_call crl_delivery_call
#pragma redefine_extname delivery_end crl_delivery_end
#pragma redefine_extname delivery_end_callout crl_delivery_end_callout
#pragma redefine_extname delivery_keep crl_delivery_keep
#pragma redefine_extname delivery_retain_info crl_delivery_retain_info
#pragma redefine_extname socket_back_off crl_socket_back_off
#pragma redefine_extname socket_become_idle crl_socket_become_idle
#pragma redefine_extname socket_begin_use crl_socket_begin_use
#pragma redefine_extname socket_claim crl_socket_claim
#pragma redefine_extname socket_copy_address crl_socket_copy_address
#pragma redefine_extname socket_deliver_accept crl_socket_deliver_accept
#pragma redefine_extname socket_deliver_data crl_socket_deliver_data
#pragma redefine_extname socket_end_use crl_socket_end_use
#pragma redefine_extname socket_invalidate crl_socket_invalidate
#pragma redefine_extname socket_is_valid crl_socket_is_valid
#pragma redefine_extname socket_perform crl_socket_perform
#pragma redefine_extname socket_publish_interest crl_socket_publish_interest
#pragma redefine_extname socket_publish_interest_to crl_socket_publish_interest_to
#pragma redefine_extname socket_registry_add crl_socket_registry_add
#pragma redefine_extname socket_registry_evict crl_socket_registry_evict
#pragma redefine_extname socket_registry_find crl_socket_registry_find
#pragma redefine_extname socket_registry_remove crl_socket_registry_remove
#pragma redefine_extname socket_release_info crl_socket_release_info
#pragma redefine_extname socket_turns_out_idle crl_socket_turns_out_idle
#pragma redefine_extname socket_update_interest crl_socket_update_interest

#endif
