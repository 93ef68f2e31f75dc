/* SPDX-License-Identifier: Apache-2.0 */
/* The link names of what the files of Descriptor share, by which no name of a program meets one of ours. Written by `make symbols`. */
#ifndef CRL_DESCRIPTOR_LINK_NAMES_H
#define CRL_DESCRIPTOR_LINK_NAMES_H
#endif
