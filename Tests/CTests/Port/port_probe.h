/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of message ports share: a directory of names of the test's own, and servers in threads and in processes of their own.
 */
#ifndef CRL_TESTS_PORT_PROBE_H
#define CRL_TESTS_PORT_PROBE_H

#include <pthread.h>
#include <sys/types.h>

#include "CoreFoundation/CoreFoundation.h"
#include "CRLRunLoop.h"
#include "harness.h"

/* As TEST, with a directory of names for this test alone. All messages go through sockets, as if the receivers were other processes'. */
#define PORT_TEST(_name, _rules) PORT_TEST_LIMIT(_name, _rules, test_default_limit_s)
#define PORT_TEST_LIMIT(_name, _rules, _limit_s)                 \
    static void ported_##_name(void);                            \
    PORT_TEST_WAY(_name, _rules, _limit_s, ported_##_name, true) \
    static void ported_##_name(void)

/* The same twice: by sockets, and as programs do it within a process. */
#define PORT_TEST_BOTH_WAYS(_name, _rules) PORT_TEST_BOTH_WAYS_LIMIT(_name, _rules, test_default_limit_s)
#define PORT_TEST_BOTH_WAYS_LIMIT(_name, _rules, _limit_s)                   \
    static void ported_##_name(void);                                        \
    PORT_TEST_WAY(_name, _rules, _limit_s, ported_##_name, false)            \
    PORT_TEST_WAY(_name##_by_socket, _rules, _limit_s, ported_##_name, true) \
    static void ported_##_name(void)

#define PORT_TEST_WAY(_name, _rules, _limit_s, _body, _by_socket) \
    TEST_LIMIT(_name, _rules, _limit_s)                           \
    {                                                             \
        port_probe_begin(_by_socket);                             \
        _body();                                                  \
        port_probe_end();                                         \
    }

#define MODE CFSTR("reply mode")
#define NAME CFSTR("a port")

void port_probe_begin(bool by_socket);
void port_probe_end(void);
const char *port_probe_directory(void); /* XDG_RUNTIME_DIR */
const char *port_probe_names(void); /* the directory of names in it */
/* How many files are in the directory of names, without the sweeper's lock. */
int port_probe_count_files(void);

double port_probe_now(void);
/* Seconds for which the calling thread was ready to run and had no processor, since it began; 0 where the kernel does not count them. */
double port_probe_starved_s(void);
/* The clock without that: what a busy machine keeps from a test is not the library's lateness. */
double port_probe_own_time(void);
int port_probe_count_descriptors(void);
/* Waits until no more are open than that, because another thread may still close what its answer did not wait for. False after 10 s. */
bool port_probe_descriptors_fall_to(int most);
/* Bytes of memory that this process has in use. */
size_t port_probe_resident_bytes(void);

CFDataRef port_data(const char *text);
/* `length` bytes that depend on their place and on `seed`. */
CFDataRef port_pattern(CFIndex length, unsigned seed);
bool port_is_pattern(CFDataRef data, CFIndex length, unsigned seed);
bool port_data_is(CFDataRef data, const char *text);

/* Callouts. */
CFDataRef port_echo(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info);
CFDataRef port_silence(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info);
/* Has a child that ends at once, and then replies as port_echo does. */
CFDataRef port_fork_and_echo(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info);
/* Adds "id:text" to the trace that is the info, and replies with nothing. */
CFDataRef port_note(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info);

/* A local port in the calling thread's loop, in `mode`. Ends with port_drop. */
CFMessagePortRef port_open(CFStringRef name, CFMessagePortCallBack callout, void *info, CFStringRef mode);
void port_drop(CFMessagePortRef port); /* invalidates and releases */

/* Names under /proc do not exist from here on, as in a chroot; `kernel_ports = kernel_ports_linux` brings them back. */
void port_lose_proc(void);

/* A remote port, which must be there. */
CFMessagePortRef port_connect(CFStringRef name);

/* A request with patient time limits. */
SInt32 port_ask(CFMessagePortRef remote, SInt32 message_id, CFDataRef data, CFDataRef *ret_reply);
SInt32 port_tell(CFMessagePortRef remote, SInt32 message_id, CFDataRef data);

/* A local port whose messages a thread of its own handles. */
struct port_thread {
    CFStringRef name;
    CFMessagePortCallBack callout;
    void *info;
    CFMessagePortRef port;
    CFRunLoopRef loop;
    pthread_t thread;
    pthread_barrier_t ready;
};
void port_thread_start(struct port_thread *server, CFStringRef name, CFMessagePortCallBack callout, void *info);
void port_thread_stop(struct port_thread *server);

/* A local port in another process; `prepare` may be NULL. Returns when the name is registered. */
pid_t port_process_start(CFStringRef name, CFMessagePortCallBack callout, void *info, void (*prepare)(CFMessagePortRef port));
/* As that, but its loop never runs. */
pid_t port_process_start_idle(CFStringRef name);
void port_process_kill(pid_t pid);

/* Runs `body` in a child that is another process to the ports; what it returns, or 128 and the signal that ended it. Its failures count. */
int port_probe_in_child(int (*body)(void));

#endif
