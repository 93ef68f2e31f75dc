/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes any bytes as the head of a bridge's message and as an answer of JetStream, and escapes them as a name. A head that is taken is
 * encoded to the same bytes again, an escaped name has the characters of one token and is read back, and no decoder looks beyond the end.
 */
#include <stdbool.h>
#include <string.h>

#include "../Tests/C/unescape.h"
#include "Wire/bridge_frame.h"
#include "check.h"
#include "Wire/stream_api.h"
#include "Wire/subject.h"

static void check_frame(const uint8_t *bytes, size_t size)
{
    uint8_t again[bridge_frame_size];
    struct bridge_frame frame;
    enum bridge_frame_error error = bridge_frame_decode(bytes, size, &frame);

    CHECK(bridge_frame_error_text(error) != NULL);
    if (error == bridge_frame_ok) {
        bridge_frame_encode(&frame, again);
        CHECK(memcmp(again, bytes, sizeof again) == 0);
        CHECK(frame.length == size - bridge_frame_size && (frame.data == NULL) == (frame.length == 0));
        CHECK(frame.sender != 0);
    }
}

static void check_name(const uint8_t *bytes, size_t size)
{
    char token[3 * port_name_max + 1];
    char again[3 * port_name_max + 1];
    char text[port_name_max + 2] = "";

    memcpy(text, bytes, size < sizeof text ? size : sizeof text - 1);
    CHECK(strlen(text) <= port_name_max || name_fault(text, port_name_max));
    text[port_name_max] = '\0';
    (void)name_fault(text, port_name_max);
    subject_escape(text, token, sizeof token);
    CHECK(strspn(token, "-_%0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == strlen(token));
    unescape(token, again);
    CHECK(strcmp(again, text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct api_answer answer;
    uint8_t *exact = malloc(size ? size : 1); /* a byte beyond it is not the input's */

    CHECK(exact);
    if (size > 0) {
        memcpy(exact, bytes, size);
    }
    check_frame(exact, size);
    check_name(exact, size);
    answer = api_read_answer((const char *)exact, size);
    CHECK(strlen(answer.description) < sizeof answer.description && (answer.is_answer || answer.error == 0));
    free(exact);
    return 0;
}
