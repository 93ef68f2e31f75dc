/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th failure in message ports and Mach-style ports. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLMachPort.h"
#include "CRLRunLoop.h"
#include "Failure/nth_failure.h"
#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Loop/Core/main_queue.h"
#include "Port/Core/local_info.h"
#include "Port/Message/client_channel.h"
#include "Port/Object/owner_watch.h"
#include "Port/Channel/local_queue.h"
#include "Port/Core/message_port.h"
#include "Port/Wire/packet.h"
#include "Port/port_probe.h"
#include "Port/Names/name_registry.h"
#include "Port/Wire/wire.h"

/* No run waits so long: it would be too slow. A busy machine may keep a thread from its processor for a second. */
static const double patience_s = 4;
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

NTH_FAILURE(a_setting_that_names_the_directory, "911")
{
    bool has_all;

    (void)setenv("CORERUNLOOP_PORTS", getenv("XDG_RUNTIME_DIR"), 1);
    has_all = exchange(20);
    (void)unsetenv("CORERUNLOOP_PORTS");
    return has_all;
}

/* As a port in a PID namespace of its own asks for; on a kernel that cannot, an exchange like others. */
NTH_FAILURE(senders_that_the_kernel_identifies, "910")
{
    CFMessagePortRef local = open_port(NAME, MODE);

    NEED(local);
    (void)kernel_ports.identify_senders(local->side.local.socket);
    return exchange(20);
}

/* As if the channel had carried enough requests for a page. */
static bool ask_as_busy(CFMessagePortRef remote, CFDataRef data)
{
    struct link *channels = &remote->side.remote.free_channels;

    if (channels->next != channels) {
        container_of(channels->next, struct client_channel, link)->uses = reply_page_after - 1;
    }
    return ask(remote, data);
}

/* As a thread whose loop has ended waits for the reply. */
static void wait_without_loop(CFMessagePortRef remote)
{
    struct link *channels = &remote->side.remote.free_channels;

    if (channels->next != channels) {
        client_channel_wait(container_of(channels->next, struct client_channel, link), kernel.monotonic_ns() + 1000000);
    }
}

NTH_FAILURE(replies_in_pages, "")
{
    CFMessagePortRef remote;
    CFDataRef data;
    SInt32 result;

    handled = 0;
    could_not_reply = false;
    NEED(open_port(NAME, MODE));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    NEED(data = bag_keep(CFDataCreate(NULL, (const UInt8 *)"busy", 4)));
    NEED(ask(remote, data));
    NEED(ask_as_busy(remote, data));
    NEED(ask(remote, data));
    NEED(ask(remote, data));
    MUST(handled == 4);
    wait_without_loop(remote);
    result = CFMessagePortSendRequest(remote, 7, data, patience_s, 0.001, CFSTR("where nobody answers"), NULL);
    MUST(result != kCFMessagePortSuccess);
    NEED(result == kCFMessagePortReceiveTimeout);
    while (handled < 5 && CFRunLoopRunInMode(MODE, 0.2, true) == kCFRunLoopRunHandledSource) {
    }
    return handled == 5;
}

static bool blames_nobody(CFMessagePortRef local)
{
    for (int i = 0; i < offenders_max; i++) {
        if (local->side.local.offenders[i].count > 0) {
            return false;
        }
    }
    return true;
}

/* The channels that come with the request and with the messages need memory. That there is none is no offence of the sender. */
NTH_FAILURE(a_receiver_without_memory_blames_nobody, "")
{
    CFMessagePortRef local;
    CFMessagePortRef remote;
    CFDataRef data;
    bool is_answered;

    kernel_ports.memory_is_fixed = kernel_ports_linux.memory_is_fixed; /* its no says that the memory is not to be trusted: an offence */
    could_not_reply = false;
    handled = 0;
    NEED(local = open_port(NAME, MODE));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    NEED(data = bag_keep(CFDataCreate(NULL, (const UInt8 *)"x", 1)));
    is_answered = ask(remote, data);
    MUST(blames_nobody(local));
    NEED(is_answered);
    for (int i = 0; i < 4; i++) { /* with the third comes the control channel */
        NEED(CFMessagePortSendRequest(remote, 8, data, patience_s, 0, NULL, NULL) == kCFMessagePortSuccess);
    }
    while (handled < 5 && CFRunLoopRunInMode(MODE, 0.2, true) == kCFRunLoopRunHandledSource) {
    }
    MUST(blames_nobody(local));
    return handled == 5;
}

NTH_FAILURE(messages_within_the_process, "")
{
    local_queues_are_off = false;
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

NTH_FAILURE(descriptions_of_ports, "606")
{
    CFMachPortRef mach_port;
    CFMessagePortRef remote;

    NEED(open_port(NAME, MODE));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    NEED(mach_port = bag_keep(CFMachPortCreate(NULL, NULL, NULL, NULL)));
    NEED(bag_keep(CFCopyDescription(remote)));
    NEED(bag_keep(CFCopyDescription(mach_port)));
    NEED(bag_keep(CFCopyDescription(CFRunLoopGetCurrent())));
    return true;
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

/* By the socket a channel for acknowledgements is offered, and read from. */
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

/* Somebody else has filled the queue, so that a sender stands in the kernel's line until its time is up. */
NTH_FAILURE(a_sender_in_the_kernels_line, "")
{
    const struct wire_frame frame = {.type = wire_one_way, .flags = wire_no_data};
    uint8_t bytes[wire_header_size];
    CFMessagePortRef remote;
    SInt32 result;
    int filler;

    NEED(open_port(NAME, MODE));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    filler = bag_keep_descriptor(dup(remote->side.remote.socket));
    wire_encode(&frame, bytes);
    while (send(filler, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    result = CFMessagePortSendRequest(remote, 1, NULL, 0.001, 0, MODE, NULL);
    MUST(result == kCFMessagePortSendTimeout || result == kCFMessagePortTransportError);
    result = CFMessagePortSendRequest(remote, 1, NULL, 0.021, 0, MODE, NULL); /* just above what is waited for outside the line */
    MUST(result == kCFMessagePortSendTimeout || result == kCFMessagePortTransportError);
    return result == kCFMessagePortSendTimeout;
}

NTH_FAILURE(an_inbox_that_is_full, "")
{
    local_queues_are_off = false;
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
    CFMachPortRef mach_port;
    CFDataRef data;
    int status = 0;
    int sent;
    pid_t pid;

    could_not_reply = false;
    handled = 0;
    NEED(local = open_port(NAME, MODE));
    NEED(mach_port = bag_keep(CFMachPortCreate(NULL, mach_received, NULL, NULL)));
    NEED(bag_keep(CFMachPortCreateRunLoopSource(NULL, mach_port, 0)));
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

NTH_FAILURE(forks_with_pages, "")
{
    CFMessagePortRef local;
    CFMessagePortRef remote;
    CFDataRef data;
    int status = 0;
    pid_t pid;

    could_not_reply = false;
    NEED(local = open_port(NAME, MODE));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    NEED(data = bag_keep(CFDataCreate(NULL, (const UInt8 *)"x", 1)));
    NEED(ask(remote, data));
    NEED(ask_as_busy(remote, data));
    NEED(ask(remote, data));
    pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        _exit(CFMessagePortIsValid(local) || CFMessagePortIsValid(remote) ? 1 : 0);
    }
    MUST(waitpid(pid, &status, 0) == pid);
    MUST(status == 0);
    return ask(remote, data);
}

static void count_name(void *info, const struct name_registry_entry *entry)
{
    *(int *)info += entry->is_alive;
}

NTH_FAILURE(the_list_of_names, "")
{
    int count = 0;

    NEED(open_port(NAME, MODE));
    NEED(name_registry_list(count_name, &count) == 0);
    return count == 1; /* what cannot be looked at is left out */
}

enum { ending_id = 1 };

static CFDataRef end_remote(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)local, (void)data;
    if (message_id == ending_id) {
        CFMessagePortInvalidate(*(CFMessagePortRef *)info);
    }
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
    for (int i = 0; i < 3; i++) { /* so that a channel for acknowledgements is offered, which ends, too */
        NEED(CFMessagePortSendRequest(remote, 0, NULL, patience_s, 0, NULL, NULL) == kCFMessagePortSuccess);
    }
    result = CFMessagePortSendRequest(remote, ending_id, NULL, patience_s, patience_s, MODE, NULL);
    MUST(result != kCFMessagePortReceiveTimeout);
    return result == kCFMessagePortBecameInvalidError; /* where the channel cannot be hung up, the reply comes first */
}

static _Atomic int told;

static void note_told(CFMessagePortRef port, void *info)
{
    (void)port, (void)info;
    told++;
}

static void never(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
}

/* The owner, who lives, closes what the remote port watches. */
static void drop_channels(CFMessagePortRef local)
{
    port_lock(local);
    channel_table_drop_all(&local->side.local.channels);
    port_unlock(local);
}

/* Serves the port and the watch of its owner: a few passes, for one may be spent on each. */
static void run_passes(void)
{
    for (int i = 0; i < 4; i++) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, true);
    }
}

/* Whatever fails, the callback comes once: from the loop, or from the call that finds the owner gone. */
static bool is_told_of_the_end(int64_t offer_every_ns)
{
    CFMessagePortRef local;
    CFMessagePortRef remote;
    CFRunLoopTimerRef keeper; /* a watch alone keeps no run going */
    bool is_watched;

    told = 0;
    NEED(keeper = bag_keep(CFRunLoopTimerCreate(NULL, 3e9, 0, 0, 0, never, NULL)));
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), keeper, kCFRunLoopDefaultMode);
    NEED(CFRunLoopContainsTimer(CFRunLoopGetCurrent(), keeper, kCFRunLoopDefaultMode));
    owner_watch_offer_every_ns = offer_every_ns;
    NEED(local = open_port(NAME, kCFRunLoopDefaultMode));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    CFMessagePortSetInvalidationCallBack(remote, note_told);
    is_watched = remote->side.remote.watch != NULL;
    run_passes();
    drop_channels(local);
    run_passes();
    MUST(told == 0 || !port_is_valid(remote)); /* a failure may make the owner look gone */
    CFMessagePortInvalidate(local);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.05, true);
    MUST(!CFMessagePortIsValid(remote) || !CFMessagePortIsValid(remote)); /* or, once, as if it lived */
    run_passes();
    MUST(told == 1);
    return is_watched;
}

NTH_FAILURE(a_watched_owner_that_ends, "900 902 908")
{
    return is_told_of_the_end(1000000000);
}

NTH_FAILURE(a_watched_owner_that_closes_and_is_offered_another_channel, "900 902 908")
{
    return is_told_of_the_end(0);
}

NTH_FAILURE(a_mach_port_that_is_freed_while_valid, "")
{
    mach_msg_header_t message = {.msgh_size = sizeof message};
    CFMachPortRef port = CFMachPortCreate(NULL, mach_received, NULL, NULL);
    CFRunLoopSourceRef source;

    NEED(port);
    source = CFMachPortCreateRunLoopSource(NULL, port, 0);
    message.msgh_remote_port = CFMachPortGetPort(port);
    if (source) {
        CFRelease(source);
    }
    CFRelease(port);
    MUST(CRLMachPortSend(&message, 0) == kCRLMachPortIsInvalid);
    return source != NULL;
}

/* ---- clients that go ---- */

/* The client's channels end, one that has brought its arena and one that has not, and the receiver finds out when it next runs. */
static bool exchange_and_go(CFIndex size)
{
    static UInt8 bytes[100000];
    CFMessagePortRef remote;
    CFDataRef data;

    handled = 0;
    could_not_reply = false;
    NEED(open_port(NAME, MODE));
    NEED(data = bag_keep(CFDataCreate(NULL, bytes, size)));
    for (int i = 0; i < 3; i++) {
        bool is_answered;

        NEED(remote = CFMessagePortCreateRemote(NULL, NAME));
        is_answered = ask(remote, data);
        CFMessagePortInvalidate(remote);
        CFRelease(remote);
        NEED(is_answered);
        (void)CFRunLoopRunInMode(MODE, 0, false);
    }
    return true;
}

NTH_FAILURE(clients_that_go, "")
{
    return exchange_and_go(20);
}

NTH_FAILURE(clients_that_go_with_their_arena, "")
{
    return exchange_and_go(sizeof(UInt8[100000]));
}

/* ---- in callbacks ---- */

static CFDataRef end_local(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)message_id, (void)data, (void)info;
    handled++;
    CFMessagePortInvalidate(local);
    return NULL;
}

static CFMessagePortRef open_port_with(CFMessagePortCallBack callout)
{
    CFMessagePortRef local = bag_keep(CFMessagePortCreateLocal(NULL, NAME, callout, NULL, NULL));
    CFRunLoopSourceRef source = local ? bag_keep(CFMessagePortCreateRunLoopSource(NULL, local, 0)) : NULL;

    if (!source) {
        return NULL;
    }
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    return CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, MODE) ? local : NULL;
}

NTH_FAILURE(a_local_port_that_ends_in_its_callback, "")
{
    CFMessagePortRef local;
    CFMessagePortRef remote;
    SInt32 result;

    handled = 0;
    NEED(local = open_port_with(end_local));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    result = CFMessagePortSendRequest(remote, 1, NULL, patience_s, patience_s, MODE, NULL);
    MUST(result != kCFMessagePortReceiveTimeout);
    NEED(handled == 1);
    MUST(!CFMessagePortIsValid(local));
    NEED(!bag_keep(CFMessagePortCreateRemote(NULL, NAME))); /* where its files cannot be removed, and it cannot be asked */
    return result == kCFMessagePortBecameInvalidError;
}

/* How many references there are to what the callouts of a port are to get. */
static int callees;

static void drop_callee(const void *object)
{
    callees -= object ? 1 : 0;
}

static CFDataRef look_for_callee(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *object)
{
    (void)local, (void)message_id, (void)data;
    MUST(callees == 1 && object == &callees);
    handled++;
    return NULL;
}

NTH_FAILURE(a_port_with_another_callee, "")
{
    CFMessagePortContext context = {0, NULL, NULL, drop_callee, NULL};
    CFMessagePortRef local;
    CFRunLoopSourceRef source;
    CFMessagePortRef remote;

    handled = 0;
    callees = 0;
    NEED(local = bag_keep(CFMessagePortCreateLocal(NULL, NAME, look_for_callee, &context, NULL)));
    NEED(source = bag_keep(CFMessagePortCreateRunLoopSource(NULL, local, 0)));
    for (int i = 0; i < 2; i++) {
        callees++;
        if (!local_port_set_receiver(local, &callees)) {
            MUST(--callees == i); /* it has taken nothing over, and dropped nobody */
            return false;
        }
        MUST(callees == 1);
    }
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    NEED(CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, MODE));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    NEED(CFMessagePortSendRequest(remote, 1, NULL, patience_s, 0, NULL, NULL) == kCFMessagePortSuccess);
    NEED(run_until(&handled, 1, MODE));
    CFMessagePortInvalidate(local);
    MUST(callees == 0);
    return true;
}

/* The fork's child lets go of the channel on which its parent waits for the reply. */
static CFDataRef fork_and_echo(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    pid_t pid = fork();
    int status = 0;

    MUST(pid >= 0);
    if (pid == 0) {
        _exit(CFMessagePortIsValid(local) ? 1 : 0);
    }
    MUST(waitpid(pid, &status, 0) == pid);
    MUST(status == 0);
    return echo(local, message_id, data, info);
}

NTH_FAILURE(a_fork_in_a_callback, "")
{
    CFMessagePortRef remote;
    CFDataRef data;

    handled = 0;
    could_not_reply = false;
    NEED(open_port_with(fork_and_echo));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    NEED(data = bag_keep(CFDataCreate(NULL, (const UInt8 *)"x", 1)));
    return ask(remote, data);
}

/* ---- a thread whose loop has ended ---- */

static struct {
    CFMessagePortRef remote;
    SInt32 result;
    atomic_bool is_done;
} last_words;
static pthread_key_t last_round;

static void ask_in_the_last_round(void *value)
{
    uintptr_t left = (uintptr_t)value - 1;

    if (left > 0) {
        (void)pthread_setspecific(last_round, (void *)left);
        return;
    }
    last_words.result = CFMessagePortSendRequest(last_words.remote, 3, NULL, patience_s, patience_s, MODE, NULL);
    atomic_store(&last_words.is_done, true);
    CFRunLoopWakeUp(CFRunLoopGetMain());
}

static void *end_with_a_request(void *unused)
{
    (void)unused;
    (void)CFRunLoopGetCurrent();
    (void)pthread_setspecific(last_round, (void *)(uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
    return NULL;
}

static bool answer_an_ending_thread(void)
{
    double deadline = CFAbsoluteTimeGetCurrent() + test_patience_s();
    pthread_t thread;

    handled = 0;
    could_not_reply = false;
    last_words.is_done = false;
    NEED(open_port(NAME, MODE));
    NEED(last_words.remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    MUST(pthread_key_create(&last_round, ask_in_the_last_round) == 0);
    MUST(pthread_create(&thread, NULL, end_with_a_request, NULL) == 0);
    while (!atomic_load(&last_words.is_done) && CFAbsoluteTimeGetCurrent() < deadline) {
        (void)CFRunLoopRunInMode(MODE, 0.01, true);
    }
    (void)pthread_join(thread, NULL);
    (void)pthread_key_delete(last_round);
    MUST(last_words.result != kCFMessagePortReceiveTimeout && last_words.result != kCFMessagePortSendTimeout);
    return last_words.result == kCFMessagePortSuccess && handled == 1;
}

static void look_in_the_last_round(void *value)
{
    uintptr_t left = (uintptr_t)value - 1;

    if (left > 0) {
        (void)pthread_setspecific(last_round, (void *)left);
        return;
    }
    (void)CFRunLoopGetCurrent();
}

static void run_ending_thread(bool (*scenario)(void), const char *name)
{
    pthread_t thread;

    if (test_is_instrumented()) {
        SKIP("the tool has taken down what it knows of a thread by the last round");
    }
    /* The one loop of threads whose own has ended is made once and stays: here, and not in the scenario's first run. */
    test_allow_left(0, 2);
    REQUIRE(pthread_key_create(&last_round, look_in_the_last_round) == 0);
    REQUIRE(pthread_create(&thread, NULL, end_with_a_request, NULL) == 0);
    (void)pthread_join(thread, NULL);
    (void)pthread_key_delete(last_round);
    nth_failure_run(name, scenario);
}

TEST_LIMIT(nth_failure_a_request_of_an_ending_thread, "", 120)
{
    run_ending_thread(answer_an_ending_thread, "a_request_of_an_ending_thread");
}

static bool answer_an_ending_thread_within_the_process(void)
{
    local_queues_are_off = false;
    return answer_an_ending_thread();
}

TEST_LIMIT(nth_failure_a_request_of_an_ending_thread_within_the_process, "", 120)
{
    run_ending_thread(answer_an_ending_thread_within_the_process, "a_request_of_an_ending_thread_within_the_process");
}

/* ---- without /proc, and with what does not belong ---- */

static int (*connect_of_the_table)(int socket, const char *path);
static int (*path_status_of_the_table)(int directory, const char *leaf, struct stat *ret_status);

static int connect_without_proc(int socket_number, const char *path)
{
    return strncmp(path, "/proc", 5) == 0 ? -ENOENT : connect_of_the_table(socket_number, path);
}

static int path_status_without_proc(int directory, const char *leaf, struct stat *ret_status)
{
    return strncmp(leaf, "/proc", 5) == 0 ? -ENOENT : path_status_of_the_table(directory, leaf, ret_status);
}

NTH_FAILURE(a_system_without_proc, "")
{
    bool is_complete;

    connect_of_the_table = kernel_ports.datagram_connect;
    path_status_of_the_table = kernel_ports.path_status;
    kernel_ports.datagram_connect = connect_without_proc;
    kernel_ports.path_status = path_status_without_proc;
    is_complete = exchange(20);
    kernel_ports.datagram_connect = connect_of_the_table;
    kernel_ports.path_status = path_status_of_the_table;
    return is_complete;
}

/* Nobody has had a name yet: the directory is not there. */
NTH_FAILURE(the_first_name_of_all, "")
{
    char sweeper[300];

    (void)snprintf(sweeper, sizeof sweeper, "%s/.sweep", port_probe_names());
    (void)unlink(sweeper);
    MUST(rmdir(port_probe_names()) == 0 || errno == ENOENT || errno == ENOTEMPTY); /* what could not be removed is still there */
    return exchange(20);
}

/* So many that not each registration asks after all of them. */
NTH_FAILURE(many_names, "")
{
    for (int i = 0; i < 11; i++) {
        CFStringRef name = bag_keep(CFStringCreateWithFormat(NULL, NULL, CFSTR("name %d"), i));

        NEED(name && open_port(name, MODE));
    }
    return true;
}

/* As a process leaves them that was killed: a lock that nobody holds, and a socket that nobody reads. */
static void leave_files(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int dead = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    char path[300];

    (void)snprintf(path, sizeof path, "%s/dead.lock", port_probe_names());
    MUST(close(open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600)) == 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/dead.sock", port_probe_names());
    MUST(bind(dead, (const struct sockaddr *)&address, sizeof address) == 0 || errno == EADDRINUSE);
    (void)close(dead);
}

NTH_FAILURE(what_the_dead_have_left, "")
{
    NEED(open_port(CFSTR("another"), MODE));
    leave_files();
    NEED(exchange(20));
    return port_probe_count_files() == 4; /* a lock and a socket for each name; where something could not be removed, it is still there */
}

/* ---- a port that is invalidated while it is read from, as another thread would ---- */

static CFMessagePortRef read_port;
static ssize_t (*receive_of_the_table)(int socket, struct msghdr *message);

static ssize_t receive_after_invalidation(int socket_number, struct msghdr *message)
{
    if (read_port) {
        CFMessagePortRef local = read_port;

        read_port = NULL;
        CFMessagePortInvalidate(local);
    }
    return receive_of_the_table(socket_number, message);
}

NTH_FAILURE(a_local_port_that_ends_while_it_is_read, "")
{
    CFMessagePortRef local;
    CFMessagePortRef remote;
    SInt32 result;

    handled = 0;
    NEED(local = open_port(NAME, MODE));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    read_port = local;
    receive_of_the_table = kernel_ports.receive_message;
    kernel_ports.receive_message = receive_after_invalidation;
    result = CFMessagePortSendRequest(remote, 1, NULL, patience_s, patience_s, MODE, NULL);
    kernel_ports.receive_message = receive_of_the_table;
    read_port = NULL;
    MUST(result != kCFMessagePortReceiveTimeout);
    return !CFMessagePortIsValid(local);
}

/* More descriptors on a channel than a frame may have: what does not belong is closed, as the rest is when the packet is. */
static bool take_many_descriptors(int channel, int other_end, int unknown)
{
    enum { count = 5 };
    static uint8_t buffer[wire_frame_max];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(count * sizeof(int))];
    } control = {.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))}};
    char byte = 0;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    const int passed[count] = {channel, channel, channel, unknown, unknown};
    struct packet packet;

    memcpy(CMSG_DATA(&control.header), passed, sizeof passed);
    MUST(sendmsg(other_end, &message, 0) == 1);
    while (packet_receive(channel, buffer, &packet) < 0) { /* as the channel's reader, which looks again */
    }
    MUST(packet.is_cut && packet.descriptor_count == wire_descriptors_max);
    packet_close(&packet);
    return true;
}

NTH_FAILURE(more_descriptors_than_belong, "")
{
    int ends[2];
    int pipe_ends[2];

    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 && pipe2(pipe_ends, O_CLOEXEC) == 0);
    for (int i = 0; i < 2; i++) {
        (void)bag_keep_descriptor(ends[i]);
        (void)bag_keep_descriptor(pipe_ends[i]);
    }
    return take_many_descriptors(ends[0], ends[1], pipe_ends[0]);
}

/* As large as is copied to huge pages. */
static bool exchange_once(CFIndex size)
{
    static UInt8 bytes[5 << 20];
    CFMessagePortRef remote;
    CFDataRef data;

    handled = 0;
    could_not_reply = false;
    NEED(open_port(NAME, MODE));
    NEED(remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    NEED(data = bag_keep(CFDataCreate(NULL, bytes, size)));
    return ask(remote, data);
}

NTH_FAILURE(messages_on_huge_pages, "")
{
    return exchange_once(5 << 20);
}

/* ---- a dispatch queue ---- */

extern char _dispatch_main_q[] __attribute__((weak));
/* By its link name: the header declares it where the dispatch headers are. */
void drive_by_queue(CFMessagePortRef port, void *queue) __asm__("crl_CFMessagePortSetDispatchQueue");

extern void _dispatch_main_queue_callback_4CF(void *unused) __attribute__((weak));

/* libdispatch lets go of a port some time after it was told to. */
static void await_end_of_queue(CFMessagePortRef local)
{
    double deadline = CFAbsoluteTimeGetCurrent() + test_patience_s();

    while (CFGetRetainCount(local) > 1 && CFAbsoluteTimeGetCurrent() < deadline) {
        _dispatch_main_queue_callback_4CF(NULL);
        (void)sched_yield();
    }
    MUST(CFGetRetainCount(local) == 1);
}

/* Makes libdispatch's manager and its descriptors, but no threads of a pool, which come and go. */
static bool begin_and_end_a_queue(void)
{
    CFMessagePortRef local = bag_keep(CFMessagePortCreateLocal(NULL, NAME, echo, NULL, NULL));

    NEED(local);
    drive_by_queue(local, _dispatch_main_q);
    CFMessagePortInvalidate(local);
    await_end_of_queue(local);
    return true;
}

struct asking_thread {
    CFMessagePortRef remote;
    SInt32 result;
    atomic_bool is_done;
};

static void *ask_the_queue(void *info)
{
    struct asking_thread *asking = info;

    asking->result = CFMessagePortSendRequest(asking->remote, 4, NULL, patience_s, patience_s, MODE, NULL);
    atomic_store(&asking->is_done, true);
    return NULL;
}

/* The main queue answers, which the main loop serves; the port has no run loop source. */
static bool be_driven_by_a_queue(void)
{
    double deadline = CFAbsoluteTimeGetCurrent() + test_patience_s();
    struct asking_thread asking = {.remote = NULL};
    CFMessagePortRef local;
    CFRunLoopSourceRef source;
    pthread_t thread;

    handled = 0;
    could_not_reply = false;
    NEED(local = bag_keep(CFMessagePortCreateLocal(NULL, NAME, echo, NULL, NULL)));
    NEED(asking.remote = bag_keep(CFMessagePortCreateRemote(NULL, NAME)));
    drive_by_queue(local, _dispatch_main_q);
    source = CFMessagePortCreateRunLoopSource(NULL, local, 0);
    if (source) {
        CFRelease(source); /* the queue was refused */
        return false;
    }
    MUST(pthread_create(&thread, NULL, ask_the_queue, &asking) == 0);
    while (!atomic_load(&asking.is_done) && CFAbsoluteTimeGetCurrent() < deadline) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.001, false);
    }
    (void)pthread_join(thread, NULL);
    CFMessagePortInvalidate(local);
    await_end_of_queue(local);
    MUST(asking.result != kCFMessagePortReceiveTimeout && asking.result != kCFMessagePortSendTimeout);
    return asking.result == kCFMessagePortSuccess && handled == 1;
}

TEST_LIMIT(nth_failure_a_port_on_a_dispatch_queue, "", 120)
{
    if (!_dispatch_main_queue_callback_4CF) {
        SKIP("there is no libdispatch in the process");
    }
    main_queue_is_abandoned = false;
    test_allow_left(1, 0); /* the queue's descriptor */
    REQUIRE(main_queue_descriptor() >= 0);
    nth_failure_run_primed("a_port_on_a_dispatch_queue", be_driven_by_a_queue, begin_and_end_a_queue);
}
