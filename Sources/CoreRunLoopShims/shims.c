/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, gates, locks, and calls of the C library; CoreRunLoopShims.h describes them. */
#define _GNU_SOURCE 1
#include "CoreRunLoopShims.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "CRLRunLoop.h"
#include "Overlay/overlay.h"
#include "Support/barrier.h"
#include "Support/lock.h"

bool shim_has_processors(void)
{
    cpu_set_t processors; /* a machine with more than it has room for has several */

    return sched_getaffinity(0, sizeof processors, &processors) != 0 || CPU_COUNT(&processors) > 1;
}

bool shim_can_fence_everywhere(void)
{
    return barrier_enable_everywhere();
}

void shim_fence_everywhere(void)
{
    (void)barrier_everywhere();
}

bool shim_mode_is_empty(CFRunLoopRef loop, CFRunLoopMode mode)
{
    return overlay_mode_is_empty(loop, mode);
}

bool shim_mode_is_common(CFRunLoopRef loop, CFRunLoopMode mode)
{
    return overlay_mode_is_common(loop, mode);
}

void shim_perform_and_wake(CFRunLoopRef loop, void (*function)(void *info), void *info, void (*release)(void *info))
{
    CFRetain(loop); /* its owner may be gone once the function has been called */
    CRLRunLoopPerformFunction(loop, kCFRunLoopCommonModes, function, info, release);
    CFRunLoopWakeUp(loop);
    CFRelease(loop);
}

/* The two words of an UnownedSerialExecutor: an object, and what it does, which is 0 for an actor without an executor of its own. */
struct serial_executor {
    void *identity;
    uintptr_t implementation;
};

/* Functions of the Swift runtime. A runtime that has lost one of them is asked no more. */
__attribute__((weak, swiftcall)) bool swift_task_isCurrentExecutorWithFlags(struct serial_executor executor, uint64_t flags);
__attribute__((weak, swiftcall)) int8_t swift_task_isIsolatingCurrentContext(struct serial_executor executor);

/* Returns whether the calling thread runs a function of the dispatch library's main queue, by the label that only that queue has. */
static bool is_in_main_queue(void)
{
    const char *(*label)(void *queue) = (const char *(*)(void *))dlsym(RTLD_DEFAULT, "dispatch_queue_get_label");
    void *main_queue = dlsym(RTLD_DEFAULT, "_dispatch_main_q");

    return label && main_queue && label(NULL) == label(main_queue);
}

int shim_executor_isolates(const void *bytes, intptr_t size, bool is_main)
{
    const uint64_t without_stopping = 0;
    struct serial_executor executor;
    int8_t answer;

    if (size != sizeof executor || !swift_task_isCurrentExecutorWithFlags || !swift_task_isIsolatingCurrentContext) {
        return SHIM_ISOLATION_UNKNOWN;
    }
    memcpy(&executor, bytes, sizeof executor);
    if (swift_task_isCurrentExecutorWithFlags(executor, without_stopping)) {
        return SHIM_ISOLATED;
    }
    if (executor.implementation == 0) {
        return SHIM_NOT_ISOLATED; /* such an actor's code runs in its jobs alone */
    }
    answer = swift_task_isIsolatingCurrentContext(executor);
    if (answer >= 0) {
        return answer ? SHIM_ISOLATED : SHIM_NOT_ISOLATED;
    }
    if (is_main) {
        return is_in_main_queue() ? SHIM_ISOLATED : SHIM_NOT_ISOLATED;
    }
    return SHIM_ISOLATION_UNKNOWN;
}

bool shim_loop_is_current(CFRunLoopRef loop)
{
    return overlay_loop_is_current(loop);
}

/* Functions of the Swift runtime, which every program with the overlay has. */
void *swift_retain(void *object);
void swift_release(void *object);

static void retain_swift_object(void *object)
{
    (void)swift_retain(object);
}

void shim_join(void *c_object, void *swift_object)
{
    static const struct object_owner_class owner_class = {.retain = retain_swift_object, .release = swift_release};

    overlay_give_to_owner(c_object, swift_object, &owner_class);
}

void shim_part(void *c_object)
{
    overlay_take_from_owner(c_object);
}

bool shim_is_main_thread(void)
{
    return getpid() == (pid_t)syscall(SYS_gettid);
}

bool shim_loop_waits_for_first_run(CFRunLoopRef loop)
{
    return overlay_waits_for_first_run(loop);
}

/* ---- the thread's word ---- */

static _Thread_local void *thread_word;
static _Thread_local bool is_last_round; /* the word ends when its destructor is next called */
static _Thread_local bool has_ended;
static pthread_key_t word_key;
static pthread_once_t word_once = PTHREAD_ONCE_INIT;
static _Atomic(void (*)(void *word)) word_end;

static void end_word(void *word)
{
    if (is_last_round) {
        atomic_load_explicit(&word_end, memory_order_relaxed)(word);
        return;
    }
    is_last_round = true;
    (void)pthread_setspecific(word_key, word);
}

static void make_key(void)
{
    (void)pthread_key_create(&word_key, end_word);
}

void *shim_thread_word(void)
{
    return thread_word;
}

void shim_set_thread_word(void *word, void (*end)(void *word))
{
    atomic_store_explicit(&word_end, end, memory_order_relaxed); /* the same value every time */
    (void)pthread_once(&word_once, make_key);
    (void)pthread_setspecific(word_key, word);
    thread_word = word;
}

void shim_forget_thread_word(void)
{
    thread_word = NULL;
    has_ended = true;
}

bool shim_thread_has_ended(void)
{
    return has_ended;
}

/* ---- threads ---- */

struct beginning {
    void (*body)(void *info);
    void *info;
    void *clock;
};

static void *begin(void *argument)
{
    struct beginning beginning = *(struct beginning *)argument;

    free(argument);
    shim_clock_inherit(beginning.clock);
    beginning.body(beginning.info);
    return NULL;
}

int shim_thread_start(uintptr_t stack_size, void (*body)(void *info), void *info)
{
    struct beginning *beginning = malloc(sizeof *beginning);
    pthread_attr_t attributes;
    pthread_t thread;
    int error;

    if (!beginning) {
        return ENOMEM;
    }
    *beginning = (struct beginning){body, info, shim_clock_of_thread()};
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    error = stack_size ? pthread_attr_setstacksize(&attributes, stack_size) : 0;
    if (!error) {
        error = pthread_create(&thread, &attributes, begin, beginning);
    }
    (void)pthread_attr_destroy(&attributes);
    if (error) {
        free(beginning);
    }
    return error;
}

uintptr_t shim_smallest_stack(void)
{
    long smallest = sysconf(_SC_THREAD_STACK_MIN);

    return smallest > 0 ? (uintptr_t)smallest : 16384;
}

uintptr_t shim_default_stack_size(void)
{
    pthread_attr_t attributes;
    size_t size = 0;

    if (pthread_attr_init(&attributes) == 0) {
        (void)pthread_attr_getstacksize(&attributes, &size);
        (void)pthread_attr_destroy(&attributes);
    }
    return size;
}

uintptr_t shim_stack_size(void)
{
    pthread_attr_t attributes;
    void *address;
    size_t size = 0;

    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstack(&attributes, &address, &size);
        (void)pthread_attr_destroy(&attributes);
    }
    return size;
}

void shim_thread_exit(void)
{
    pthread_exit(NULL);
}

uint64_t shim_thread_number(void)
{
    static _Atomic uint64_t count;
    static _Thread_local uint64_t number;

    if (number == 0) {
        number = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
    }
    return number;
}

int shim_thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

/* Names a thread of this process by its kernel id; pthread_setname_np would need its pthread_t. */
static void write_thread_name(int thread_id, const char *name, size_t length)
{
    char path[48];
    int file;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread_id);
    file = open(path, O_WRONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t written = write(file, name, length);

        (void)written; /* the thread may have ended */
        (void)close(file);
    }
}

void shim_set_thread_name(int thread_id, const char *name)
{
    char text[16];
    size_t length = strnlen(name, sizeof text - 1);

    while (length > 0 && length == sizeof text - 1 && ((unsigned char)name[length] & 0xC0) == 0x80) {
        length--; /* not in the middle of a character */
    }
    (void)memcpy(text, name, length);
    text[length] = '\0';
    if (thread_id == shim_thread_id()) {
        (void)pthread_setname_np(pthread_self(), text);
    } else {
        write_thread_name(thread_id, text, length);
    }
}

int shim_thread_nice(int thread_id, int nice)
{
    return setpriority(PRIO_PROCESS, (id_t)thread_id, nice) == 0 ? 0 : errno;
}

int shim_get_thread_nice(int thread_id)
{
    int nice;

    errno = 0;
    nice = getpriority(PRIO_PROCESS, (id_t)thread_id);
    return errno ? 0 : nice;
}

void shim_sleep_ns(int64_t ns)
{
    struct timespec left = {ns / 1000000000, ns % 1000000000};

    while (ns > 0 && nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

/* ---- the stack ---- */

struct walk {
    uintptr_t *addresses;
    uintptr_t size;
    uintptr_t count;
};

static _Unwind_Reason_Code visit_frame(struct _Unwind_Context *context, void *argument)
{
    struct walk *walk = argument;

    if (walk->count == walk->size) {
        return _URC_END_OF_STACK;
    }
    walk->addresses[walk->count++] = (uintptr_t)_Unwind_GetIP(context);
    return _URC_NO_REASON;
}

uintptr_t shim_call_stack(uintptr_t *ret_addresses, uintptr_t size)
{
    struct walk walk = {ret_addresses, size, 0};

    (void)_Unwind_Backtrace(visit_frame, &walk);
    return walk.count;
}

void shim_describe_address(uintptr_t address, char *ret_text, uintptr_t size)
{
    Dl_info found;

    if (dladdr((const void *)address, &found) == 0 || !found.dli_fname) {
        (void)snprintf(ret_text, size, "0x%016lx", (unsigned long)address);
    } else if (found.dli_sname) {
        (void)snprintf(ret_text, size, "0x%016lx %s + %lu (%s)", (unsigned long)address, found.dli_sname,
                       (unsigned long)(address - (uintptr_t)found.dli_saddr), found.dli_fname);
    } else {
        (void)snprintf(ret_text, size, "0x%016lx %s + %lu", (unsigned long)address, found.dli_fname,
                       (unsigned long)(address - (uintptr_t)found.dli_fbase));
    }
}

/* ---- gates ---- */

struct shim_gate {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    bool is_open; /* guarded by mutex */
};

struct shim_gate *shim_gate_create(void)
{
    struct shim_gate *gate = calloc(1, sizeof *gate);
    pthread_condattr_t attributes;

    if (!gate) {
        abort();
    }
    (void)pthread_mutex_init(&gate->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&gate->opened, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return gate;
}

void shim_gate_destroy(struct shim_gate *gate)
{
    (void)pthread_cond_destroy(&gate->opened);
    (void)pthread_mutex_destroy(&gate->mutex);
    free(gate);
}

void shim_gate_open(struct shim_gate *gate)
{
    (void)pthread_mutex_lock(&gate->mutex);
    gate->is_open = true;
    (void)pthread_cond_broadcast(&gate->opened);
    (void)pthread_mutex_unlock(&gate->mutex);
}

bool shim_gate_wait(struct shim_gate *gate, int64_t limit_ns)
{
    struct timespec until;
    int error = 0;
    bool is_open;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    if (limit_ns > 0) {
        limit_ns = limit_ns > INT64_C(1000000000000000000) ? INT64_C(1000000000000000000) : limit_ns;
        until.tv_sec += limit_ns / 1000000000;
        until.tv_nsec += limit_ns % 1000000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
    }
    (void)pthread_mutex_lock(&gate->mutex);
    while (!gate->is_open && error == 0) {
        error = limit_ns < 0 ? pthread_cond_wait(&gate->opened, &gate->mutex) : pthread_cond_timedwait(&gate->opened, &gate->mutex, &until);
    }
    is_open = gate->is_open;
    (void)pthread_mutex_unlock(&gate->mutex);
    return is_open;
}

void shim_report(const uint8_t *text, intptr_t length)
{
    ssize_t written = write(STDERR_FILENO, text, (size_t)length);

    (void)written; /* nobody is left to tell */
}

int32_t shim_process_id(void)
{
    return getpid();
}

void shim_process_exit(int status)
{
    exit(status);
}

void shim_at_exit(void (*function)(void))
{
    (void)atexit(function); /* without memory it is not called */
}

/* ---- locks ---- */

struct shim_lock {
    struct lock lock;
};

struct shim_lock *shim_lock_create(void)
{
    struct shim_lock *lock = calloc(1, sizeof *lock);

    if (!lock) {
        abort();
    }
    return lock;
}

void shim_lock_destroy(struct shim_lock *lock)
{
    free(lock);
}

/* Swift's Mutex pairs the two: clang does not see its calls. */
NOT_CHECKED void shim_lock_take(struct shim_lock *lock)
{
    lock_take(&lock->lock);
}

NOT_CHECKED void shim_lock_drop(struct shim_lock *lock)
{
    lock_drop(&lock->lock);
}

/* ---- signals and children ---- */

void shim_signal_acts_by_default(int signal_number)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t set;

    (void)sigaction(signal_number, &action, NULL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, signal_number);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int shim_block_signal(int number)
{
    sigset_t set;

    (void)sigemptyset(&set);
    return sigaddset(&set, number) != 0 ? EINVAL : pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int shim_exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int shim_exit_signal(int status)
{
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}
