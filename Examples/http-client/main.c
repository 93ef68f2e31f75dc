/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/1.1 client over streams, with TLS and names of hosts by libcorerunloop-net.
 *
 *   http-client [--trust FILE] URL...
 *
 * All downloads go on at once, on one thread and one loop. For each it prints a line when it is over: the status, the length of the body, a
 * hash of it and the URL; or the error. --trust names a file in PEM with the authorities to trust in place of the system's. The exit status
 * is 0 if all have arrived with status 200.
 *
 * The library is only linked; nothing here calls it.
 */
#include <CoreServices/CoreServices.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "response.h"

struct download {
    const char *address;
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    size_t length; /* of the request */
    size_t sent;
    char request[4096];
    struct response response;
};

static int left; /* downloads that are not over */
static int arrived;

/* ---- the end of a download ---- */

static void end(struct download *download)
{
    CFReadStreamClose(download->reader); /* no event comes after this */
    CFWriteStreamClose(download->writer);
    CFRelease(download->reader);
    CFRelease(download->writer);
    if (--left == 0) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
}

static void end_with_response(struct download *download)
{
    struct response *response = &download->response;

    if (response_end(response)) {
        (void)printf("%d %" PRIu64 " %016" PRIx64 " %s\n", response->status, response->length, response->hash, download->address);
        arrived += response->status == 200;
    } else {
        (void)printf("a response that is cut short, or wrong: %s\n", download->address);
    }
    end(download);
}

static void end_with_error(struct download *download, CFErrorRef error)
{
    CFStringRef text = error ? CFErrorCopyDescription(error) : CFRetain(CFSTR("no memory"));
    char bytes[500];

    if (!text || !CFStringGetCString(text, bytes, sizeof bytes, kCFStringEncodingUTF8)) {
        bytes[0] = '\0';
    }
    (void)printf("error: %s: %s\n", download->address, bytes);
    if (text) {
        CFRelease(text);
    }
    if (error) {
        CFRelease(error);
    }
    end(download);
}

/* ---- events ---- */

static void can_send(CFWriteStreamRef writer, CFStreamEventType type, void *info)
{
    struct download *download = info;
    size_t rest = download->length - download->sent;
    CFIndex count;

    if (type == kCFStreamEventErrorOccurred) {
        return; /* the read stream tells it, too */
    }
    count = rest > 0 ? CFWriteStreamWrite(writer, (const UInt8 *)download->request + download->sent, (CFIndex)rest) : 0;
    download->sent += count > 0 ? (size_t)count : 0;
}

static void has_received(CFReadStreamRef reader, CFStreamEventType type, void *info)
{
    struct download *download = info;
    UInt8 bytes[16384];
    CFIndex count;

    switch (type) {
    case kCFStreamEventHasBytesAvailable:
        count = CFReadStreamRead(reader, bytes, sizeof bytes);
        response_take(&download->response, bytes, count > 0 ? (size_t)count : 0);
        if (download->response.state >= response_done) {
            end_with_response(download);
        }
        break;
    case kCFStreamEventEndEncountered:
        end_with_response(download);
        break;
    default:
        end_with_error(download, CFReadStreamCopyError(reader));
    }
}

/* ---- the beginning ---- */

static void print_and_exit(const char *sentence, const char *subject)
{
    (void)fprintf(stderr, "http-client: %s: %s\n", sentence, subject);
    exit(2);
}

/* Copies a part of the URL, or `other` if it has none, and releases it. */
static void put_part(char *text, size_t size, CFStringRef part, const char *other)
{
    (void)snprintf(text, size, "%s", other);
    if (part) {
        (void)CFStringGetCString(part, text, (CFIndex)size, kCFStringEncodingUTF8);
        CFRelease(part);
    }
}

static void write_request(struct download *download, CFURLRef url, const char *host, SInt32 port)
{
    char path[2000];
    char query[1000];
    char named_port[16] = "";
    int length;

    put_part(path, sizeof path, CFURLCopyPath(url), "");
    put_part(query, sizeof query, CFURLCopyQueryString(url, NULL), "");
    if (port > 0) {
        (void)snprintf(named_port, sizeof named_port, ":%d", (int)port);
    }
    length = snprintf(download->request, sizeof download->request, "GET %s%s%s HTTP/1.1\r\nHost: %s%s\r\nConnection: close\r\n\r\n",
                      path[0] ? path : "/", query[0] ? "?" : "", query, host, named_port);
    download->length = (size_t)length < sizeof download->request ? (size_t)length : 0;
}

static void set_clients(struct download *download, CFArrayRef anchors, bool is_secure)
{
    CFStreamClientContext context = {.info = download};
    const void *key = kCRLStreamSSLAnchorCertificates;
    const void *value = anchors;
    CFDictionaryRef settings =
        CFDictionaryCreate(NULL, &key, &value, anchors ? 1 : 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);

    if (is_secure && !CFReadStreamSetProperty(download->reader, kCFStreamPropertySSLSettings, settings)) {
        print_and_exit("there is no TLS here", download->address);
    }
    CFRelease(settings);
    (void)CFReadStreamSetClient(download->reader,
                                kCFStreamEventHasBytesAvailable | kCFStreamEventErrorOccurred | kCFStreamEventEndEncountered, has_received,
                                &context);
    (void)CFWriteStreamSetClient(download->writer, kCFStreamEventCanAcceptBytes | kCFStreamEventErrorOccurred, can_send, &context);
    CFReadStreamScheduleWithRunLoop(download->reader, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    CFWriteStreamScheduleWithRunLoop(download->writer, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
}

static void begin(struct download *download, const char *address, CFArrayRef anchors)
{
    CFURLRef url = CFURLCreateWithBytes(NULL, (const UInt8 *)address, (CFIndex)strlen(address), kCFStringEncodingUTF8, NULL);
    CFStringRef name = url ? CFURLCopyHostName(url) : NULL;
    char scheme[16];
    char host[256];
    bool is_secure;
    SInt32 port;

    put_part(scheme, sizeof scheme, url ? CFURLCopyScheme(url) : NULL, "");
    is_secure = strcmp(scheme, "https") == 0;
    if (!name || (!is_secure && strcmp(scheme, "http") != 0)) {
        print_and_exit("this is no URL of HTTP", address);
    }
    port = CFURLGetPortNumber(url);
    download->address = address;
    response_init(&download->response);
    CFStreamCreatePairWithSocketToHost(NULL, name, port > 0 ? (UInt32)port : is_secure ? 443 : 80, &download->reader, &download->writer);
    if (!download->reader) {
        print_and_exit("no memory, or a wrong port", address);
    }
    put_part(host, sizeof host, name, "");
    write_request(download, url, host, port);
    CFRelease(url);
    set_clients(download, anchors, is_secure);
    left++;
    (void)CFReadStreamOpen(download->reader); /* if it fails at once, the loop tells that */
    (void)CFWriteStreamOpen(download->writer);
}

/* The certificates of a file, as the settings of a stream have them. */
static CFArrayRef read_anchors(const char *path)
{
    static UInt8 bytes[65536];
    FILE *file = fopen(path, "r");
    size_t count = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    CFDataRef data = CFDataCreate(NULL, bytes, (CFIndex)count);
    CFArrayRef anchors = CFArrayCreate(NULL, (const void **)&data, 1, &kCFTypeArrayCallBacks);

    if (!file || count == 0) {
        print_and_exit("cannot be read", path);
    }
    (void)fclose(file);
    CFRelease(data);
    return anchors;
}

int main(int count, char **arguments)
{
    CFArrayRef anchors = NULL;
    int first = 1;
    struct download *downloads = calloc((size_t)count, sizeof *downloads);

    if (count > 2 && strcmp(arguments[1], "--trust") == 0) {
        anchors = read_anchors(arguments[2]);
        first = 3;
    }
    if (first >= count || !downloads) {
        (void)fprintf(stderr, "usage: http-client [--trust FILE] URL...\n");
        return 2;
    }
    for (int i = first; i < count; i++) {
        begin(&downloads[i], arguments[i], anchors);
    }
    while (left > 0) {
        CFRunLoopRun();
    }
    if (anchors) {
        CFRelease(anchors);
    }
    free(downloads);
    return arrived == count - first ? 0 : 1;
}
