/* SPDX-License-Identifier: Apache-2.0 */
/* See response.h. */
#include "response.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void response_init(struct response *response)
{
    memset(response, 0, sizeof *response);
    response->hash = 0xCBF29CE484222325;
}

/* ---- the head ---- */

static void take_status_line(struct response *response)
{
    response->state = sscanf(response->line, "HTTP/1.%*1[01] %3d", &response->status) == 1 ? response_headers : response_is_wrong;
}

/* Returns the value of the header with that name, or NULL. */
static const char *value_of(const char *line, const char *name)
{
    size_t length = strlen(name);

    if (strncasecmp(line, name, length) != 0 || line[length] != ':') {
        return NULL;
    }
    return line + length + 1 + strspn(line + length + 1, " \t");
}

/* Returns false for what is no number, or one that is too large. */
static bool parse_number(const char *text, int base, uint64_t *ret_number)
{
    char *end;

    errno = 0;
    *ret_number = strtoull(text, &end, base);
    return end > text && *text != '-' && errno == 0;
}

static void begin_body(struct response *response)
{
    bool has_none = response->status == 204 || response->status == 304 || (response->has_length && response->left == 0);

    if (response->status < 200) { /* the final response comes behind it */
        response->state = response_status_line;
    } else if (response->is_chunked) {
        response->state = response_chunk_size;
    } else if (has_none) {
        response->state = response_done;
    } else {
        response->state = response->has_length ? response_counted_body : response_body_to_the_end;
    }
}

static void take_header(struct response *response)
{
    const char *value;

    if (response->line_length == 0) {
        begin_body(response);
    } else if ((value = value_of(response->line, "Content-Length"))) {
        response->has_length = parse_number(value, 10, &response->left);
        if (!response->has_length) {
            response->state = response_is_wrong;
        }
    } else if ((value = value_of(response->line, "Transfer-Encoding"))) {
        response->is_chunked = strcasecmp(value, "chunked") == 0;
    }
}

static void take_chunk_size(struct response *response)
{
    if (!parse_number(response->line, 16, &response->left)) {
        response->state = response_is_wrong;
    } else {
        response->state = response->left > 0 ? response_chunk : response_trailer;
    }
}

static void take_line(struct response *response)
{
    switch (response->state) {
    case response_status_line:
        take_status_line(response);
        break;
    case response_headers:
        take_header(response);
        break;
    case response_chunk_size:
        take_chunk_size(response);
        break;
    case response_chunk_end:
        response->state = response->line_length == 0 ? response_chunk_size : response_is_wrong;
        break;
    default: /* the trailer */
        response->state = response->line_length == 0 ? response_done : response_trailer;
    }
}

/* Adds a byte to the line, which ends with CR LF. */
static void take_byte_of_line(struct response *response, char byte)
{
    if (byte != '\n') {
        if (response->line_length == most_line - 1) {
            response->state = response_is_wrong;
        } else {
            response->line[response->line_length++] = byte;
        }
        return;
    }
    if (response->line_length > 0 && response->line[response->line_length - 1] == '\r') {
        response->line_length--;
    }
    response->line[response->line_length] = '\0';
    take_line(response);
    response->line_length = 0;
}

/* ---- the body ---- */

static bool is_in_body(const struct response *response)
{
    return response->state == response_counted_body || response->state == response_chunk || response->state == response_body_to_the_end;
}

/* Returns how many bytes belong to the body, or to the chunk. */
static size_t take_body(struct response *response, const uint8_t *bytes, size_t count)
{
    bool is_counted = response->state != response_body_to_the_end;

    if (is_counted && count > response->left) {
        count = (size_t)response->left;
    }
    for (size_t i = 0; i < count; i++) {
        response->hash = (response->hash ^ bytes[i]) * 0x100000001B3;
    }
    response->length += count;
    if (is_counted) {
        response->left -= count;
        if (response->left == 0) {
            response->state = response->state == response_chunk ? response_chunk_end : response_done;
        }
    }
    return count;
}

void response_take(struct response *response, const uint8_t *bytes, size_t count)
{
    while (count > 0 && response->state != response_done && response->state != response_is_wrong) {
        size_t taken = 1;

        if (is_in_body(response)) {
            taken = take_body(response, bytes, count);
        } else {
            take_byte_of_line(response, (char)*bytes);
        }
        bytes += taken;
        count -= taken;
    }
}

bool response_end(struct response *response)
{
    return response->state == response_done || response->state == response_body_to_the_end;
}
