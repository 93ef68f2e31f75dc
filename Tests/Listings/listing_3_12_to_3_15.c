/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listings 3-12 to 3-15, two threads that talk by Mach ports, in C: NSMachPort becomes CFMachPort, NSPortMessage the message's header, and
 * sending before now a CRLMachPortSend that does not wait. As printed, the worker releases a port that it did not retain; here the main
 * thread retains it for the worker.
 * After the check-in the main thread sends three commands to the worker's port. The worker's run returns after each; the last one makes it
 * exit, and the end of its port is noticed by the main thread.
 * Rules: 48 245 246 247 249 250
 */
#include <CRLMachPort.h>
#include <CoreFoundation/CoreFoundation.h>

#include "listing.h"

#define kCheckinMessage 100
#define kCommandMessage 200
#define kExitMessage 201

static CFMachPortRef port_create(CFMachPortCallBack callout, void *delegate) {
    CFMachPortContext context = {0, delegate, NULL, NULL, NULL};
    return CFMachPortCreate(kCFAllocatorDefault, callout, &context, NULL);
}

/* [[NSRunLoop currentRunLoop] addPort:port forMode:NSDefaultRunLoopMode] */
static void port_add(CFMachPortRef port) {
    CFRunLoopSourceRef source = CFMachPortCreateRunLoopSource(kCFAllocatorDefault, port, 0);
    CHECK(source != NULL);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    CFRelease(source);
}

/* [messageObj sendBeforeDate:[NSDate date]] */
static bool message_send(CFMachPortRef sendPort, CFMachPortRef receivePort, SInt32 msgid) {
    mach_msg_header_t message = {0};
    message.msgh_size = sizeof message;
    message.msgh_remote_port = CFMachPortGetPort(sendPort);
    message.msgh_local_port = receivePort ? CFMachPortGetPort(receivePort) : MACH_PORT_NULL;
    message.msgh_id = msgid;
    return CRLMachPortSend(&message, 0) == kCRLMachPortSuccess;
}

/* Listings 3-14 and 3-15: the worker. */

struct worker {
    CFMachPortRef remotePort;
    CFMachPortRef myPort;
    int commands;
    bool shouldExit;
};

static void worker_handlePortMessage(CFMachPortRef port, void *msg, CFIndex size, void *info) {
    struct worker *self = info;
    const mach_msg_header_t *portMessage = msg;
    CHECK(port == self->myPort);
    CHECK(size == (CFIndex)sizeof *portMessage);
    if (portMessage->msgh_id == kCommandMessage) self->commands++;
    if (portMessage->msgh_id == kExitMessage) self->shouldExit = true;
}

static void worker_sendCheckinMessage(struct worker *self, CFMachPortRef outPort) {
    /* Retain and save the remote port for future use. */
    self->remotePort = (CFMachPortRef)CFRetain(outPort);

    /* Create and configure the worker thread port. */
    self->myPort = port_create(&worker_handlePortMessage, self);
    port_add(self->myPort);

    /* Create the check-in message, and send it immediately. */
    CHECK(message_send(outPort, self->myPort, kCheckinMessage));
}

static void *LaunchThreadWithPort(void *inData) {
    /* Set up the connection between this thread and the main thread. */
    CFMachPortRef distantPort = inData;
    struct worker workerObj = {0};
    worker_sendCheckinMessage(&workerObj, distantPort);
    CFRelease(distantPort);

    /* Let the run loop process things. */
    int runs = 0;
    do {
        CHECK(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e10, TRUE) == kCFRunLoopRunHandledSource);
        runs++;
    } while (!workerObj.shouldExit);

    CHECK(workerObj.commands == 2);
    CHECK(runs == 3);
    CFMachPortInvalidate(workerObj.myPort);
    CFRelease(workerObj.myPort);
    CFRelease(workerObj.remotePort);
    return NULL;
}

/* Listings 3-12 and 3-13: the main thread. */

struct object {
    CFMachPortRef myPort;
    CFMachPortRef distantPort;
    pthread_t thread;
    atomic_bool distantPortHasEnded; /* set on the worker's thread */
};

static struct object theObject;

static void portDidBecomeInvalid(CFMachPortRef port, void *info) {
    CHECK(!CFMachPortIsValid(port));
    CHECK(info != NULL); /* the port's own: the worker */
    atomic_store(&theObject.distantPortHasEnded, true);
}

static void storeDistantPort(struct object *self, CFMachPortRef port) {
    self->distantPort = port;
    CFMachPortSetInvalidationCallBack(port, &portDidBecomeInvalid);
}

/* Handle responses from the worker thread. */
static void handlePortMessage(CFMachPortRef port, void *msg, CFIndex size, void *info) {
    struct object *self = info;
    const mach_msg_header_t *portMessage = msg;
    (void)size;
    CHECK(port == self->myPort);
    CHECK(CFRunLoopGetCurrent() == CFRunLoopGetMain());
    if (portMessage->msgh_id == kCheckinMessage) {
        /* Get the worker thread's communications port: the same object, as both threads are in one process. Retain and save it. */
        Boolean shouldFreeInfo = false;
        CFMachPortRef distantPort =
            CFMachPortCreateWithPort(kCFAllocatorDefault, portMessage->msgh_remote_port, NULL, NULL, &shouldFreeInfo);
        CHECK(distantPort != NULL && shouldFreeInfo);
        if (distantPort) storeDistantPort(self, distantPort);
    }
}

static void launchThread(struct object *self) {
    self->myPort = port_create(&handlePortMessage, self);
    if (self->myPort) {
        /* Install the port as an input source on the current run loop. */
        port_add(self->myPort);

        /* Detach the thread. Let the worker release the port. */
        CFRetain(self->myPort);
        self->thread = listing_detach(&LaunchThreadWithPort, self->myPort);
    }
}

int main(void) {
    struct object *self = &theObject;
    listing_begin();
    launchThread(self);
    while (self->distantPort == NULL) CHECK(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1e10, TRUE) == kCFRunLoopRunHandledSource);
    CHECK(self->distantPort != self->myPort);
    CHECK(message_send(self->distantPort, self->myPort, kCommandMessage));
    CHECK(message_send(self->distantPort, self->myPort, kCommandMessage));
    CHECK(message_send(self->distantPort, self->myPort, kExitMessage));
    pthread_join(self->thread, NULL);
    CHECK(!CFMachPortIsValid(self->distantPort));
    CHECK(atomic_load(&self->distantPortHasEnded));
    CHECK(!message_send(self->distantPort, self->myPort, kCommandMessage));
    CFRelease(self->distantPort);
    CFMachPortInvalidate(self->myPort);
    CFRelease(self->myPort);
    return listing_end();
}
