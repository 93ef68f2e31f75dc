/* SPDX-License-Identifier: Apache-2.0 */
/* The link names of what the files of Host share, by which no name of a program meets one of ours. Written by `make symbols`. */
#ifndef CRL_HOST_LINK_NAMES_H
#define CRL_HOST_LINK_NAMES_H
#pragma redefine_extname host_ask crl_host_ask
#pragma redefine_extname host_ask_and_wait crl_host_ask_and_wait
#pragma redefine_extname host_cancel crl_host_cancel
#pragma redefine_extname host_class crl_host_class
#pragma redefine_extname host_client_describe crl_host_client_describe
#pragma redefine_extname host_client_release crl_host_client_release
#pragma redefine_extname host_client_set crl_host_client_set
#pragma redefine_extname host_create crl_host_create
#pragma redefine_extname host_link_cut crl_host_link_cut
#pragma redefine_extname host_link_init crl_host_link_init
#pragma redefine_extname host_link_retain crl_host_link_retain
#pragma redefine_extname host_perform crl_host_perform
#pragma redefine_extname host_schedule_add crl_host_schedule_add
#pragma redefine_extname host_schedule_remove crl_host_schedule_remove
#pragma redefine_extname host_schedule_signal crl_host_schedule_signal
#pragma redefine_extname question_abandon crl_question_abandon
#pragma redefine_extname question_create crl_question_create
#pragma redefine_extname question_release crl_question_release
#pragma redefine_extname question_retain_current crl_question_retain_current
#pragma redefine_extname question_schedule crl_question_schedule
#pragma redefine_extname question_unschedule crl_question_unschedule
#pragma redefine_extname reachability_create crl_reachability_create
#endif
