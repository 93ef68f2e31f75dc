/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is linked with the add-on library for services: it hears that the folder of its own is written into. */
#include <CRLFileSource.h>
#include <CoreFoundation/CoreFoundation.h>
#include <stdlib.h>
#include <unistd.h>

static void on_change(CFRunLoopSourceRef source, CFOptionFlags events, void *info)
{
    (void)source;
    (void)info;
    CFRunLoopStop(CFRunLoopGetCurrent());
    if (!(events & kCRLFileWritten)) {
        exit(1);
    }
}

int main(void)
{
    char folder[] = "/tmp/services-XXXXXX";
    char inside[sizeof folder + 2];
    char *made = mkdtemp(folder);
    CFRunLoopSourceRef source = made ? CRLFileSourceCreateWithPath(NULL, folder, kCRLFileWritten, 0, on_change, NULL) : NULL;
    CFRunLoopRunResult result;
    int i;

    for (i = 0; folder[i]; i++) {
        inside[i] = folder[i];
    }
    inside[i] = '/';
    inside[i + 1] = 'a';
    inside[i + 2] = '\0';
    if (!source || symlink("nowhere", inside) != 0) {
        return 1;
    }
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, false);
    return unlink(inside) == 0 && rmdir(folder) == 0 && result == kCFRunLoopRunStopped ? 0 : 1;
}
