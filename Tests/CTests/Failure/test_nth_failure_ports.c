/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th failure in message ports and Mach-style ports. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLMachPort.h"
#include "CRLRunLoop.h"
#include "Failure/nth_failure.h"
#include "Port/inbox.h"
#include "Port/port_probe.h"
#include "Port/registry.h"

static const double patience_s = 1;
static _Atomic int handled;
static bool could_not_reply;

static CFDataRef echo(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    CFDataRef reply = CFDataCreateCopy(NULL, data);

    (void)local;
    (void)message_id;
    (void)info;
    handled++;
    could_not_reply |= !reply;
    return reply;
}

static CFMessagePortRef open_port(CFStringRef name, CFStringRef mode)
{
    CFMessagePortRef port = bag_keep(CFMessagePortCreateLocal(NULL, name, echo, NULL, NULL));
    CFRunLoopSourceRef source = port ? bag_keep(CFMessagePortCreateRunLoopSource(NULL, port, 0)) : NULL;

    if (!source) {
        return NULL;
    }
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, mode);
    return CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, mode) ? port : NULL;
}

static bool ask(CFMessagePortRef remote, CFDataRef data)
{
    CFDataRef reply = NULL;
    SInt32 result = CFMessagePortSendRequest(remote, 7, data, patience_s, patience_s, MODE, &reply);

    if (result != kCFMessagePortSuccess) {
        MUST(reply == NULL);
        return false;
    }
    MUST(reply != NULL);
    bag_keep(reply);
    if (could_not_reply) {
        return false;
    }
    MUST(CFEqual(reply, data));
    return true;
}

/* The server is this thread, in the mode in which it waits for the reply. */
static bool exchange(CFIndex size)
{
    static UInt8 bytes[1 << 20];
    CFMessagePortRef remote;
    CFDataRef data;

    handled = 0;
    could_not_reply = false;
    NEED(open_port(NAME, MODE));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    NEED(data = bag_keep(CFDataCreate(NULL, bytes, size)));
    NEED(ask(remote, data));
    NEED(ask(remote, data));
    MUST(handled == 2);
    NEED(CFMessagePortSendRequest(remote, 8, data, patience_s, 0, NULL, NULL) == kCFMessagePortSuccess);
    while (handled < 3 && CFRunLoopRunInMode(MODE, 0.2, true) == kCFRunLoopRunHandledSource) {
    }
    return handled == 3; /* without memory a message is dropped, which is logged, and told only to those who wait */
}

NTH_FAILURE(small_messages, "")
{
    return exchange(20);
}

NTH_FAILURE(messages_within_the_process, "")
{
    inboxes_are_off = false;
    return exchange(20);
}

NTH_FAILURE(messages_in_memory, "")
{
    return exchange(100000);
}

NTH_FAILURE(large_messages, "")
{
    if (!test_is_soak()) {
        return true; /* the same ways as messages_in_memory */
    }
    return exchange(1 << 20);
}

NTH_FAILURE(two_ports, "")
{
    CFMessagePortRef remote;
    CFDataRef data;

    could_not_reply = false;
    handled = 0;
    NEED(open_port(CFSTR("one name"), MODE));
    NEED(open_port(CFSTR("another name"), MODE));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, CFSTR("another name"))));
    NEED(data = bag_keep(CFDataCreate(NULL, (const UInt8 *)"x", 1)));
    return ask(remote, data);
}

NTH_FAILURE(names, "")
{
    CFMessagePortRef local;
    CFMessagePortRef same;
    CFMessagePortRef remote;

    NEED(open_port(CFSTR("another"), MODE));
    NEED(local = bag_keep(CFMessagePortCreateLocal(NULL, CFSTR("old"), echo, NULL, NULL)));
    NEED(same = bag_keep(CFMessagePortCreateLocal(NULL, CFSTR("old"), echo, NULL, NULL)));
    MUST(same == local);
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, CFSTR("old"))));
    NEED(CFMessagePortSetName(local, CFSTR("new")));
    MUST(CFStringCompare(CFMessagePortGetName(local), CFSTR("new"), 0) == kCFCompareEqualTo);
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, CFSTR("new"))));
    NEED(CFMessagePortIsValid(remote));
    CFMessagePortInvalidate(local);
    NEED(!CFMessagePortIsValid(remote)); /* where it could not be asked, it counts as valid */
    MUST(CFMessagePortCreateRemote(NULL, CFSTR("new")) == NULL);
    (void)CFRunLoopRunInMode(MODE, 0, false); /* gives back the old name */
    return true;
}

static _Atomic int received;

static void mach_received(CFMachPortRef port, void *message, CFIndex size, void *info)
{
    (void)port;
    (void)message;
    (void)info;
    received += size == sizeof(mach_msg_header_t);
}

NTH_FAILURE(mach_ports, "")
{
    mach_msg_header_t message = {.msgh_size = sizeof message};
    CFMachPortRef port;
    CFRunLoopSourceRef source;

    received = 0;
    NEED(port = bag_keep(CFMachPortCreate(NULL, mach_received, NULL, NULL)));
    NEED(bag_keep(CFMachPortCreate(NULL, mach_received, NULL, NULL)));
    message.msgh_remote_port = CFMachPortGetPort(port);
    NEED(CRLMachPortSend(&message, 0) == kCRLMachPortSuccess);
    NEED(source = bag_keep(CFMachPortCreateRunLoopSource(NULL, port, 0)));
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    NEED(CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, MODE));
    NEED(CRLMachPortSend(&message, 1) == kCRLMachPortSuccess);
    MUST(run_until(&received, 2, MODE));
    return true;
}

/* More messages than wait at a receiver that does not run, with a moment's patience. How many were sent. */
static int send_too_many(CFMessagePortRef remote)
{
    enum { count = 8 };
    int sent = 0;

    for (int i = 0; i < count; i++) {
        SInt32 result = CFMessagePortSendRequest(remote, 9, NULL, i < 4 ? patience_s : 0.002, 0, NULL, NULL);

        sent += result == kCFMessagePortSuccess;
        MUST(result != kCFMessagePortBecameInvalidError);
    }
    return sent;
}

/* False: some were dropped for want of memory or descriptors. */
static bool drain(int wanted)
{
    while (handled < wanted && CFRunLoopRunInMode(MODE, 0.2, true) == kCFRunLoopRunHandledSource) {
    }
    return handled == wanted;
}

/* By the socket a line for acknowledgements is offered, and read from. */
static bool fill_and_drain(void)
{
    CFMessagePortRef remote;
    int sent;

    handled = 0;
    NEED(open_port(NAME, MODE));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    sent = send_too_many(remote);
    NEED(drain(sent));
    sent += send_too_many(remote);
    return drain(sent) && sent >= 10; /* five each time */
}

NTH_FAILURE(a_receiver_that_is_full, "")
{
    return fill_and_drain();
}

NTH_FAILURE(an_inbox_that_is_full, "")
{
    inboxes_are_off = false;
    return fill_and_drain();
}

NTH_FAILURE(a_mach_port_that_is_full, "")
{
    enum { count = 6 };
    mach_msg_header_t message = {.msgh_size = sizeof message};
    CFMachPortRef port;
    CFRunLoopSourceRef source;

    received = 0;
    NEED(port = bag_keep(CFMachPortCreate(NULL, mach_received, NULL, NULL)));
    message.msgh_remote_port = CFMachPortGetPort(port);
    for (int i = 0; i < count - 1; i++) {
        NEED(CRLMachPortSend(&message, 0) == kCRLMachPortSuccess);
    }
    MUST(CRLMachPortSend(&message, 0.002) != kCRLMachPortSuccess);
    NEED(source = bag_keep(CFMachPortCreateRunLoopSource(NULL, port, 0)));
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    NEED(CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, MODE));
    MUST(run_until(&received, count - 1, MODE));
    return true;
}

/* The child lets go of all that is its parent's, and can make ports of its own. */
static int be_a_child(CFMessagePortRef local, CFMessagePortRef remote)
{
    CFMessagePortRef own;
    bool is_good = !CFMessagePortIsValid(local) && !CFMessagePortIsValid(remote);

    own = CFMessagePortCreateLocal(NULL, CFSTR("the child's"), echo, NULL, NULL);
    if (own) {
        CFMessagePortInvalidate(own);
        CFRelease(own);
    }
    return is_good ? 0 : 1;
}

NTH_FAILURE(forks_with_ports, "")
{
    CFMessagePortRef local;
    CFMessagePortRef remote;
    CFDataRef data;
    int status = 0;
    int sent;
    pid_t pid;

    could_not_reply = false;
    handled = 0;
    NEED(local = open_port(NAME, MODE));
    NEED(bag_keep(CFMachPortCreate(NULL, mach_received, NULL, NULL)));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    NEED(data = bag_keep(CFDataCreate(NULL, (const UInt8 *)"x", 1)));
    NEED(ask(remote, data));
    sent = send_too_many(remote);
    pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        _exit(be_a_child(local, remote));
    }
    MUST(waitpid(pid, &status, 0) == pid);
    MUST(status == 0);
    NEED(drain(sent + 1));
    return ask(remote, data);
}

static void count_name(void *info, const struct registry_entry *entry)
{
    *(int *)info += entry->is_alive;
}

NTH_FAILURE(the_list_of_names, "")
{
    int count = 0;

    NEED(open_port(NAME, MODE));
    NEED(registry_list(count_name, &count) == 0);
    return count == 1; /* what cannot be looked at is left out */
}

static CFDataRef end_remote(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)local, (void)message_id, (void)data;
    CFMessagePortInvalidate(*(CFMessagePortRef *)info);
    return NULL;
}

NTH_FAILURE(a_remote_port_that_ends_in_its_call, "")
{
    static CFMessagePortRef remote;
    CFMessagePortContext context = {.info = &remote};
    CFMessagePortRef local;
    CFRunLoopSourceRef source;
    SInt32 result;

    NEED(local = bag_keep(CFMessagePortCreateLocal(NULL, NAME, end_remote, &context, NULL)));
    NEED(source = bag_keep(CFMessagePortCreateRunLoopSource(NULL, local, 0)));
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    NEED(CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, MODE));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    result = CFMessagePortSendRequest(remote, 1, NULL, patience_s, patience_s, MODE, NULL);
    MUST(result != kCFMessagePortReceiveTimeout);
    return result == kCFMessagePortBecameInvalidError; /* where the line cannot be hung up, the reply comes first */
}
