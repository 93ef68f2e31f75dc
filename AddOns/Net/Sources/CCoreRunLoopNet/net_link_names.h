/* SPDX-License-Identifier: Apache-2.0 */
/* The link names of what the files of this add-on share, by which no name of a program meets one of ours. Written by `make symbols`. */
#ifndef CRL_NET_LINK_NAMES_H
#define CRL_NET_LINK_NAMES_H
#pragma redefine_extname query_free crl_query_free
#pragma redefine_extname query_resolve crl_query_resolve
#pragma redefine_extname query_resolve_address crl_query_resolve_address
#pragma redefine_extname query_schedule crl_query_schedule
#pragma redefine_extname query_set_servers crl_query_set_servers
#pragma redefine_extname query_unschedule crl_query_unschedule
#pragma redefine_extname query_wait crl_query_wait
#pragma redefine_extname resolver_ask_addresses crl_resolver_ask_addresses
#pragma redefine_extname resolver_ask_names crl_resolver_ask_names
#pragma redefine_extname resolver_create crl_resolver_create
#pragma redefine_extname resolver_create_addresses crl_resolver_create_addresses
#pragma redefine_extname resolver_create_names crl_resolver_create_names
#pragma redefine_extname resolver_error crl_resolver_error
#pragma redefine_extname security_settings_create crl_security_settings_create
#pragma redefine_extname session_copy_property crl_session_copy_property
#pragma redefine_extname session_create crl_session_create
#pragma redefine_extname session_free crl_session_free
#pragma redefine_extname session_handshake crl_session_handshake
#pragma redefine_extname session_holds_bytes crl_session_holds_bytes
#pragma redefine_extname session_look crl_session_look
#pragma redefine_extname session_receive crl_session_receive
#pragma redefine_extname session_send crl_session_send
#pragma redefine_extname socket_bio_create crl_socket_bio_create
#pragma redefine_extname tls_error crl_tls_error
#pragma redefine_extname tls_error_take crl_tls_error_take
#endif
