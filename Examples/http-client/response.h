/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of a response of HTTP/1.1, which takes bytes as they come. */
#ifndef HTTP_CLIENT_RESPONSE_H
#define HTTP_CLIENT_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { most_line = 4096 };

enum response_state {
    response_status_line,
    response_headers,
    response_counted_body, /* Content-Length says how long it is */
    response_body_to_the_end, /* of the connection */
    response_chunk_size,
    response_chunk,
    response_chunk_end,
    response_trailer,
    response_done,
    response_is_wrong,
};

struct response {
    enum response_state state;
    int status; /* 0 before the first line */
    uint64_t length; /* of the body so far */
    uint64_t hash; /* FNV-1a of the body */
    uint64_t left; /* of the body, or of the chunk */
    bool has_length;
    bool is_chunked;
    size_t line_length;
    char line[most_line];
};

void response_init(struct response *response);
void response_take(struct response *response, const uint8_t *bytes, size_t count);
/* The connection has ended. Returns whether the response is whole. */
bool response_end(struct response *response);

#endif
