/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the Swift overlay needs and cannot spell: threads with a stack size, a thread-local word with a destructor, a gate to wait at,
 * thread names and priorities, the loop's monotonic clock, and two questions to the C library that are no part of its public interface.
 *
 * Everything may be called from any thread unless its comment says otherwise. Not part of the package's interface.
 */
#ifndef CORE_RUN_LOOP_SHIMS_H
#define CORE_RUN_LOOP_SHIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "../../../Headers/CoreFoundation/CFMessagePort.h"
#include "../../../Headers/CoreFoundation/CFRunLoop.h"

#pragma clang assume_nonnull begin

/* Whether CFRunLoopRunInMode would find nothing to wait for in `mode` (rule 25). */
bool shim_mode_is_empty(CFRunLoopRef loop, CFRunLoopMode mode);
/* Whether the calling thread is the loop's. */
bool shim_loop_is_current(CFRunLoopRef loop);
/* Has the loop call `function` once, in a common mode, and wakes it; keeps the loop until this returns, as the call may free who had it. */
void shim_perform_and_wake(CFRunLoopRef loop, void (*_Nonnull function)(void *_Nullable info), void *info,
                           void (*_Nonnull release)(void *_Nullable info));
/* Whether `mode` is one of the loop's common modes. */
bool shim_mode_is_common(CFRunLoopRef loop, CFRunLoopMode mode);
/*
 * Joins a new C object and a Swift object that holds it into a whole with one count, the Swift object's: so neither outlives the other, and
 * they need no weak references. The Swift object's own reference is not counted. Before that reference is given back at the Swift object's
 * end, the two are to be parted.
 */
void shim_join(void *c_object, void *swift_object);
void shim_part(void *c_object);

/* An instant: nanoseconds of the clock that the loop's timers follow, INT64_MAX for one that never comes. */
int64_t shim_monotonic_ns(void);
/* What the wall clock shows: nanoseconds since 2001. */
int64_t shim_wall_ns(void);
/* What it shows at an instant, as far as it can be foreseen; false for one that never comes. */
bool shim_wall_of_instant(int64_t instant_ns, int64_t *_Nonnull ret_since_2001_ns);
/* The instant of a date, which is the sum of the two, seconds since 2001; no earlier than now. */
int64_t shim_instant_of_date(double seconds, double rest);
/* The date of a timer as its number, and when it comes. */
struct shim_timer_date {
    bool exists;
    double seconds;
    int64_t instant_ns;
};
/* None of an invalid timer. */
struct shim_timer_date shim_timer_date(CFRunLoopTimerRef timer);
/* Of the timer of a mode that fires next; none without timers. */
struct shim_timer_date shim_next_timer_date(CFRunLoopRef loop, CFRunLoopMode mode);
/* When a timer fires next; in its callout what has just come. */
int64_t shim_timer_instant(CFRunLoopTimerRef timer);
void shim_timer_set_instant(CFRunLoopTimerRef timer, int64_t instant_ns);
/* The same for the instant of a date. */
void shim_timer_set_date(CFRunLoopTimerRef timer, double seconds, int64_t instant_ns);
/* CFRunLoopRunInMode until an instant; 0 is one pass that does not sleep. The calling thread's loop. */
CFRunLoopRunResult shim_run_current_until(CFRunLoopMode mode, int64_t deadline_ns, bool returns_after_source);

/* Whether the calling thread is the process's first. */
bool shim_is_main_thread(void);

/* The calling thread's word; NULL at first. */
void *_Nullable shim_thread_word(void);
/*
 * Sets it; `end`, the same in every call, gets it when the thread ends: in the second round of thread-specific destructors, so that those
 * of the first find it as it was, and before the loop's own end. While `end` runs the word is still set; it is to forget the word before
 * what the word stands for is freed.
 */
void shim_set_thread_word(void *_Nullable word, void (*_Nonnull end)(void *_Nullable word));
void shim_forget_thread_word(void);
/* Whether a word of the calling thread has been forgotten: what runs now are its last destructors. */
bool shim_thread_has_ended(void);

/* Starts a detached thread. `stack_size` 0 is the system's. Returns 0 or an errno value; then `body` is not called. */
int shim_thread_start(uintptr_t stack_size, void (*_Nonnull body)(void *_Nullable info), void *_Nullable info);
/* The smallest stack that a thread may have, in bytes. */
uintptr_t shim_smallest_stack(void);
/* The size of the calling thread's stack, in bytes. */
uintptr_t shim_stack_size(void);
/* That of threads for which none is chosen. */
uintptr_t shim_default_stack_size(void);
/* Ends the calling thread without unwinding what Swift has on its stack. */
void shim_thread_exit(void) __attribute__((noreturn));
/* A number of the calling thread that no other one ever has. */
uint64_t shim_thread_number(void);
/* The kernel's number of the calling thread. */
int shim_thread_id(void);
/* Sets the kernel's name of a thread of this process: the first 15 bytes. */
void shim_set_thread_name(int thread_id, const char *_Nonnull name);
/* The nice value of a thread; sets 0 or an errno value. */
int shim_thread_nice(int thread_id, int nice);
int shim_get_thread_nice(int thread_id);
void shim_sleep_ns(int64_t ns);
/* The return addresses of the functions that the calling thread is in, innermost first; returns how many. */
uintptr_t shim_call_stack(uintptr_t *_Nonnull ret_addresses, uintptr_t size);
/* What the dynamic linker knows of an address. */
void shim_describe_address(uintptr_t address, char *_Nonnull ret_text, uintptr_t size);

/* A gate: closed at first, opened once; everyone who waits goes through. */
struct shim_gate;
struct shim_gate *_Nonnull shim_gate_create(void);
void shim_gate_destroy(struct shim_gate *_Nonnull gate);
void shim_gate_open(struct shim_gate *_Nonnull gate);
/* Waits until it is open, at most `limit_ns`, without limit if that is negative. Says whether it is open. */
bool shim_gate_wait(struct shim_gate *_Nonnull gate, int64_t limit_ns);

/* A lock whose order thread sanitizers see. */
struct shim_lock;
struct shim_lock *shim_lock_create(void);
void shim_lock_destroy(struct shim_lock *lock);
void shim_lock_take(struct shim_lock *lock);
void shim_lock_drop(struct shim_lock *lock);

/* Writes to the standard error output. */
void shim_report(const uint8_t *_Nonnull text, intptr_t length);
int32_t shim_process_id(void);
/* Ends the process, as `exit` does. */
void shim_process_exit(int status) __attribute__((noreturn));

/* Blocks a signal in the calling thread; 0 or an errno value. */
int shim_block_signal(int signal);
/* What a wait status says: the exit code, or -1; the signal, or 0. */
int shim_exit_code(int status);
int shim_exit_signal(int status);

/* What a local message port answers. */
struct shim_reply;
void shim_reply_set(struct shim_reply *reply, const void *_Nullable bytes, intptr_t length);
typedef void (*shim_receive)(void *_Nullable callee, int32_t number, const uint8_t *_Nullable bytes, intptr_t length,
                             struct shim_reply *reply);
/* Creates a local port whose messages go to `receive`, the same function in every call, with what shim_message_port_call said: that is to
 * be said before there is a source. `info` is the invalidation callback's, released when the port is invalidated or freed; without a port
 * it stays the caller's. `release` gives back the info, and each callee. */
CFMessagePortRef _Nullable shim_message_port_create(CFStringRef name, shim_receive receive, void *info,
                                                    void (*_Nonnull release)(const void *_Nullable reference)) CF_RETURNS_RETAINED;
/* Whom a local port's messages go to from now on; a reference, given back once another has taken its place, or the port has become
 * invalid, and no call of `receive` has it. */
void shim_message_port_call(CFMessagePortRef port, void *callee);
/* The bytes of an answer; to be dropped, also if there are none. */
struct shim_answer {
    const uint8_t *_Nullable bytes;
    intptr_t length;
    const void *_Nullable data; /* what they belong to */
};
void shim_answer_drop(const struct shim_answer *answer);
/* CFMessagePortSendRequest with bytes in the place of objects; without a `ret_answer` nothing is waited for. */
int32_t shim_message_port_send(CFMessagePortRef port, int32_t number, const void *_Nullable bytes, intptr_t length, double send_limit,
                               double answer_limit, struct shim_answer *_Nullable ret_answer);

/* SocketPort: addresses as the system's structures, in SHIM_ADDRESS_SIZE bytes. */
enum { SHIM_ADDRESS_SIZE = 128 };
/* Writes the address of `host`, the bytes of an AF_INET or AF_INET6 address, and returns its length. */
intptr_t shim_address_make(int family, const uint8_t *_Nonnull host, uint16_t number, uint8_t *_Nonnull ret_address);
/* The same for AF_UNIX; 0 for a path that is empty, too long, or holds a zero byte. */
intptr_t shim_address_of_path(const uint8_t *_Nonnull path, intptr_t length, uint8_t *_Nonnull ret_address);
/* AF_INET, AF_INET6 or AF_UNIX; -1 for anything else, or if it is too short. */
int shim_address_family(const uint8_t *_Nonnull address, intptr_t length);
/* Of an AF_INET or AF_INET6 address. */
uint16_t shim_address_number(const uint8_t *_Nonnull address);
const uint8_t *_Nonnull shim_address_host(const uint8_t *_Nonnull address, int family);
/* Reads a host that is written in numbers: writes its 4 or 16 bytes and returns how many, or 0. */
intptr_t shim_host_parse(const char *_Nonnull text, uint8_t *_Nonnull ret_host);
/* Writes the text of an AF_INET or AF_INET6 host into SHIM_ADDRESS_SIZE bytes. */
void shim_host_format(int family, const uint8_t *_Nonnull host, char *_Nonnull ret_text);
/* A socket's own address, or its peer's, and its length; 0 if it has none. */
intptr_t shim_socket_name(int socket, uint8_t *_Nonnull ret_address);
intptr_t shim_socket_peer(int socket, uint8_t *_Nonnull ret_address);
int shim_socket_protocol(int socket);
/* Whether it is a stream socket that accepts connections. */
bool shim_socket_is_listening(int socket);
/* Has no call on the socket block, and no program that this one starts inherit it. 0 or an errno value. */
int shim_socket_keep_quiet(int socket);
/* What became of a call: it went well, the limit came first, another has the address, the system has no more, there is nobody. */
enum { SHIM_SOCKET_FINE = 0, SHIM_SOCKET_TIMEOUT = -1, SHIM_SOCKET_TAKEN = -2, SHIM_SOCKET_NO_MEANS = -3, SHIM_SOCKET_GONE = -4 };
/* A stream socket that listens at the address, or one of these. */
int shim_socket_listen(int family, int protocol, const uint8_t *_Nonnull address, intptr_t length);
/* A connection, or a negative number. */
int shim_socket_accept(int listener);
enum { SHIM_ENDED = 0, SHIM_NOTHING_YET = -1 };
/* The number of bytes read, SHIM_ENDED at the end and after an error, or SHIM_NOTHING_YET. */
intptr_t shim_socket_read(int socket, uint8_t *_Nonnull bytes, intptr_t length);
void shim_socket_close(int socket);
/* Which file it is, as long as it is open or has a name. */
struct shim_file_identity {
    uint64_t device;
    uint64_t number;
};
/* Finds the file of an AF_UNIX address; false if there is none, or it is no socket's. */
bool shim_socket_file(const uint8_t *_Nonnull address, intptr_t length, struct shim_file_identity *_Nonnull ret_identity);
/* Removes the file of an AF_UNIX address if it is this one. */
void shim_socket_unlink(const uint8_t *_Nonnull address, intptr_t length, struct shim_file_identity identity);

/* A descriptor that is readable while one of the sockets in it is. */
int shim_poll_set_create(void);
int shim_poll_set_add(int set, int socket);
void shim_poll_set_remove(int set, int socket);
/* One that is ready, in turn, or -1. */
int shim_poll_set_next(int set);

/* A connection to an address, made when it is needed; one sender writes at a time. */
struct shim_line;
struct shim_line *shim_line_create(int protocol, const uint8_t *_Nonnull address, intptr_t length);
/* Writes all bytes within the limit; one of SHIM_SOCKET_FINE to SHIM_SOCKET_GONE. */
int shim_line_send(struct shim_line *line, const uint8_t *_Nonnull bytes, intptr_t length, int64_t limit_ns);
/* Has those who send come back, now and later. */
void shim_line_end(struct shim_line *line);
/* Nobody may be sending any more. */
void shim_line_destroy(struct shim_line *line);

/* CoreRunLoopTesting: gives the calling thread, and those that it starts, clocks that stand still until they are moved. */
void shim_clock_begin(void);
/* Moves the calling thread's clocks on, as far as there are numbers for it; false if they are the kernel's. */
bool shim_clock_advance(int64_t ns);
/* Sets its wall clock alone, on or back. */
bool shim_clock_step_wall(int64_t ns);
/* The calling thread's, for a thread that it starts. */
void *_Nullable shim_clock_of_thread(void);
void shim_clock_inherit(void *_Nullable clock);

#pragma clang assume_nonnull end

#endif
