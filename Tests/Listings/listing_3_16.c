/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing 3-16, "Registering a message port", which is Cocoa's, by what Core Foundation has for it: a local port is made by its name, which
 * registers it, and its callback stands for the delegate. The name must be unique: a second port of the name is the first one.
 * Rules: 189 192 194 196 198 199 201 236
 */
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"
#include "listing_ports.h"

static int handled;

static CFDataRef handlePortMessage(CFMessagePortRef local, SInt32 msgid, CFDataRef data, void *info) {
    (void)local;
    (void)data;
    CHECK(info == &handled);
    handled += msgid;
    return NULL;
}

int main(void) {
    listing_begin();
    listing_ports_begin();

    /* Configure the object, add it to the current run loop, and register it under a specific name. */
    CFMessagePortContext context = {0, &handled, NULL, NULL, NULL};
    CFStringRef localPortName = CFStringCreateWithFormat(NULL, NULL, CFSTR("MyPortName"));
    Boolean shouldFreeInfo;
    CFMessagePortRef localPort = CFMessagePortCreateLocal(NULL, localPortName, handlePortMessage, &context, &shouldFreeInfo);
    CHECK(localPort != NULL && !shouldFreeInfo);
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, localPort, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);

    CHECK(CFEqual(CFMessagePortGetName(localPort), localPortName));
    CFMessagePortRef same = CFMessagePortCreateLocal(NULL, localPortName, handlePortMessage, NULL, &shouldFreeInfo);
    CHECK(same == localPort && shouldFreeInfo);
    CFRelease(same);
    CHECK(!CFMessagePortSetName(localPort, localPortName));

    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, localPortName);
    CHECK(remote != NULL);
    CHECK(CFMessagePortSendRequest(remote, 7, NULL, 1, 1, kCFRunLoopDefaultMode, NULL) == kCFMessagePortSuccess);
    CHECK(handled == 7);

    CFMessagePortInvalidate(localPort);
    CHECK(!CFMessagePortIsValid(remote));
    CHECK(CFMessagePortCreateRemote(NULL, localPortName) == NULL);
    CFRelease(remote);
    CFRelease(source);
    CFRelease(localPort);
    CFRelease(localPortName);
    listing_ports_end();
    return listing_end();
}
