/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link names of what the files of Descriptor shares. Written by `make symbols`.
 *
 * A hidden name is still seen when all is linked into one program, as SwiftPM does; a program's own heap_push is not to meet ours.
 */
#ifndef CRL_DESCRIPTOR_LINK_NAMES_H
#define CRL_DESCRIPTOR_LINK_NAMES_H


#endif
