/* SPDX-License-Identifier: Apache-2.0 */
/* Writes texts as JSON has them. */
#ifndef COMMAND_JSON_STRING_H
#define COMMAND_JSON_STRING_H

#include <stddef.h>
#include <stdio.h>

/* Writes a JSON string with its quotes from bytes in UTF-8. Invalid bytes are written as U+FFFD, those of `escaped` by their numbers. */
void write_json_string(FILE *file, const char *bytes, size_t length, const char *escaped);

#endif
