/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chat server over streams: what one client sends as a line, all others get, with the sender's number before it.
 *
 *   chat-server PORT     serves until it is killed; try it with two of `nc 127.0.0.1 PORT`
 *   chat-server          talks to itself as two clients and ends; the exit status is 0 if both got the other's line
 *
 * One thread and one loop serve all. What a client does not take waits in its queue. A client whose queue is full is sent away.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { line_limit = 1000, queue_limit = 65536 };

struct client {
    struct client *next;
    unsigned number;
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    size_t line_length;
    char line[line_limit];
    size_t queue_length;
    char queue[queue_limit];
};

static struct client *clients;
static unsigned last_number;

/* ---- a client's end ---- */

static void send_away(struct client *client)
{
    struct client **place = &clients;

    while (*place && *place != client) {
        place = &(*place)->next;
    }
    if (!*place) {
        return;
    }
    *place = client->next;
    (void)printf("client %u left\n", client->number);
    CFReadStreamClose(client->reader); /* no event comes after this */
    CFWriteStreamClose(client->writer);
    CFRelease(client->reader);
    CFRelease(client->writer);
    free(client);
}

/* ---- sending ---- */

/* Writes what there is room for. Asking first keeps the write from waiting. */
static bool send_queue(struct client *client)
{
    while (client->queue_length > 0 && CFWriteStreamCanAcceptBytes(client->writer)) {
        CFIndex count = CFWriteStreamWrite(client->writer, (const UInt8 *)client->queue, (CFIndex)client->queue_length);

        if (count <= 0) {
            return false;
        }
        client->queue_length -= (size_t)count;
        memmove(client->queue, client->queue + count, client->queue_length);
    }
    return true;
}

/* Returns false if the client is gone, or takes too little. */
static bool queue_text(struct client *client, const char *text, size_t length)
{
    if (length > queue_limit - client->queue_length) {
        return false;
    }
    memcpy(client->queue + client->queue_length, text, length);
    client->queue_length += length;
    return send_queue(client);
}

static void tell_others(const struct client *sender, const char *line, size_t length)
{
    char text[line_limit + 32];
    int size = snprintf(text, sizeof text, "%u: %.*s\n", sender->number, (int)length, line);
    struct client *next;

    for (struct client *client = clients; client; client = next) {
        next = client->next;
        if (client != sender && !queue_text(client, text, (size_t)size)) {
            send_away(client);
        }
    }
}

static void write_event(CFWriteStreamRef stream, CFStreamEventType type, void *info)
{
    struct client *client = info;

    (void)stream;
    if (type == kCFStreamEventErrorOccurred || !send_queue(client)) {
        send_away(client);
    }
}

/* ---- receiving ---- */

/* Cuts what was received into lines. A line that is too long is passed on in pieces. */
static void take_bytes(struct client *client, const UInt8 *bytes, CFIndex count)
{
    for (CFIndex i = 0; i < count; i++) {
        if (bytes[i] != '\n') {
            client->line[client->line_length++] = (char)bytes[i];
        }
        if (bytes[i] == '\n' || client->line_length == line_limit) {
            tell_others(client, client->line, client->line_length);
            client->line_length = 0;
        }
    }
}

static void read_event(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    UInt8 bytes[4096];
    CFIndex count = 0;

    if (type == kCFStreamEventHasBytesAvailable) {
        count = CFReadStreamRead(stream, bytes, sizeof bytes);
        if (count > 0) {
            take_bytes(info, bytes, count);
        }
    }
    if (count <= 0) { /* the end, or an error */
        send_away(info);
    }
}

/* ---- a client's beginning ---- */

static void accepted(CFSocketRef listener, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    const CFOptionFlags reads = kCFStreamEventHasBytesAvailable | kCFStreamEventEndEncountered | kCFStreamEventErrorOccurred;
    const CFOptionFlags writes = kCFStreamEventCanAcceptBytes | kCFStreamEventErrorOccurred;
    struct client *client = calloc(1, sizeof *client);
    CFStreamClientContext context = {.info = client};

    (void)listener, (void)type, (void)address, (void)info;
    if (!client) {
        return;
    }
    CFStreamCreatePairWithSocket(NULL, *(const CFSocketNativeHandle *)data, &client->reader, &client->writer);
    client->number = ++last_number;
    client->next = clients;
    clients = client;
    (void)printf("client %u came\n", client->number);
    CFReadStreamSetProperty(client->reader, kCFStreamPropertyShouldCloseNativeSocket, kCFBooleanTrue);
    CFReadStreamSetClient(client->reader, reads, read_event, &context);
    CFWriteStreamSetClient(client->writer, writes, write_event, &context);
    CFReadStreamScheduleWithRunLoop(client->reader, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    CFWriteStreamScheduleWithRunLoop(client->writer, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    if (!CFReadStreamOpen(client->reader) || !CFWriteStreamOpen(client->writer)) {
        send_away(client);
    }
}

/* Listens on loopback. Returns the port, or 0. */
static UInt32 serve(UInt16 port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CFSocketRef listener = CFSocketCreate(NULL, PF_INET, SOCK_STREAM, 0, kCFSocketAcceptCallBack, accepted, NULL);
    CFDataRef wanted = CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);
    CFRunLoopSourceRef source;
    CFDataRef given;

    if (CFSocketSetAddress(listener, wanted) != kCFSocketSuccess) {
        return 0;
    }
    source = CFSocketCreateRunLoopSource(NULL, listener, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    given = CFSocketCopyAddress(listener);
    memcpy(&address, CFDataGetBytePtr(given), sizeof address);
    CFRelease(given);
    CFRelease(wanted);
    CFRelease(source);
    return ntohs(address.sin_port);
}

/* ---- talking to itself ---- */

static unsigned greetings;

static void greet(CFWriteStreamRef stream, CFStreamEventType type, void *info)
{
    (void)info;
    if (type == kCFStreamEventCanAcceptBytes && last_number == 2) {
        (void)CFWriteStreamWrite(stream, (const UInt8 *)"hello\n", 6);
        CFWriteStreamSetClient(stream, kCFStreamEventNone, NULL, NULL);
    }
}

static void hear(CFReadStreamRef stream, CFStreamEventType type, void *info)
{
    UInt8 bytes[100];
    CFIndex count = type == kCFStreamEventHasBytesAvailable ? CFReadStreamRead(stream, bytes, sizeof bytes) : 0;

    (void)info;
    if (count > 0) {
        (void)printf("heard %.*s", (int)count, (const char *)bytes);
        greetings += memchr(bytes, '\n', (size_t)count) != NULL;
    }
    if (greetings == 2) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
}

static int talk(UInt32 port)
{
    const CFOptionFlags all = kCFStreamEventHasBytesAvailable | kCFStreamEventCanAcceptBytes;
    CFStreamClientContext context = {0};
    CFReadStreamRef readers[2];
    CFWriteStreamRef writers[2];

    for (int i = 0; i < 2; i++) {
        CFStreamCreatePairWithSocketToHost(NULL, CFSTR("127.0.0.1"), port, &readers[i], &writers[i]);
        CFReadStreamSetClient(readers[i], all, hear, &context);
        CFReadStreamScheduleWithRunLoop(readers[i], CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
        CFReadStreamOpen(readers[i]);
        CFWriteStreamOpen(writers[i]);
    }
    while (last_number < 2) { /* both are known to the server before either greets */
        CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1, true);
    }
    for (int i = 0; i < 2; i++) {
        CFWriteStreamSetClient(writers[i], all, greet, &context);
        CFWriteStreamScheduleWithRunLoop(writers[i], CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    }
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, false);
    for (int i = 0; i < 2; i++) {
        CFRelease(readers[i]);
        CFRelease(writers[i]);
    }
    return greetings == 2 ? 0 : 1;
}

int main(int count, char **arguments)
{
    UInt32 port = serve(count > 1 ? (UInt16)atoi(arguments[1]) : 0);

    if (!port) {
        perror("chat-server: cannot listen");
        return 1;
    }
    if (count == 1) {
        return talk(port);
    }
    (void)printf("port %u\n", (unsigned)port);
    CFRunLoopRun();
    return 0;
}
