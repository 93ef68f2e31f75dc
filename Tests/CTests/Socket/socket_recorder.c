/* SPDX-License-Identifier: Apache-2.0 */
/* See socket_recorder.h. Counters are atomic because loops on several threads are tested. */
#include "Socket/socket_recorder.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static const void *info_retain(const void *info)
{
    struct recorder *recorder = (struct recorder *)(uintptr_t)info;

    recorder->retains++;
    if (recorder->logs_context) {
        probe_log("retain");
    }
    return info;
}

static void info_release(const void *info)
{
    struct recorder *recorder = (struct recorder *)(uintptr_t)info;

    recorder->releases++;
    if (recorder->logs_context) {
        probe_log("release");
    }
}

CFSocketContext recorder_context(struct recorder *recorder)
{
    return (CFSocketContext){.info = recorder, .retain = info_retain, .release = info_release};
}

static const char *name_of(CFSocketCallBackType type)
{
    switch (type) {
    case kCFSocketReadCallBack:
        return "read";
    case kCFSocketAcceptCallBack:
        return "accept";
    case kCFSocketDataCallBack:
        return "data";
    case kCFSocketConnectCallBack:
        return "connect";
    case kCFSocketWriteCallBack:
        return "write";
    default:
        return "unknown";
    }
}

static void note(const struct recorder *recorder, CFSocketCallBackType type, const void *data)
{
    const char *prefix = recorder->name ? recorder->name : "";
    const char *colon = recorder->name ? ":" : "";

    if (type == kCFSocketDataCallBack && CFDataGetLength(data) == 0) {
        probe_note("%s%sdata()", prefix, colon);
    } else if (type == kCFSocketDataCallBack) {
        probe_note("%s%sdata(%ld)", prefix, colon, (long)CFDataGetLength(data));
    } else if (type == kCFSocketConnectCallBack && data) {
        probe_note("%s%sconnect(%d)", prefix, colon, (int)*(const SInt32 *)data);
    } else {
        probe_note("%s%s%s", prefix, colon, name_of(type));
    }
}

void recorder_called(CFSocketRef s, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    struct recorder *recorder = info;

    recorder->type = type;
    recorder->data = data;
    recorder->address = address;
    EXPECT(s == recorder->object);
    if (!recorder->is_silent) {
        note(recorder, type, data);
    }
    if (type == kCFSocketAcceptCallBack) {
        if (recorder->accepted >= 0) {
            close(recorder->accepted);
        }
        recorder->accepted = *(const CFSocketNativeHandle *)data;
    } else if (type == kCFSocketDataCallBack) {
        recorder->bytes += (size_t)CFDataGetLength(data);
    } else if (type == kCFSocketConnectCallBack) {
        recorder->error = data ? *(const SInt32 *)data : 0;
    } else if (type == kCFSocketReadCallBack && recorder->drains) {
        (void)drain(CFSocketGetNative(s));
    }
    if (type == kCFSocketReadCallBack || type == kCFSocketConnectCallBack || type == kCFSocketWriteCallBack) {
        EXPECT(address == NULL);
    }
    if (recorder->action) {
        recorder->action(recorder);
    }
    recorder->calls++;
}

CFSocketRef recorder_create(struct recorder *recorder, int native, CFOptionFlags types)
{
    CFSocketContext context = recorder_context(recorder);

    recorder->object = CFSocketCreateWithNative(NULL, native, types, recorder_called, &context);
    REQUIRE(recorder->object != NULL);
    return recorder->object;
}

void recorder_schedule(struct recorder *recorder)
{
    CFRunLoopSourceRef source = CFSocketCreateRunLoopSource(NULL, recorder->object, 0);

    REQUIRE(source != NULL);
    CFRunLoopAddSource(LOOP, source, MODE);
    CFRelease(source);
}

CFSocketRef recorder_add(struct recorder *recorder, int native, CFOptionFlags types)
{
    recorder_create(recorder, native, types);
    recorder_schedule(recorder);
    return recorder->object;
}

CFSocketRef recorder_add_on_pair(struct recorder *recorder, CFOptionFlags types)
{
    pair_open(recorder->ends);
    return recorder_add(recorder, recorder->ends[0], types);
}

void recorder_free(struct recorder *recorder)
{
    CFSocketInvalidate(recorder->object);
    CFRelease(recorder->object);
    recorder->object = NULL;
    if (recorder->accepted >= 0) {
        close(recorder->accepted);
    }
}

void recorder_free_with_pair(struct recorder *recorder)
{
    recorder_free(recorder);
    close(recorder->ends[1]);
}

void recorder_copies_sender(struct recorder *recorder)
{
    *(CFDataRef *)recorder->context = CFDataCreateCopy(NULL, recorder->address);
}

void recorder_await(struct recorder *recorder, int calls)
{
    CFAbsoluteTime end = CFAbsoluteTimeGetCurrent() + test_patience_s();

    while (recorder->calls < calls && CFAbsoluteTimeGetCurrent() < end) {
        CFRunLoopRunInMode(MODE, 0.1, true);
    }
    REQUIRE(recorder->calls >= calls);
}

void look(void)
{
    for (int i = 0; i < 5; i++) {
        CFRunLoopRunInMode(MODE, 0, false);
    }
}

void pair_open(int ends[2])
{
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
}

void pair_close(int ends[2])
{
    for (int i = 0; i < 2; i++) {
        if (ends[i] >= 0) {
            close(ends[i]);
        }
    }
}

void tell(int socket, const char *text)
{
    EXPECT_EQ(send(socket, text, strlen(text), MSG_NOSIGNAL), (long)strlen(text));
}

int drain(int socket)
{
    char bytes[4096];
    int count = 0;
    ssize_t got;

    while ((got = recv(socket, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
        count += (int)got;
    }
    return count;
}

CFDataRef loopback_address(int family)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    return family == AF_INET ? CFDataCreate(NULL, (const UInt8 *)&v4, sizeof v4) : CFDataCreate(NULL, (const UInt8 *)&v6, sizeof v6);
}

CFDataRef path_address(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    REQUIRE(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    return CFDataCreate(NULL, (const UInt8 *)&address, (CFIndex)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1));
}

CFDataRef address_of(int socket)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;

    REQUIRE(getsockname(socket, (struct sockaddr *)&address, &length) == 0);
    return CFDataCreate(NULL, (const UInt8 *)&address, (CFIndex)length);
}

static const struct sockaddr *sockaddr_of(CFDataRef address)
{
    return (const struct sockaddr *)(const void *)CFDataGetBytePtr(address);
}

static int socket_for(CFDataRef address)
{
    int made = socket(sockaddr_of(address)->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    REQUIRE(made >= 0);
    return made;
}

int listen_on(CFDataRef address, int backlog)
{
    int listener = socket_for(address);

    REQUIRE(bind(listener, sockaddr_of(address), (socklen_t)CFDataGetLength(address)) == 0);
    REQUIRE(listen(listener, backlog) == 0);
    return listener;
}

int connect_to(CFDataRef address)
{
    int connected = socket_for(address);

    REQUIRE(connect(connected, sockaddr_of(address), (socklen_t)CFDataGetLength(address)) == 0);
    return connected;
}

CFDataRef refusing_address(void)
{
    const struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);
}
