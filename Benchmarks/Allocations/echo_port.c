/* SPDX-License-Identifier: Apache-2.0 */
/* What a C program writes for a port that answers with what it got. */
#include "echo_port.h"

#include <stddef.h>

#include "CoreFoundation/CFData.h"

static CFDataRef echo(CFMessagePortRef port, SInt32 number, CFDataRef data, void *info)
{
    (void)port;
    (void)number;
    (void)info;
    return CFDataCreate(NULL, CFDataGetBytePtr(data), CFDataGetLength(data));
}

CFMessagePortRef echo_port_create(CFStringRef name)
{
    return CFMessagePortCreateLocal(NULL, name, echo, NULL, NULL);
}

bool echo_port_request(CFMessagePortRef remote, const uint8_t *bytes, intptr_t length, bool wants_answer)
{
    CFDataRef data = CFDataCreate(NULL, bytes, length);
    CFDataRef answer = NULL;
    SInt32 status =
        CFMessagePortSendRequest(remote, 1, data, 10, 10, wants_answer ? CFSTR("answers") : NULL, wants_answer ? &answer : NULL);
    bool is_fine = status == kCFMessagePortSuccess && (!wants_answer || (answer && CFDataGetLength(answer) == length));

    CFRelease(data);
    if (answer) {
        CFRelease(answer);
    }
    return is_fine;
}
