/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a bridge, whose server is not there: it is told so, and ends. */
#include <CRLNats.h>
#include <CoreFoundation/CoreFoundation.h>
#include <stdio.h>

static int told_count;

static void told(CRLNatsBridgeRef bridge, CRLNatsEvent event, const char *name, const char *text, void *info)
{
    (void)bridge;
    (void)name;
    (void)info;
    if (event == kCRLNatsCannotConnect) {
        told_count++;
        (void)puts(text);
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
}

int main(void)
{
    CRLNatsConfiguration configuration = {.servers = "nats://127.0.0.1:1", .callback = told};
    CRLNatsBridgeRef bridge = CRLNatsBridgeCreate(&configuration);

    if (!bridge || !CRLNatsBridgeImport(bridge, "jobs", NULL, NULL)) {
        return 1;
    }
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, false);
    CRLNatsBridgeInvalidate(bridge);
    return told_count == 1 ? 0 : 1;
}
