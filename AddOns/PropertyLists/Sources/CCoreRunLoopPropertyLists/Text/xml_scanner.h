/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goes through XML, tag by tag: tags, what stands between them that does not count, and the text of an element. It knows no declarations
 * but the one of a document type, whose own declarations it refuses, and no entities but those that XML has and numbers of characters.
 *
 * It belongs to one thread, and borrows the bytes. A call that returns false has said in the fault what is wrong.
 */
#ifndef CRL_PLIST_XML_SCANNER_H
#define CRL_PLIST_XML_SCANNER_H

#include "plist_link_names.h"

#include "Format/byte_buffer.h"
#include "Format/read_fault.h"

enum xml_element {
    xml_plist,
    xml_array,
    xml_dict,
    xml_key,
    xml_string,
    xml_data,
    xml_date,
    xml_real,
    xml_integer,
    xml_true,
    xml_false,
    xml_unknown
};

struct xml_scanner {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
    struct read_fault *fault;
    struct byte_buffer text; /* of an element, where it is not in the document as it is */
};

struct xml_tag {
    enum xml_element element; /* never xml_unknown */
    bool is_end;
    bool is_empty; /* <a/>: there is no tag for its end */
};

/* The name of an element as text. */
const char *xml_element_name(enum xml_element element);
/* Passes over blanks, comments, processing instructions and, if it may come, a document type. */
bool xml_scanner_skip(struct xml_scanner *scanner, bool may_be_document_type);
/* Reads a tag after the skipping. */
bool xml_scanner_tag(struct xml_scanner *scanner, struct xml_tag *ret_tag);
/* Reads the tag for the end of an element. */
bool xml_scanner_end_tag(struct xml_scanner *scanner, enum xml_element element);
/* Gives what is up to the next tag, as it is in the document, behind which a byte `<` lies. */
bool xml_scanner_raw_text(struct xml_scanner *scanner, const uint8_t **ret_text, size_t *ret_length);
/*
 * Gives the same with entities and quoted sections resolved. `*ret_is_raw` if it is as in the document; otherwise it is kept until the
 * next text.
 */
bool xml_scanner_text(struct xml_scanner *scanner, const uint8_t **ret_text, size_t *ret_length, bool *ret_is_raw);
bool xml_scanner_fail(struct xml_scanner *scanner, const char *words);

#endif
