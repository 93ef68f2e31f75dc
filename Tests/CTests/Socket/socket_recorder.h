/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recorder for one CFSocket. It records the callbacks, and counts the retains and releases of the context. There are also peers to talk
 * to, on loopback and on Unix sockets.
 *
 * The log has a word for each callback: read, accept, data(5) or data() at the end, connect or connect(111), and write. A recorder with a
 * name logs name:read.
 */
#ifndef CRL_TESTS_SOCKET_RECORDER_H
#define CRL_TESTS_SOCKET_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "CoreFoundation/CFSocket.h"
#include "Loop/loop_trace.h"

struct recorder {
    const char *name; /* may be NULL */
    void (*action)(struct recorder *recorder); /* in the callback, after the logging */
    void *context; /* the action's own */
    bool is_silent;
    bool logs_context; /* retain and release too */
    bool drains; /* Read callbacks read what is there */
    CFSocketRef object; /* owned until recorder_free */
    CFSocketCallBackType type; /* of the callback that is under way */
    const void *data; /* of the callback that is under way */
    CFDataRef address; /* of the callback that is under way */
    int accepted; /* the latest handle, to be closed by the test; -1: none */
    size_t bytes; /* received by Data callbacks */
    int error; /* of the latest Connect callback */
    int ends[2]; /* of the pair that recorder_add_on_pair has opened; the object has the first */
    _Atomic int calls;
    _Atomic int retains;
    _Atomic int releases;
};

#define RECORDER(...) {.accepted = -1, __VA_ARGS__}

CFSocketContext recorder_context(struct recorder *recorder);
void recorder_called(CFSocketRef s, CFSocketCallBackType type, CFDataRef address, const void *data, void *info);

/* The object alone, for a native socket. */
CFSocketRef recorder_create(struct recorder *recorder, int native, CFOptionFlags types);
/* Adds the object's source to MODE of the calling thread's loop. */
void recorder_schedule(struct recorder *recorder);
/* Creates and schedules the object. */
CFSocketRef recorder_add(struct recorder *recorder, int native, CFOptionFlags types);
/* As recorder_add, on one end of a new pair of Unix sockets. */
CFSocketRef recorder_add_on_pair(struct recorder *recorder, CFOptionFlags types);
/* Invalidates and releases the object, and closes what it accepted. */
void recorder_free(struct recorder *recorder);
/* As recorder_free, and closes the end of the pair that is not the object's. */
void recorder_free_with_pair(struct recorder *recorder);

/* An action: copies the address that the callback was given to where `context` points. The test releases the copy. */
void recorder_copies_sender(struct recorder *recorder);

/* Runs MODE until there have been `calls` callbacks; a failure if they do not come. */
void recorder_await(struct recorder *recorder, int calls);
/* Runs MODE without waiting, as many passes as it takes to handle all that is ready in these tests. */
void look(void);

enum {
    reads = kCFSocketReadCallBack,
    accepts = kCFSocketAcceptCallBack,
    receives = kCFSocketDataCallBack,
    connects = kCFSocketConnectCallBack,
    writes = kCFSocketWriteCallBack,
};

/* Connected Unix sockets. */
void pair_open(int ends[2]);
void pair_close(int ends[2]);
void tell(int socket, const char *text);
int drain(int socket); /* bytes that were there */

/* Addresses, as data that the caller releases: a free port on loopback of either family, or a path that does not exist yet. */
CFDataRef loopback_address(int family);
CFDataRef path_address(const char *path);
/* The port or path that the socket has in fact. */
CFDataRef address_of(int socket);
/* A descriptor that listens on `address`; and one that is connected to it. Neither belongs to a CFSocket. */
int listen_on(CFDataRef address, int backlog);
int connect_to(CFDataRef address);
/* TCP port 1 on loopback. Nobody listens there, and the system never picks it, unlike a port that was just closed. */
CFDataRef refusing_address(void);

#endif
