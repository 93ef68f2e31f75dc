/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Downloads in a run loop: libcurl says which sockets to watch and when it wants to be called, and a CFFileDescriptor for each socket
 * and one timer do that.
 *
 * usage: curl URL...
 * Downloads all of them at once, prints for each its status, its length and a checksum (FNV-1a, 64 bits), and ends with 0 if all arrived.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct download {
    const char *url;
    uint64_t checksum;
    size_t length;
};

static CURLM *multi;
static CFRunLoopTimerRef timer; /* the one deadline that libcurl has */
static int left; /* transfers under way */
static int failures;

/* ---- transfers ---- */

static size_t receive(char *bytes, size_t size, size_t count, void *info)
{
    struct download *download = info;

    for (size_t i = 0; i < size * count; i++) {
        download->checksum = (download->checksum ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    }
    download->length += size * count;
    return size * count;
}

static void finish(CURL *transfer, CURLcode result)
{
    struct download *download = NULL;
    long status = 0;

    (void)curl_easy_getinfo(transfer, CURLINFO_PRIVATE, &download);
    (void)curl_easy_getinfo(transfer, CURLINFO_RESPONSE_CODE, &status);
    if (result != CURLE_OK) {
        (void)fprintf(stderr, "curl: %s: %s\n", download->url, curl_easy_strerror(result));
    } else {
        (void)printf("%ld %zu %016" PRIx64 " %s\n", status, download->length, download->checksum, download->url);
    }
    failures += result != CURLE_OK || status != 200;
    (void)curl_multi_remove_handle(multi, transfer);
    curl_easy_cleanup(transfer);
}

static void look_for_ends(void)
{
    CURLMsg *message;
    int waiting;

    while ((message = curl_multi_info_read(multi, &waiting))) {
        if (message->msg == CURLMSG_DONE) {
            finish(message->easy_handle, message->data.result);
        }
    }
    if (left == 0) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
}

static void begin(struct download *download)
{
    CURL *transfer = curl_easy_init();

    (void)curl_easy_setopt(transfer, CURLOPT_URL, download->url);
    (void)curl_easy_setopt(transfer, CURLOPT_WRITEFUNCTION, receive);
    (void)curl_easy_setopt(transfer, CURLOPT_WRITEDATA, download);
    (void)curl_easy_setopt(transfer, CURLOPT_PRIVATE, download);
    (void)curl_multi_add_handle(multi, transfer);
}

/* ---- what libcurl wants to be told ---- */

/* Which of both libcurl waits for is kept in the context's info: callbacks come once, and are enabled again. */
static CFOptionFlags callbacks_for(int what)
{
    return (what & CURL_POLL_IN ? kCFFileDescriptorReadCallBack : 0ul) | (what & CURL_POLL_OUT ? kCFFileDescriptorWriteCallBack : 0ul);
}

static void socket_is_ready(CFFileDescriptorRef descriptor, CFOptionFlags types, void *info)
{
    int events =
        (types & kCFFileDescriptorReadCallBack ? CURL_CSELECT_IN : 0) | (types & kCFFileDescriptorWriteCallBack ? CURL_CSELECT_OUT : 0);

    CFRetain(descriptor); /* libcurl may be done with the socket meanwhile */
    (void)curl_multi_socket_action(multi, CFFileDescriptorGetNativeDescriptor(descriptor), events, &left);
    if (CFFileDescriptorIsValid(descriptor)) {
        CFFileDescriptorEnableCallBacks(descriptor, callbacks_for(*(int *)info));
    }
    CFRelease(descriptor);
    look_for_ends();
}

static CFFileDescriptorRef watch_new(curl_socket_t socket)
{
    CFFileDescriptorContext context = {0, calloc(1, sizeof(int)), NULL, free, NULL};
    CFFileDescriptorRef descriptor = CFFileDescriptorCreate(NULL, socket, false, socket_is_ready, &context);
    CFRunLoopSourceRef source = descriptor ? CFFileDescriptorCreateRunLoopSource(NULL, descriptor, 0) : NULL;

    if (!source) {
        return NULL;
    }
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    CFRelease(source);
    (void)curl_multi_assign(multi, socket, descriptor);
    return descriptor;
}

static int watch(CURL *transfer, curl_socket_t socket, int what, void *info, void *known)
{
    CFFileDescriptorRef descriptor = known ? known : what == CURL_POLL_REMOVE ? NULL : watch_new(socket);
    CFFileDescriptorContext context = {0};

    (void)transfer, (void)info;
    if (!descriptor) {
        return what == CURL_POLL_REMOVE ? 0 : -1;
    }
    if (what == CURL_POLL_REMOVE) {
        CFFileDescriptorInvalidate(descriptor);
        CFRelease(descriptor);
        (void)curl_multi_assign(multi, socket, NULL);
        return 0;
    }
    CFFileDescriptorGetContext(descriptor, &context);
    *(int *)context.info = what;
    CFFileDescriptorDisableCallBacks(descriptor, kCFFileDescriptorReadCallBack | kCFFileDescriptorWriteCallBack);
    CFFileDescriptorEnableCallBacks(descriptor, callbacks_for(what));
    return 0;
}

static void time_is_up(CFRunLoopTimerRef fired, void *info)
{
    (void)fired, (void)info;
    (void)curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &left);
    look_for_ends();
}

/* One timer for the whole program, moved about: far away when libcurl waits for nothing. */
static int set_deadline(CURLM *of, long milliseconds, void *info)
{
    (void)of, (void)info;
    CFRunLoopTimerSetNextFireDate(timer, CFAbsoluteTimeGetCurrent() + (milliseconds < 0 ? 1e9 : (double)milliseconds / 1000));
    return 0;
}

int main(int count, char **arguments)
{
    struct download *downloads;

    if (count < 2) {
        (void)fprintf(stderr, "usage: curl URL...\n");
        return EXIT_FAILURE;
    }
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    multi = curl_multi_init();
    timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 1e9, 1e9, 0, 0, time_is_up, NULL);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, watch);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, set_deadline);
    downloads = calloc((size_t)count, sizeof *downloads);
    for (int i = 1; i < count; i++) {
        downloads[i] = (struct download){.url = arguments[i], .checksum = UINT64_C(0xcbf29ce484222325)};
        begin(&downloads[i]);
    }
    CFRunLoopRun();
    (void)curl_multi_cleanup(multi);
    curl_global_cleanup();
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    free(downloads);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
