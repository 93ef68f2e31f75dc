/* SPDX-License-Identifier: Apache-2.0 */
/* The link names of what the files of this add-on share, by which no name of a program meets one of ours. Written by `make symbols`. */
#ifndef CRL_SERVICES_LINK_NAMES_H
#define CRL_SERVICES_LINK_NAMES_H
#pragma redefine_extname child_exec_start crl_child_exec_start
#pragma redefine_extname child_kernel crl_child_kernel
#pragma redefine_extname child_plan_close_sources crl_child_plan_close_sources
#pragma redefine_extname child_plan_free crl_child_plan_free
#pragma redefine_extname child_plan_has crl_child_plan_has
#pragma redefine_extname child_plan_make crl_child_plan_make
#pragma redefine_extname child_plan_open crl_child_plan_open
#pragma redefine_extname child_process_kill_group_at_end crl_child_process_kill_group_at_end
#pragma redefine_extname child_process_leave crl_child_process_leave
#pragma redefine_extname child_process_look crl_child_process_look
#pragma redefine_extname child_process_signal crl_child_process_signal
#pragma redefine_extname child_process_start crl_child_process_start
#pragma redefine_extname child_require crl_child_require
#pragma redefine_extname child_schedule_kill crl_child_schedule_kill
#pragma redefine_extname notify_kernel crl_notify_kernel
#pragma redefine_extname notify_kernel_linux crl_notify_kernel_linux
#endif
