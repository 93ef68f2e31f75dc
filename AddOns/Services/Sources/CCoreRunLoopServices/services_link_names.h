/* SPDX-License-Identifier: Apache-2.0 */
/* The link names of what the files of this add-on share, by which no name of a program meets one of ours. Written by `make symbols`. */
#ifndef CRL_SERVICES_LINK_NAMES_H
#define CRL_SERVICES_LINK_NAMES_H
#pragma redefine_extname notify_kernel crl_notify_kernel
#pragma redefine_extname notify_kernel_linux crl_notify_kernel_linux
#endif
