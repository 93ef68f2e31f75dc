/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the kernel's answer of a route: nothing beyond them is read, and what is no answer is refused. */
#include <linux/rtnetlink.h>
#include <string.h>

#include "Reachability/route_message.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint8_t *message = malloc(size + (size == 0)); /* of its own size, so that a read beyond it is found */
    struct route_answer answer;
    struct nlmsghdr header;

    CHECK(message);
    memcpy(message, bytes, size);
    if (route_answer_read(&answer, message, size)) {
        memcpy(&header, message, sizeof header);
        CHECK(header.nlmsg_type == RTM_NEWROUTE && header.nlmsg_len <= size);
    }
    free(message);
    return 0;
}
