/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C functions that the Swift overlay needs and Swift cannot express: threads with a stack size, a thread-local word with a destructor,
 * gates, thread names and priorities, sockets, and the C library's functions of Overlay/overlay.h in types that Swift imports.
 *
 * Everything may be called on any thread unless its comment says otherwise. This header is no part of the package's interface.
 */
#ifndef CORE_RUN_LOOP_SHIMS_H
#define CORE_RUN_LOOP_SHIMS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>

#include "../../../Headers/CoreFoundation/CFMessagePort.h"
#include "../../../Headers/CoreFoundation/CFRunLoop.h"
#include "../../../Headers/CoreFoundation/CFStream.h"

#pragma clang assume_nonnull begin

/* Returns whether CFRunLoopRunInMode would find nothing to wait for in `mode`. A mode that does not exist is empty (rule 25). */
bool shim_mode_is_empty(CFRunLoopRef loop, CFRunLoopMode mode);
/* Returns whether the calling thread is the loop's. */
bool shim_loop_is_current(CFRunLoopRef loop);
/* Returns whether something is in the loop, which has never run, neither by itself nor in a host's loop. */
bool shim_loop_waits_for_first_run(CFRunLoopRef loop);
/* Makes the loop call `function` once, in a common mode, and wakes it. Retains the loop meanwhile: the call may free its owner. */
void shim_perform_and_wake(CFRunLoopRef loop, void (*_Nonnull function)(void *_Nullable info), void *info,
                           void (*_Nonnull release)(void *_Nullable info));
/* Returns whether `mode` is one of the loop's common modes. */
bool shim_mode_is_common(CFRunLoopRef loop, CFRunLoopMode mode);
/*
 * Joins a new C object with the Swift object that holds it: both then use the Swift object's count. So neither outlives the other,
 * and they need no weak references. The Swift object's own reference is not counted. The two must be parted before that reference is given
 * back at the Swift object's end.
 */
void shim_join(void *c_object, void *swift_object);
void shim_part(void *c_object);

/* Returns the time of the clock that stands still while the system is suspended, in nanoseconds. The limits of runs go by it. */
int64_t shim_monotonic_ns(void);
/* Returns the current instant. An instant is nanoseconds of the clock of the loop's timers, which goes on then; INT64_MAX never comes. */
int64_t shim_elapsed_ns(void);
/* Returns true if the calling thread's clocks are moved by hand, by a test. */
bool shim_clock_is_by_hand(void);
/* Returns true if the calling thread may run on more than one processor. */
bool shim_has_processors(void);
/* Returns the wall clock's time in nanoseconds since 2001. */
int64_t shim_wall_ns(void);
/* Writes a date in UTC, as in 2001-01-01 00:00:00.000000 +0000. Returns the length of the text, or 0 if its year has no number. */
intptr_t shim_date_text(int64_t since_2001_us, char *_Nonnull ret_text, intptr_t size);
/* Stores the wall clock's time at an instant, as far as it can be foreseen. False for an instant that never comes. */
bool shim_wall_of_instant(int64_t instant_ns, int64_t *_Nonnull ret_since_2001_ns);
/* Returns the instant of the date `seconds` + `rest`, in seconds since 2001; never earlier than now. */
int64_t shim_instant_of_date(double seconds, double rest);
/* A timer's date in seconds since 2001, and its instant. */
struct shim_timer_date {
    bool exists;
    double seconds;
    int64_t instant_ns;
};
/* Returns the next date of a timer; none for an invalid timer. */
struct shim_timer_date shim_timer_date(CFRunLoopTimerRef timer);
/* Returns the date of the timer of a mode that fires next; none for a mode without timers. */
struct shim_timer_date shim_next_timer_date(CFRunLoopRef loop, CFRunLoopMode mode);
/* Returns the instant at which a timer fires next; during its callback, the instant that has just come. */
int64_t shim_timer_instant(CFRunLoopTimerRef timer);
void shim_timer_set_instant(CFRunLoopTimerRef timer, int64_t instant_ns);
/* Moves a timer to a date, whose instant is `instant_ns`. */
void shim_timer_set_date(CFRunLoopTimerRef timer, double seconds, int64_t instant_ns);
/* The timer fires when the wall clock shows its date, also if somebody sets the clock. Called before it is in a loop. */
void shim_timer_follow_wall(CFRunLoopTimerRef timer);
/* Runs the calling thread's loop like CFRunLoopRunInMode, but until a time of shim_monotonic_ns. 0 makes one pass that does not sleep. */
CFRunLoopRunResult shim_run_current_until(CFRunLoopMode mode, int64_t deadline_ns, bool returns_after_source);

/* Returns whether the calling thread is the first of the process. */
bool shim_is_main_thread(void);

/*
 * Asks Swift's runtime whether the calling thread is in the isolation of an executor. Never stops the process. `executor` has the bytes of
 * an UnownedSerialExecutor. Only checkIsolated of an executor that cannot answer knows more, and that stops the process.
 */
enum { SHIM_NOT_ISOLATED = 0, SHIM_ISOLATED = 1, SHIM_ISOLATION_UNKNOWN = -1 };
int shim_executor_isolates(const void *_Nullable executor, intptr_t size, bool is_main);

/*
 * Writes what Swift's runtime makes of a mangled name, with a terminating zero. False if it is none, or if there is no room for it.
 */
bool shim_swift_demangle(const uint8_t *_Nullable name, intptr_t length, char *_Nullable ret_text, intptr_t size);
/*
 * Returns whether the program has a distributed function of this mangled name. The name is compared with those that the compiler has
 * written, and is not taken apart.
 */
bool shim_swift_knows_function(const uint8_t *_Nullable name, intptr_t length);

/* Returns the calling thread's word; NULL at first. */
void *_Nullable shim_thread_word(void);
/*
 * Sets the calling thread's word. `end`, the same function in every call, gets the word when the thread ends. That happens in the second
 * round of thread-specific destructors, so that those of the first round still find the word, and before the loop's own end. The word is
 * still set while `end` runs; `end` must forget it before it frees the object behind it.
 */
void shim_set_thread_word(void *_Nullable word, void (*_Nonnull end)(void *_Nullable word));
void shim_forget_thread_word(void);
/* Returns whether the calling thread has forgotten its word, so that only its last destructors run now. */
bool shim_thread_has_ended(void);

/* Starts a detached thread. A `stack_size` of 0 is the system's default. Returns 0, or an errno value if `body` will not be called. */
int shim_thread_start(uintptr_t stack_size, void (*_Nonnull body)(void *_Nullable info), void *_Nullable info);
/* Returns the smallest stack that a thread may have, in bytes. */
uintptr_t shim_smallest_stack(void);
/* Returns the size of the calling thread's stack, in bytes. */
uintptr_t shim_stack_size(void);
/* Returns the default stack size of threads, in bytes. */
uintptr_t shim_default_stack_size(void);
/* Ends the calling thread without unwinding the Swift frames on its stack. */
void shim_thread_exit(void) __attribute__((noreturn));
/* Returns a number of the calling thread that no other thread ever has. */
uint64_t shim_thread_number(void);
/* Returns the kernel's id of the calling thread. */
int shim_thread_id(void);
/* Sets the kernel's name of a thread of this process: the first 15 bytes. */
void shim_set_thread_name(int thread_id, const char *_Nonnull name);
/* Sets and returns the nice value of a thread. Setting returns 0 or an errno value. */
int shim_thread_nice(int thread_id, int nice);
int shim_get_thread_nice(int thread_id);
void shim_sleep_ns(int64_t ns);
/* Stores the return addresses of the calling thread's stack frames, innermost first, and returns their number. */
uintptr_t shim_call_stack(uintptr_t *_Nonnull ret_addresses, uintptr_t size);
/* Writes the symbol and file that the dynamic linker knows for an address. */
void shim_describe_address(uintptr_t address, char *_Nonnull ret_text, uintptr_t size);

/* A gate that is closed at first and opened once. Every waiting thread then goes through. */
struct shim_gate;
struct shim_gate *_Nonnull shim_gate_create(void);
void shim_gate_destroy(struct shim_gate *_Nonnull gate);
void shim_gate_open(struct shim_gate *_Nonnull gate);
/* Waits until the gate is open, at most `limit_ns`; a negative limit means none. Returns whether it is open. */
bool shim_gate_wait(struct shim_gate *_Nonnull gate, int64_t limit_ns);

/* A lock whose order thread sanitizers see. */
struct shim_lock;
struct shim_lock *shim_lock_create(void);
void shim_lock_destroy(struct shim_lock *lock);
void shim_lock_take(struct shim_lock *lock);
void shim_lock_drop(struct shim_lock *lock);

/* Has every thread of the process pass a full fence. Returns false where that cannot be had. */
bool shim_can_fence_everywhere(void);
void shim_fence_everywhere(void);

/* Writes to the standard error output. */
void shim_report(const uint8_t *_Nonnull text, intptr_t length);
int32_t shim_process_id(void);
/* Ends the process, as `exit` does. */
void shim_process_exit(int status) __attribute__((noreturn));
/* Has `exit` call the function, also in children that are forked from now on. */
void shim_at_exit(void (*_Nonnull function)(void));

/* Blocks a signal in the calling thread; 0 or an errno value. */
int shim_block_signal(int signal);
/* Gives a signal its default action, which ends the process in most cases, and lets the calling thread receive it. */
void shim_signal_acts_by_default(int signal);
/* Decode a wait status: the exit code, or -1; the signal, or 0. */
int shim_exit_code(int status);
int shim_exit_signal(int status);

/* Why a request has no answer. */
enum { SHIM_ANSWERED = 0, SHIM_UNHANDLED = 1, SHIM_MALFORMED = 2, SHIM_FAILED = 3 };
/* The reply of a local message port's handler. */
struct shim_reply;
void shim_reply_set(struct shim_reply *reply, const void *_Nullable bytes, intptr_t length);
/* Says with one of the numbers above why there is no answer. */
void shim_reply_refuse(struct shim_reply *reply, uint32_t status, const uint8_t *_Nullable text, intptr_t length);
/* Returns the process that has sent the message; 0 if it is not known. */
int32_t shim_reply_process(const struct shim_reply *reply);
/* The reply comes later, on any thread, by one call of shim_deferred_answer. NULL if there is no memory. */
struct deferred_reply;
struct deferred_reply *_Nullable shim_reply_defer(struct shim_reply *reply);
/* `asker_left` is called once, on any thread, perhaps at once, if nobody waits for the answer. `release` gives `info` back after that. */
void shim_deferred_watch(struct deferred_reply *deferred, void (*_Nonnull asker_left)(void *_Nullable info), void *info,
                         void (*_Nonnull release)(void *_Nullable info));
/* The instant of CLOCK_MONOTONIC after which the asker waits no more; 0 if it is not known. */
int64_t shim_deferred_deadline(const struct deferred_reply *deferred);
void shim_deferred_answer(struct deferred_reply *deferred, uint32_t status, const uint8_t *_Nullable bytes, intptr_t length);
typedef void (*shim_receive)(void *_Nullable callee, int32_t number, const uint8_t *_Nullable bytes, intptr_t length,
                             struct shim_reply *reply);
/* Sets the invalidation callback of a remote port; no loop begins to watch for the end of the port's owner. */
void shim_message_port_set_invalidation_callback(CFMessagePortRef remote, CFMessagePortInvalidationCallBack callout);

/* Creates a local port whose messages go to `receive`, which is the same function in every call. shim_message_port_call sets the callee
 * that it gets, and must be called before the port has a source. The invalidation callback gets `info`, which is released when the port is
 * invalidated or freed; the caller keeps it when no port is created. `release` releases the info, and each callee. */
CFMessagePortRef _Nullable shim_message_port_create(CFStringRef name, shim_receive receive, void *info,
                                                    void (*_Nonnull release)(const void *_Nullable reference)) CF_RETURNS_RETAINED;
/* Sets the callee of a local port's messages from now on. Takes over a reference, which is given back when another callee has replaced it
 * or the port is invalid, and no call of `receive` uses it. */
void shim_message_port_call(CFMessagePortRef port, void *callee);
/* The bytes of a reply. It must be dropped, also when it is empty. */
struct shim_answer {
    const uint8_t *_Nullable bytes;
    intptr_t length;
    uint32_t status; /* not SHIM_ANSWERED: the bytes are a text that says why there is no answer */
    const void *_Nullable data; /* the object that owns the bytes */
};
void shim_answer_drop(const struct shim_answer *answer);
/* CFMessagePortSendRequest with bytes in the place of objects, and one limit for the whole call. Without a `ret_answer` the call does not
 * wait for a reply. */
int32_t shim_message_port_send(CFMessagePortRef port, int32_t number, const void *_Nullable bytes, intptr_t length, int64_t limit_ns,
                               struct shim_answer *_Nullable ret_answer);

/* Requests that block nobody. Starts the thread that serves them, for good; NULL if there is no thread or memory for it. */
struct async_requests;
struct async_requests *_Nullable shim_requests_start(CFRunLoopRef _Nullable *_Nonnull ret_loop);
/* Has the calling thread's loop serve requests, until that thread ends it. */
struct async_requests *_Nullable shim_requests_start_here(void);
void shim_requests_end(struct async_requests *requests);
/* A result beside those of CFMessagePortSendRequest: the request was cancelled. */
enum { SHIM_REQUEST_CANCELLED = 1 };
/* Called once for each request that was sent, on the thread that serves. */
typedef void (*shim_request_ended)(void *_Nullable info, int32_t result, uint32_t status, CFDataRef _Nullable reply);
/* Makes a request with a copy of the bytes, and one reference for the caller. The limit begins now. NULL if there is no memory. */
struct async_request;
struct async_request *_Nullable shim_request_create(CFMessagePortRef port, int32_t number, const uint8_t *_Nullable bytes, intptr_t length,
                                                    int64_t limit_ns, shim_request_ended ended);
/* Sends it, once, with what `ended` gets. */
void shim_request_send(struct async_requests *requests, struct async_request *request, void *info);
/* Ends a request if it is not over. One that was not sent yet ends when it is. Any thread. */
void shim_request_cancel(struct async_request *request);
void shim_request_release(struct async_request *request);
/* That loop notices when askers of the port leave. False if there is no memory or descriptor for that. */
bool shim_port_listen(CFMessagePortRef port, CFRunLoopRef loop);

/* The directory of message ports' names. Calls `found` for each name whose owner lives, with its process. */
typedef void (*shim_port_name_found)(void *_Nullable info, const uint8_t *_Nonnull name, intptr_t length, int32_t process);
void shim_port_names_list(shim_port_name_found found, void *info);
/* Returns a descriptor that is readable when names come or go, or -1. The death of an owner changes nothing there. */
int shim_port_names_watch(void);
/* Reads what made it readable. */
void shim_port_names_drain(int changes);

/* SocketPort: addresses as the system's structures, in SHIM_ADDRESS_SIZE bytes. */
enum { SHIM_ADDRESS_SIZE = 128 };
/* Writes the address of `host`, the bytes of an AF_INET or AF_INET6 address, and returns its length. */
intptr_t shim_address_make(int family, const uint8_t *_Nonnull host, uint16_t number, uint8_t *_Nonnull ret_address);
/* Writes an AF_UNIX address and returns its length; 0 for a path that is empty, too long, or contains a zero byte. */
intptr_t shim_address_of_path(const uint8_t *_Nonnull path, intptr_t length, uint8_t *_Nonnull ret_address);
/* AF_INET, AF_INET6 or AF_UNIX; -1 for anything else, or if it is too short. */
int shim_address_family(const uint8_t *_Nonnull address, intptr_t length);
/* Return the port number and the host's bytes of an AF_INET or AF_INET6 address. */
uint16_t shim_address_number(const uint8_t *_Nonnull address);
const uint8_t *_Nonnull shim_address_host(const uint8_t *_Nonnull address, int family);
/* Parses a numeric host: writes its 4 or 16 bytes and returns their number, or 0. */
intptr_t shim_host_parse(const char *_Nonnull text, uint8_t *_Nonnull ret_host);
/* Writes the text of an AF_INET or AF_INET6 host into SHIM_ADDRESS_SIZE bytes. */
void shim_host_format(int family, const uint8_t *_Nonnull host, char *_Nonnull ret_text);
/* Write a socket's own address, or its peer's, and return its length; 0 if it has none. */
intptr_t shim_socket_name(int socket, uint8_t *_Nonnull ret_address);
intptr_t shim_socket_peer(int socket, uint8_t *_Nonnull ret_address);
int shim_socket_protocol(int socket);
/* Returns whether the socket is a stream socket that accepts connections. */
bool shim_socket_is_listening(int socket);
/* Makes the socket non-blocking and close-on-exec. 0 or an errno value. */
int shim_socket_keep_quiet(int socket);
/* Results of calls: success, the limit came first, the address is in use, the system lacks resources, there is no peer. */
enum { SHIM_SOCKET_FINE = 0, SHIM_SOCKET_TIMEOUT = -1, SHIM_SOCKET_TAKEN = -2, SHIM_SOCKET_NO_MEANS = -3, SHIM_SOCKET_GONE = -4 };
/* Returns a stream socket that listens at the address, or one of the results above. */
int shim_socket_listen(int family, int protocol, const uint8_t *_Nonnull address, intptr_t length);
/* Returns a connection, or a negative number. */
int shim_socket_accept(int listener);
enum { SHIM_ENDED = 0, SHIM_NOTHING_YET = -1 };
/* Returns the number of bytes read, SHIM_ENDED at the end and after an error, or SHIM_NOTHING_YET. */
intptr_t shim_socket_read(int socket, uint8_t *_Nonnull bytes, intptr_t length);
void shim_socket_close(int socket);
/* Identifies a file as long as it is open or has a name. */
struct shim_file_identity {
    uint64_t device;
    uint64_t number;
};
/* Finds the file of an AF_UNIX address. False if there is none, or it is not a socket. */
bool shim_socket_file(const uint8_t *_Nonnull address, intptr_t length, struct shim_file_identity *_Nonnull ret_identity);
/* Removes the file of an AF_UNIX address if it has this identity. */
void shim_socket_unlink(const uint8_t *_Nonnull address, intptr_t length, struct shim_file_identity identity);

/* ---- connections of byte streams: a result below 0 is a negative errno ---- */

/* Returns a socket that listens at the address. */
int shim_connections_listen(int family, const uint8_t *_Nonnull address, intptr_t length);
/* Returns an accepted connection. -EAGAIN: there is none. */
int shim_connections_accept(int listener);
/*
 * Writes without waiting, beside another thread that uses the stream. Returns how many bytes were taken; -EAGAIN if there is no room, of
 * which the stream's client is told; -EBUSY if only CFWriteStreamWrite on the loop's thread can; -1 if the stream has failed. After a
 * write that took all bytes, the client is not told of room again.
 */
intptr_t shim_stream_write_now(CFWriteStreamRef stream, const uint8_t *bytes, intptr_t size);
/* Tells the peer that nothing more will be sent. */
int shim_connection_end_sending(int socket);
/* How a descriptor is open: one of these, or -EBADF. */
enum { SHIM_O_RDONLY = O_RDONLY, SHIM_O_WRONLY = O_WRONLY, SHIM_O_RDWR = O_RDWR };
int shim_descriptor_access(int descriptor);
/* Returns another descriptor for the same. */
int shim_descriptor_copy(int descriptor);
/* Numbers of errno. */
enum {
    SHIM_EAGAIN = EAGAIN,
    SHIM_EBUSY = EBUSY,
    SHIM_EINVAL = EINVAL,
    SHIM_ENOMEM = ENOMEM,
    SHIM_ENOSYS = ENOSYS,
    SHIM_EOPNOTSUPP = EOPNOTSUPP,
};

/* Returns a descriptor that is readable while one of the sockets in it is. */
int shim_poll_set_create(void);
int shim_poll_set_add(int set, int socket);
void shim_poll_set_remove(int set, int socket);
/* Returns a ready socket, each in turn, or -1. */
int shim_poll_set_next(int set);

/* A connection to an address, which is made when it is first needed. One sender writes at a time. */
struct shim_line;
struct shim_line *shim_line_create(int protocol, const uint8_t *_Nonnull address, intptr_t length);
/* Writes all bytes within the limit. Returns one of SHIM_SOCKET_FINE to SHIM_SOCKET_GONE. */
int shim_line_send(struct shim_line *line, const uint8_t *_Nonnull bytes, intptr_t length, int64_t limit_ns);
/* Makes senders return, those of now and of later. */
void shim_line_end(struct shim_line *line);
/* Frees the line. Nobody may be sending any more. */
void shim_line_destroy(struct shim_line *line);

/* For CoreRunLoopTesting: gives the calling thread, and those that it starts, clocks that stand still until they are moved. */
void shim_clock_begin(void);
/* The same, but the clocks begin at these times, the wall clock's since 1970, and move on by themselves to the deadline of a wait. */
void shim_clock_begin_skipping(int64_t monotonic_ns, int64_t wall_ns);
/* Advances the calling thread's clocks, as far as 64 bits allow. False if they are the kernel's. */
bool shim_clock_advance(int64_t ns);
/* Moves the calling thread's clocks on, but for the monotonic one, as a suspension of the system does. */
bool shim_clock_suspend(int64_t ns);
/* Moves the calling thread's wall clock alone, forwards or backwards. */
bool shim_clock_step_wall(int64_t ns);
/* Returns the calling thread's clock, for a thread that it starts. */
void *_Nullable shim_clock_of_thread(void);
void shim_clock_inherit(void *_Nullable clock);

#pragma clang assume_nonnull end

#endif
