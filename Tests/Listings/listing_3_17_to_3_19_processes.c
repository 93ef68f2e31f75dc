/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings 3-17 to 3-19 between processes: the same functions as in listing_3_17_to_3_19.c, but that the worker is another process, which
 * knows the main process's port by its name only.
 * Rules: 189 194 196 201 202 207 210 212 218 219 223
 */
#include <CoreFoundation/CoreFoundation.h>
#include <CoreServices/CoreServices.h>
#include <sys/wait.h>

#include "listing.h"
#include "listing_ports.h"

enum { workers = 2 };

#define kCheckinMessage 100

static CFMutableArrayRef activeThreads;

/* ---- what the guide leaves to the reader ---- */

static void AddPortToListOfActiveThreads(CFMessagePortRef messagePort) {
    CFArrayAppendValue(activeThreads, messagePort); /* retains it */
}

/* The worker doubles what it is sent, and ends when it is sent nothing. */
static CFDataRef ProcessClientRequest(CFMessagePortRef local, SInt32 msgid, CFDataRef data, void *info) {
    CFIndex length = CFDataGetLength(data);
    CFMutableDataRef reply = CFDataCreateMutable(NULL, 0);

    (void)local;
    CHECK(CFMessagePortIsRemote((CFMessagePortRef)info)); /* the main thread's port */
    CHECK(msgid == (SInt32)length);
    CFDataAppendBytes(reply, CFDataGetBytePtr(data), length);
    CFDataAppendBytes(reply, CFDataGetBytePtr(data), length);
    if (length == 0) CFRunLoopStop(CFRunLoopGetCurrent());
    return reply;
}

/* ---- listing 3-18 ---- */

/* Main thread port message handler */
static CFDataRef MainThreadResponseHandler(CFMessagePortRef local, SInt32 msgid, CFDataRef data, void *info) {
    (void)local;
    (void)info;
    if (msgid == kCheckinMessage) {
        CFMessagePortRef messagePort;
        CFStringRef threadPortName;
        CFIndex bufferLength = CFDataGetLength(data);
        UInt8 *buffer = CFAllocatorAllocate(NULL, bufferLength, 0);

        CFDataGetBytes(data, CFRangeMake(0, bufferLength), buffer);
        threadPortName = CFStringCreateWithBytes(NULL, buffer, bufferLength, kCFStringEncodingASCII, FALSE);

        /* You must obtain a remote message port by name. */
        messagePort = CFMessagePortCreateRemote(NULL, (CFStringRef)threadPortName);
        if (messagePort) {
            /* Retain and save the thread's port for future reference. */
            AddPortToListOfActiveThreads(messagePort);
            /* Since the port is retained by the previous function, release it here. */
            CFRelease(messagePort);
        }

        /* Clean up. */
        CFRelease(threadPortName);
        CFAllocatorDeallocate(NULL, buffer);
    } else {
        CHECK(!"the main thread gets check-ins only");
    }
    return NULL;
}

/* ---- listing 3-19 ---- */

static OSStatus ServerThreadEntryPoint(void *param) {
    /* Create the remote port to the main thread. */
    CFMessagePortRef mainThreadPort;
    CFStringRef portName = (CFStringRef)param;

    mainThreadPort = CFMessagePortCreateRemote(NULL, portName);
    CHECK(mainThreadPort != NULL); /* the printed listing does not look */

    /* Free the string that was passed in param. */
    CFRelease(portName);

    /* Create a port for the worker thread. */
    CFStringRef myPortName = CFStringCreateWithFormat(NULL, NULL, CFSTR("com.MyApp.Thread-%d"), (int)getpid());

    /* Store the port in this thread's context info for later reference. */
    CFMessagePortContext context = {0, mainThreadPort, NULL, NULL, NULL};
    Boolean shouldFreeInfo;

    CFMessagePortRef myPort = CFMessagePortCreateLocal(NULL, myPortName, &ProcessClientRequest, &context, &shouldFreeInfo);
    if (shouldFreeInfo) {
        /* Couldn't create a local port, so kill the thread. */
        CHECK(!"a local port");
        MPExit(0);
    }

    CFRunLoopSourceRef rlSource = CFMessagePortCreateRunLoopSource(NULL, myPort, 0);
    if (!rlSource) {
        /* Couldn't create a source, so kill the thread. */
        CHECK(!"a source");
        MPExit(0);
    }

    /* Add the source to the current run loop. */
    CFRunLoopAddSource(CFRunLoopGetCurrent(), rlSource, kCFRunLoopDefaultMode);

    /* Once installed, these can be freed. The listing frees the port; here the end needs it. */
    CFRelease(rlSource);

    /* Package up the port name and send the check-in message. */
    CFDataRef outData;
    CFIndex stringLength = CFStringGetLength(myPortName);
    UInt8 *buffer = CFAllocatorAllocate(NULL, stringLength, 0);

    CFStringGetBytes(myPortName, CFRangeMake(0, stringLength), kCFStringEncodingASCII, 0, FALSE, buffer, stringLength, NULL);
    outData = CFDataCreate(NULL, buffer, stringLength);
    /* Without a reply mode the timeout for the reply and its data count for nothing. */
    CHECK(CFMessagePortSendRequest(mainThreadPort, kCheckinMessage, outData, 5, 0.0, NULL, NULL) == kCFMessagePortSuccess);

    /* Clean up thread data structures. */
    CFRelease(outData);
    CFAllocatorDeallocate(NULL, buffer);
    CFRelease(myPortName); /* which the listing forgets */

    /* Enter the run loop. */
    CFRunLoopRun();

    CFMessagePortInvalidate(myPort);
    CFRelease(myPort);
    CFRelease(mainThreadPort);
    return noErr;
}

/* ---- listing 3-17 ---- */

static pid_t MySpawnProcess(CFStringRef myPortName) {
    pid_t pid = fork();

    if (pid == 0) {
        listing_begin();
        CHECK(ServerThreadEntryPoint((void *)(uintptr_t)CFRetain(myPortName)) == noErr);
        _exit(listing_end());
    }
    return pid;
}

/* The main thread goes on: it waits for the check-ins, and then asks the workers. */
static void askWorkers(void) {
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)"abc", 3);

    while (CFArrayGetCount(activeThreads) < workers) CFRunLoopRunInMode(kCFRunLoopDefaultMode, 10, TRUE);
    for (CFIndex i = 0; i < workers; i++) {
        CFMessagePortRef port = (CFMessagePortRef)(uintptr_t)CFArrayGetValueAtIndex(activeThreads, i);
        CFDataRef reply = NULL;

        CHECK(CFMessagePortSendRequest(port, 3, data, 5, 5, kCFRunLoopDefaultMode, &reply) == kCFMessagePortSuccess);
        CHECK(reply != NULL && CFDataGetLength(reply) == 6 && memcmp(CFDataGetBytePtr(reply), "abcabc", 6) == 0);
        if (reply != NULL) CFRelease(reply);
    }
    for (CFIndex i = 0; i < workers; i++) { /* the end of each */
        CFMessagePortRef port = (CFMessagePortRef)(uintptr_t)CFArrayGetValueAtIndex(activeThreads, i);

        CHECK(CFMessagePortSendRequest(port, 0, NULL, 5, 0, NULL, NULL) == kCFMessagePortSuccess);
        while (CFMessagePortIsValid(port)) sched_yield();
    }
    CFRelease(data);
}

int main(void) {
    CFMessagePortContext context = {0, NULL, NULL, NULL, NULL};
    Boolean shouldFreeInfo;
    pid_t pids[workers];

    listing_begin();
    listing_ports_begin();
    activeThreads = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    CFMessagePortRef myPort =
        CFMessagePortCreateLocal(NULL, CFSTR("com.myapp.MainProcess"), &MainThreadResponseHandler, &context, &shouldFreeInfo);
    CFRunLoopSourceRef rlSource = CFMessagePortCreateRunLoopSource(NULL, myPort, 0);
    CHECK(myPort != NULL && rlSource != NULL && !shouldFreeInfo);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), rlSource, kCFRunLoopDefaultMode);
    CFRelease(rlSource);

    for (int i = 0; i < workers; i++) pids[i] = MySpawnProcess(CFSTR("com.myapp.MainProcess"));
    askWorkers();
    for (int i = 0; i < workers; i++) {
        int status = 1;
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    }
    CFMessagePortInvalidate(myPort);
    CFRelease(myPort);
    CFRelease(activeThreads);
    listing_ports_end();
    return listing_end();
}
