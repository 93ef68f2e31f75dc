/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ZeroMQ in a run loop: a server whose ZMQ_FD is watched by a CFFileDescriptor, and a client on a thread of its own.
 *
 * usage: zeromq [REQUESTS [ENDPOINT]]
 * The client sends requests, a thousand unless told otherwise, and checks the answers; ends with 0 if all were right.
 *
 * ZMQ_FD says that something may have changed, not what: it is read by ZeroMQ only, and changes are told once. So whoever is told, and
 * whoever has sent or received, asks for ZMQ_EVENTS until there are none.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

static void *context;
static void *server;
static char endpoint[256];
static int requests = 1000;
static int served;
static int answers; /* written by the client's thread, read after its end */

static void serve(void)
{
    char text[64];
    int events = 0;
    size_t size = sizeof events;

    while (zmq_getsockopt(server, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN)) {
        int length = zmq_recv(server, text, sizeof text, ZMQ_DONTWAIT);

        if (length < 0) {
            return;
        }
        served++;
        (void)zmq_send(server, text, (size_t)length, ZMQ_DONTWAIT);
    }
    if (served == requests) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
}

static void something_changed(CFFileDescriptorRef descriptor, CFOptionFlags types, void *info)
{
    (void)types, (void)info;
    serve();
    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack);
}

static void *ask(void *info)
{
    void *client = zmq_socket(context, ZMQ_REQ);

    (void)info;
    (void)zmq_connect(client, endpoint);
    for (int i = 0; i < requests; i++) {
        char question[32];
        char answer[32];
        int length = snprintf(question, sizeof question, "request %d", i);

        (void)zmq_send(client, question, (size_t)length, 0);
        answers += zmq_recv(client, answer, sizeof answer, 0) == length && memcmp(question, answer, (size_t)length) == 0;
    }
    (void)zmq_close(client);
    return NULL;
}

static CFFileDescriptorRef watch_server(void)
{
    int native = -1;
    size_t size = sizeof native;
    CFFileDescriptorRef descriptor;
    CFRunLoopSourceRef source;

    (void)zmq_getsockopt(server, ZMQ_FD, &native, &size);
    descriptor = CFFileDescriptorCreate(NULL, native, false, something_changed, NULL);
    if (!descriptor) {
        return NULL;
    }
    source = CFFileDescriptorCreateRunLoopSource(NULL, descriptor, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    CFRelease(source);
    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack);
    return descriptor;
}

int main(int count, char **arguments)
{
    CFFileDescriptorRef descriptor;
    size_t size = sizeof endpoint;
    pthread_t thread;

    if (count > 1) {
        requests = atoi(arguments[1]);
    }
    context = zmq_ctx_new();
    server = zmq_socket(context, ZMQ_REP);
    if (zmq_bind(server, count > 2 ? arguments[2] : "tcp://127.0.0.1:*") != 0 ||
        zmq_getsockopt(server, ZMQ_LAST_ENDPOINT, endpoint, &size) != 0) {
        (void)fprintf(stderr, "zeromq: %s\n", zmq_strerror(zmq_errno()));
        return EXIT_FAILURE;
    }
    descriptor = watch_server();
    if (!descriptor || pthread_create(&thread, NULL, ask, NULL) != 0) {
        return EXIT_FAILURE;
    }
    serve();
    CFRunLoopRun();
    (void)pthread_join(thread, NULL);
    (void)printf("%s: %d requests, %d right answers\n", endpoint, served, answers);
    CFFileDescriptorInvalidate(descriptor);
    CFRelease(descriptor);
    (void)zmq_close(server);
    (void)zmq_ctx_term(context);
    return answers == requests ? EXIT_SUCCESS : EXIT_FAILURE;
}
