/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a tree in XML. Any thread; the tree stays as it is meanwhile. */
#ifndef CRL_PLIST_XML_WRITER_H
#define CRL_PLIST_XML_WRITER_H

#include "plist_link_names.h"

#include "CoreFoundation/CoreFoundation.h"
#include "Format/byte_buffer.h"
#include "Format/read_fault.h"

/*
 * Appends a tree. False without words of a fault: the tree is not valid, or deeper than `depth_max`. That is SIZE_MAX only for a tree that
 * tree_check has found valid.
 */
bool xml_write(CFTypeRef root, size_t depth_max, struct byte_buffer *buffer, struct read_fault *fault);

#endif
