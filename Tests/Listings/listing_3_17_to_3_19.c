/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings 3-17 to 3-19, "Attaching a Core Foundation message port to a new thread", "Receiving the checkin message" and "Setting up the
 * thread structures": the main thread makes a port and starts workers with its name; each makes a port of its own and checks in with that
 * one's name; the main thread connects to it. Changed: variables that the listings never use are left out, the results of
 * CFMessagePortCreateRemote are looked at, the entry point returns something, and the send's timeout is 5 s instead of 0.1. The stack of
 * 32 KiB that the listing asks for is the smallest that MPCreateTask gives, 64 KiB.
 * Rules: 189 194 196 197 201 202 212 218 219 223
 */
#include <CoreFoundation/CoreFoundation.h>
#include <CoreServices/CoreServices.h>

#include "listing.h"
#include "listing_ports.h"

enum { workers = 3 };

#define kThreadStackSize        (8 *4096)
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
    CFStringRef myPortName = CFStringCreateWithFormat(NULL, NULL, CFSTR("com.MyApp.Thread-%d"), MPCurrentTaskID());

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

static CFMessagePortRef mainPort;

static OSStatus MySpawnThread(void) {
    /* Create a local port for receiving responses. */
    CFStringRef myPortName;
    CFMessagePortRef myPort;
    CFRunLoopSourceRef rlSource;
    CFMessagePortContext context = {0, NULL, NULL, NULL, NULL};
    Boolean shouldFreeInfo;

    /* Create a string with the port name. */
    myPortName = CFStringCreateWithFormat(NULL, NULL, CFSTR("com.myapp.MainThread"));

    /* Create the port. From the second worker on, it is the one there is. */
    myPort = CFMessagePortCreateLocal(NULL, myPortName, &MainThreadResponseHandler, &context, &shouldFreeInfo);
    CHECK(shouldFreeInfo == (mainPort != NULL));
    if (myPort != NULL) {
        CHECK(mainPort == NULL || mainPort == myPort);
        mainPort = myPort;
        /* The port was successfully created. Now create a run loop source for it. */
        rlSource = CFMessagePortCreateRunLoopSource(NULL, myPort, 0);
        if (rlSource) {
            /* Add the source to the current run loop. */
            CFRunLoopAddSource(CFRunLoopGetCurrent(), rlSource, kCFRunLoopDefaultMode);
            /* Once installed, these can be freed. */
            CFRelease(myPort);
            CFRelease(rlSource);
        }
    }

    /* Create the thread and continue processing. */
    MPTaskID taskID;
    return (MPCreateTask(&ServerThreadEntryPoint, (void *)(uintptr_t)myPortName, kThreadStackSize, NULL, NULL, NULL, 0, &taskID));
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
    listing_begin();
    listing_ports_begin();
    activeThreads = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    for (int i = 0; i < workers; i++) CHECK(MySpawnThread() == noErr);
    askWorkers();
    CHECK(CFMessagePortIsValid(mainPort)); /* its source keeps it */
    CFMessagePortInvalidate(mainPort);
    CFRelease(activeThreads);
    listing_ports_end();
    return listing_end();
}
