/* SPDX-License-Identifier: Apache-2.0 */
/* Machines in processes of their own, what they note, and calls of this one's programs; see nats_machine.h. */
#include "nats_machine.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLRunLoop.h"

/* ---- machines ---- */

void machine_become(const char *machine)
{
    const char *path = place_path(machine);

    REQUIRE(mkdir(path, 0700) == 0 || errno == EEXIST);
    REQUIRE(setenv("CORERUNLOOP_PORTS", path, 1) == 0);
}

static void open_ports(const char *names, CFMessagePortCallBack callback, const char *machine)
{
    char copy[256];

    (void)snprintf(copy, sizeof copy, "%s", names);
    for (char *rest = NULL, *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        CFMessagePortContext context = {.info = (void *)(uintptr_t)machine};
        CFStringRef string = CFStringCreateWithCString(NULL, name, kCFStringEncodingUTF8);
        CFMessagePortRef port = CFMessagePortCreateLocal(NULL, string, callback, &context, NULL);

        REQUIRE(port);
        CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(NULL, port, 0), kCFRunLoopDefaultMode);
    }
}

static void export_names(CRLNatsBridgeRef bridge, const char *names, bool shares)
{
    char copy[256];

    (void)snprintf(copy, sizeof copy, "%s", names);
    for (char *rest = NULL, *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        REQUIRE(CRLNatsBridgeExport(bridge, name, shares));
    }
}

static void end_process(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info)
{
    (void)source;
    (void)signal;
    CFRunLoopStop(info);
}

/* A machine's process. */
static void run_machine(const char *machine, const char *names, CFMessagePortCallBack callback, bool shares, int ready)
{
    CRLSourceContext context = {0, CFRunLoopGetCurrent(), NULL, NULL, NULL};
    CRLNatsBridgeRef bridge;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    machine_become(machine);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), CRLSignalSourceCreate(NULL, SIGTERM, 0, end_process, &context), kCFRunLoopDefaultMode);
    if (callback) {
        open_ports(names, callback, machine);
    }
    bridge = place_bridge_with((CRLNatsConfiguration){.servers = server_url(), .machine = machine}, NULL);
    export_names(bridge, names, shares);
    (void)!write(ready, "", 1);
    CFRunLoopRun();
    place_end_bridge(bridge);
    exit(0); /* coverage is written then */
}

/* Returns twice, as fork: in the child, which has pid 0, when it is woken. `ready` is to be written to then. */
static struct sleeping_machine fork_asleep(void)
{
    struct sleeping_machine result;
    int ready[2];
    int wake[2];
    char byte;

    REQUIRE(pipe(ready) == 0 && pipe(wake) == 0);
    result.pid = fork();
    result.ready = ready[result.pid == 0 ? 1 : 0];
    result.wake = wake[1];
    (void)close(ready[result.pid == 0 ? 0 : 1]);
    if (result.pid == 0) {
        (void)close(wake[1]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(wake[0], &byte, 1) != 1) {
            _exit(0);
        }
    }
    (void)close(wake[0]);
    return result;
}

struct sleeping_machine machine_start_later(const char *machine, const char *names, CFMessagePortCallBack callback, bool shares)
{
    struct sleeping_machine result = fork_asleep();

    if (result.pid == 0) {
        run_machine(machine, names, callback, shares, result.ready);
    }
    return result;
}

struct sleeping_machine program_start_later(const char *machine, const char *name, CRLMessagePortCallBack callback)
{
    struct sleeping_machine result = fork_asleep();
    CFMessagePortRef port;

    if (result.pid == 0) {
        machine_become(machine);
        port = CFMessagePortCreateLocal(NULL, CFStringCreateWithCString(NULL, name, kCFStringEncodingUTF8), NULL, NULL, NULL);
        REQUIRE(port && CRLMessagePortSetCallBack(port, callback));
        CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(NULL, port, 0), kCFRunLoopDefaultMode);
        (void)!write(result.ready, "", 1);
        CFRunLoopRun();
        _exit(0);
    }
    return result;
}

pid_t machine_wake(struct sleeping_machine machine)
{
    char byte = 0;

    REQUIRE(write(machine.wake, &byte, 1) == 1);
    REQUIRE(read(machine.ready, &byte, 1) == 1);
    (void)close(machine.ready);
    (void)close(machine.wake);
    return machine.pid;
}

pid_t machine_start(const char *machine, const char *names, CFMessagePortCallBack callback, bool shares)
{
    return machine_wake(machine_start_later(machine, names, callback, shares));
}

void machine_end(pid_t pid, int signal)
{
    (void)kill(pid, signal);
    (void)waitpid(pid, NULL, 0);
}

/* ---- notes ---- */

CFDataRef place_note(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    FILE *file = fopen(place_path("noted"), "a");

    (void)local;
    (void)data;
    (void)info;
    if (file) {
        (void)fprintf(file, "%d\n", (int)message_id);
        (void)fclose(file);
    }
    return NULL;
}

CFDataRef place_note_slowly(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info, CRLReceivedMessageRef message)
{
    (void)message;
    (void)usleep(30000);
    return place_note(local, message_id, data, info);
}

/* The file may end with part of a line that is just being written. */
bool place_lacks_notes(void *info)
{
    FILE *file = fopen(place_path("noted"), "r");
    char line[16];
    int count = 0;

    while (file && fgets(line, sizeof line, file) && strchr(line, '\n')) {
        EXPECT_EQ(strtol(line, NULL, 10), count);
        count++;
    }
    if (file) {
        (void)fclose(file);
    }
    return count < *(int *)info;
}

bool place_file_has(const char *name, const char *text)
{
    FILE *file = fopen(place_path(name), "r");
    char line[512];
    bool result = false;

    while (file && !result && fgets(line, sizeof line, file)) {
        result = strstr(line, text) != NULL;
    }
    if (file) {
        (void)fclose(file);
    }
    return result;
}

/* ---- a program of this machine ---- */

struct call {
    const char *name;
    SInt32 message_id;
    CFDataRef data;
    CFTimeInterval limit_s;
    int count; /* of one-way messages; 0: a request */
    SInt32 result;
    CFDataRef reply;
    _Atomic bool is_over;
};

static void *run_call(void *info)
{
    struct call *call = info;
    CFStringRef name = CFStringCreateWithCString(NULL, call->name, kCFStringEncodingUTF8);
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, name);

    call->result = kCFMessagePortIsInvalid;
    if (remote) {
        if (call->count == 0) {
            call->result = CFMessagePortSendRequest(remote, call->message_id, call->data, call->limit_s, call->limit_s,
                                                    kCFRunLoopDefaultMode, &call->reply);
        }
        for (int i = 0; i < call->count; i++) {
            call->result = CFMessagePortSendRequest(remote, call->message_id + i, call->data, call->limit_s, 0, NULL, NULL);
        }
        CFRelease(remote);
    }
    CFRelease(name);
    call->is_over = true;
    return NULL;
}

static bool is_under_way(void *info)
{
    return !((struct call *)info)->is_over;
}

static SInt32 run_call_here(struct call *call)
{
    pthread_t thread;

    REQUIRE(pthread_create(&thread, NULL, run_call, call) == 0);
    EXPECT(place_run_while(is_under_way, call));
    (void)pthread_join(thread, NULL);
    return call->result;
}

SInt32 place_ask(const char *name, SInt32 message_id, CFDataRef data, CFTimeInterval limit_s, CFDataRef *ret_reply)
{
    struct call call = {.name = name, .message_id = message_id, .data = data, .limit_s = limit_s};
    SInt32 result = run_call_here(&call);

    *ret_reply = call.reply;
    return result;
}

SInt32 place_tell(const char *name, SInt32 first, int count, CFDataRef data)
{
    struct call call = {.name = name, .message_id = first, .count = count, .data = data, .limit_s = 20};

    return run_call_here(&call);
}
