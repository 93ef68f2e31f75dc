/* SPDX-License-Identifier: Apache-2.0 */
/* See fork_uses.h. Each makes what it uses, in a mode of its own, and gives it back. */
#define _GNU_SOURCE
#include "Failure/fork_uses.h"

#include <errno.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CFNetwork/CFHost.h"
#include "CRLMachPort.h"
#include "CRLMessagePort.h"
#include "CRLRunLoop.h"
#include "CRLTrace.h"
#include "CoreServices/CoreServices.h"
#include "Loop/loop_probe.h"
#include "Port/port_probe.h"

#define FORK_MODE CFSTR("fork")
static const CFTimeInterval patience_s = 30; /* in a child, where nobody else is */

static bool is_described(CFTypeRef object)
{
    CFStringRef words = CFCopyDescription(object);
    bool has_words = words && CFStringGetLength(words) > 0;

    if (words) {
        CFRelease(words);
    }
    return has_words;
}

static void run_with(CFRunLoopSourceRef source, const bool *is_over)
{
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, FORK_MODE);
    while (!*is_over && CFRunLoopRunInMode(FORK_MODE, patience_s, true) == kCFRunLoopRunHandledSource) {
    }
    CFRunLoopRemoveSource(CFRunLoopGetCurrent(), source, FORK_MODE);
}

/* ---- loops ---- */

static void count(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    ++*(int *)info;
}

bool fork_use_timers(void)
{
    int calls = 0;
    CFRunLoopTimerContext context = {.info = &calls};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, 0, 0, 0, 0, count, &context);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, FORK_MODE);
    CFRunLoopRunInMode(FORK_MODE, 0.0005, false);
    CFRelease(timer);
    return calls == 1;
}

bool fork_use_loops(void)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    CFRunLoopWakeUp(loop);
    CFRelease(CFRunLoopCopyAllModes(loop));
    return is_described(loop);
}

static void set_flag(void *info)
{
    *(bool *)info = true;
}

static void see_activity(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer;
    (void)activity;
    set_flag(info);
}

bool fork_use_sources(void)
{
    bool is_performed = false;
    bool is_called = false;
    bool is_seen = false;
    CFRunLoopSourceContext source_context = {.info = &is_performed, .perform = set_flag};
    CFRunLoopObserverContext observer_context = {.info = &is_seen};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, &source_context);
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopEntry, false, 0, see_activity, &observer_context);

    CFRunLoopAddObserver(CFRunLoopGetCurrent(), observer, FORK_MODE);
    CRLRunLoopPerformFunction(CFRunLoopGetCurrent(), FORK_MODE, set_flag, &is_called, NULL);
    CFRunLoopSourceSignal(source);
    run_with(source, &is_performed);
    CFRelease(observer);
    CFRelease(source);
    return is_performed && is_called && is_seen;
}

bool fork_use_hosted_loops(void)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    bool is_performed = false;
    CFRunLoopSourceContext context = {.info = &is_performed, .perform = set_flag};
    CFRunLoopSourceRef source = CFRunLoopSourceCreate(NULL, 0, &context);
    bool is_hosted;

    CFRunLoopAddSource(loop, source, FORK_MODE);
    CFRunLoopSourceSignal(source);
    is_hosted = CRLRunLoopGetDescriptor(loop) >= 0 && CRLRunLoopPrepare(loop, FORK_MODE) && CRLRunLoopGetTimeout(loop) == 0 &&
                CRLRunLoopDispatch(loop) == 0;
    CRLRunLoopLeave(loop);
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
    return is_hosted && is_performed;
}

static void take_signal(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info)
{
    (void)source;
    *(bool *)info = signal->ssi_signo == SIGUSR1;
}

bool fork_use_signals(void)
{
    bool is_heard = false;
    CRLSourceContext context = {.info = &is_heard};
    CFRunLoopSourceRef source = CRLSignalSourceCreate(NULL, SIGUSR1, 0, take_signal, &context);

    pthread_kill(pthread_self(), SIGUSR1);
    run_with(source, &is_heard);
    CFRunLoopSourceInvalidate(source);
    CFRelease(source);
    return is_heard;
}

static void take_end(CFRunLoopSourceRef source, pid_t pid, int status, void *info)
{
    (void)source;
    (void)pid;
    *(bool *)info = WIFEXITED(status) && WEXITSTATUS(status) == 3;
}

bool fork_use_children(void)
{
    bool is_heard = false;
    CRLSourceContext context = {.info = &is_heard};
    pid_t child = fork();
    CFRunLoopSourceRef source;

    if (child == 0) {
        _exit(3);
    }
    source = CRLChildSourceCreate(NULL, child, 0, take_end, &context);
    run_with(source, &is_heard);
    CFRelease(source);
    return is_heard;
}

/* One trace at a time is on in a process. A child goes on with its parent's. */
bool fork_use_traces(void)
{
    static _Atomic int number;
    char path[256];
    int error;

    (void)snprintf(path, sizeof path, "%s/trace-%d-%d", port_probe_directory(), (int)getpid(), number++);
    error = CRLTraceStart(path, 4096);
    CFRunLoopRunInMode(FORK_MODE, 0, false);
    if (error == 0) {
        CRLTraceStop();
        unlink(path);
    }
    return error == 0 || error == EBUSY;
}

static OSStatus post(void *context)
{
    CFRunLoopGetCurrent();
    sem_post(context);
    return noErr;
}

bool fork_use_tasks(void)
{
    sem_t semaphore;
    OSStatus status;

    sem_init(&semaphore, 0, 0);
    status = MPCreateTask(post, &semaphore, 0, NULL, NULL, NULL, 0, NULL);
    while (status == noErr && sem_wait(&semaphore) != 0) {
    }
    sem_destroy(&semaphore);
    return status == noErr;
}

/* ---- ports ---- */

struct own_port {
    CFMessagePortRef local;
    CFMessagePortRef remote;
    CFRunLoopSourceRef source; /* NULL: there are no ports */
    CFDataRef sent;
};

/* Ports of a name of their own. The callback may be NULL. */
static struct own_port own_port_open(CRLMessagePortCallBack callback, CFStringRef mode)
{
    CFUUIDRef uuid = CFUUIDCreate(NULL);
    CFStringRef name = CFUUIDCreateString(NULL, uuid);
    struct own_port port = {.local = CFMessagePortCreateLocal(NULL, name, port_echo, NULL, NULL), .sent = port_data("hello")};

    port.remote = port.local ? CFMessagePortCreateRemote(NULL, name) : NULL;
    if (port.remote && (!callback || CRLMessagePortSetCallBack(port.local, callback))) {
        port.source = CFMessagePortCreateRunLoopSource(NULL, port.local, 0);
        CFRunLoopAddSource(CFRunLoopGetCurrent(), port.source, mode);
    }
    CFRelease(name);
    CFRelease(uuid);
    return port;
}

static void own_port_close(struct own_port *port)
{
    if (port->local) {
        port_drop(port->local);
    }
    if (port->remote) {
        CFRelease(port->remote);
    }
    if (port->source) {
        CFRelease(port->source);
    }
    CFRelease(port->sent);
}

bool fork_use_ports(void)
{
    struct own_port port = own_port_open(NULL, FORK_MODE);
    CFDataRef reply = NULL;
    bool is_answered = port.source &&
                       CFMessagePortSendRequest(port.remote, 1, port.sent, 10, 10, FORK_MODE, &reply) == kCFMessagePortSuccess && reply &&
                       CFEqual(reply, port.sent);

    if (reply) {
        CFRelease(reply);
    }
    own_port_close(&port);
    return is_answered;
}

static CFDataRef defer_echo(CFMessagePortRef local, SInt32 number, CFDataRef data, void *info, CRLReceivedMessageRef message)
{
    CRLDeferredReplyRef reply = CRLReceivedMessageDeferReply(message);

    (void)local;
    (void)number;
    (void)info;
    if (reply) {
        CRLDeferredReplySend(reply, kCRLReplyAnswered, data);
    }
    return NULL;
}

static void take_reply(void *info, SInt32 result, CRLReplyStatus status, CFDataRef reply)
{
    *(bool *)info = result == kCFMessagePortSuccess && status == kCRLReplyAnswered && port_data_is(reply, "hello");
    CFRunLoopStop(CFRunLoopGetCurrent());
}

bool fork_use_deferred_replies(void)
{
    struct own_port port = own_port_open(defer_echo, kCFRunLoopDefaultMode);
    CRLMessageSenderRef sender = CRLMessageSenderCreate();
    bool is_answered = false;

    if (port.source && sender) {
        CRLSentMessageRelease(CRLMessageSenderSend(sender, port.remote, 1, port.sent, patience_s, true, take_reply, &is_answered));
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, patience_s, false);
    }
    if (sender) {
        CRLMessageSenderDestroy(sender);
    }
    own_port_close(&port);
    return is_answered;
}

static void take_message(CFMachPortRef port, void *message, CFIndex size, void *info)
{
    (void)port;
    (void)size;
    *(bool *)info = ((mach_msg_header_t *)message)->msgh_id == 7;
}

bool fork_use_mach_ports(void)
{
    bool is_heard = false;
    CFMachPortContext context = {.info = &is_heard};
    CFMachPortRef port = CFMachPortCreate(NULL, take_message, &context, NULL);
    CFRunLoopSourceRef source = CFMachPortCreateRunLoopSource(NULL, port, 0);
    const mach_msg_header_t message = {.msgh_size = sizeof message, .msgh_remote_port = CFMachPortGetPort(port), .msgh_id = 7};
    bool is_sent = CRLMachPortSend(&message, 0) == kCRLMachPortSuccess;

    run_with(source, &is_heard);
    CFMachPortInvalidate(port);
    CFRelease(source);
    CFRelease(port);
    return is_sent && is_heard;
}

/* ---- bytes ---- */

/* Sends five bytes through the open streams, and frees them. */
static bool carries(CFReadStreamRef reader, CFWriteStreamRef writer)
{
    UInt8 bytes[8];
    bool is_carried = CFWriteStreamWrite(writer, (const UInt8 *)"hello", 5) == 5 && CFReadStreamRead(reader, bytes, sizeof bytes) == 5;

    CFReadStreamClose(reader);
    CFWriteStreamClose(writer);
    CFRelease(reader);
    CFRelease(writer);
    return is_carried;
}

bool fork_use_bound_pairs(void)
{
    CFReadStreamRef reader;
    CFWriteStreamRef writer;

    CFStreamCreateBoundPair(NULL, &reader, &writer, 16);
    return CFReadStreamOpen(reader) && CFWriteStreamOpen(writer) && carries(reader, writer);
}

static void see_event(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    (void)stream;
    *(bool *)info = type == kCFStreamEventOpenCompleted;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

/* To a listener of its own. */
bool fork_use_connections(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_open = false;
    bool is_carried = false;
    CFStreamClientContext context = {.info = &is_open};
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    int peer;

    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        return false;
    }
    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("127.0.0.1"), ntohs(address.sin_port), &reader, &writer);
    CFReadStreamSetClient(reader, kCFStreamEventOpenCompleted, see_event, &context);
    CFReadStreamScheduleWithRunLoop(reader, CFRunLoopGetCurrent(), FORK_MODE);
    if (CFReadStreamOpen(reader) && CFWriteStreamOpen(writer)) {
        CFRunLoopRunInMode(FORK_MODE, patience_s, false);
    }
    peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    (void)!write(peer, "hello", 5);
    is_carried = carries(reader, writer);
    close(peer);
    close(listener);
    return is_open && is_carried;
}

/* A file of the system's, through a stream of a URL. */
bool fork_use_files(void)
{
    CFURLRef url = CFURLCreateWithFileSystemPath(NULL, CFSTR("/proc/self/stat"), kCFURLPOSIXPathStyle, false);
    CFReadStreamRef reader = CFReadStreamCreateWithFile(NULL, url);
    UInt8 bytes[8];
    bool is_read = CFReadStreamOpen(reader) && CFReadStreamRead(reader, bytes, sizeof bytes) > 0;

    CFReadStreamClose(reader);
    CFRelease(reader);
    CFRelease(url);
    return is_read;
}

static void take_bytes(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    (void)socket;
    (void)type;
    (void)address;
    *(bool *)info = CFDataGetLength(data) == 5;
}

bool fork_use_sockets(void)
{
    int pair[2];
    bool is_heard = false;
    bool is_told;
    CFSocketContext context = {.info = &is_heard};
    CFSocketRef socket;
    CFRunLoopSourceRef source;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return false;
    }
    socket = CFSocketCreateWithNative(NULL, pair[0], kCFSocketDataCallBack, take_bytes, &context);
    source = CFSocketCreateRunLoopSource(NULL, socket, 0);
    (void)!write(pair[1], "hello", 5);
    run_with(source, &is_heard);
    is_told = is_described(socket);
    CFSocketInvalidate(socket);
    close(pair[1]);
    CFRelease(source);
    CFRelease(socket);
    return is_told && is_heard;
}

static void take_descriptor(CFFileDescriptorRef descriptor, CFOptionFlags types, void *info)
{
    (void)descriptor;
    *(bool *)info = types == kCFFileDescriptorReadCallBack;
}

bool fork_use_descriptors(void)
{
    bool is_heard = false;
    bool is_told;
    CFFileDescriptorContext context = {.info = &is_heard};
    CFFileDescriptorRef descriptor = CFFileDescriptorCreate(NULL, probe_event(), true, take_descriptor, &context);
    CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, descriptor, 0);

    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack);
    probe_event_post(CFFileDescriptorGetNativeDescriptor(descriptor));
    run_with(source, &is_heard);
    is_told = is_described(descriptor);
    CFFileDescriptorInvalidate(descriptor);
    CFRelease(source);
    CFRelease(descriptor);
    return is_told && is_heard;
}

bool fork_use_hosts(void)
{
    CFHostRef host = CFHostCreateWithName(NULL, CFSTR("127.0.0.1"));
    bool is_found = CFHostStartInfoResolution(host, kCFHostAddresses, NULL) && is_described(host);

    CFRelease(host);
    return is_found;
}
