/* SPDX-License-Identifier: Apache-2.0 */
/* Servers and data for the tests of message ports; see port_probe.h. */
#define _GNU_SOURCE
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Channel/local_queue.h"
#include "Port/port_probe.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char directory[64];
static char names[128];
static pid_t owner; /* whose folder that is: children of the test's have none */

/* A test that is skipped, or cannot go on, ends where it is. */
static void remove_own_directory(void)
{
    if (getpid() == owner) {
        port_probe_end();
    }
}

void port_probe_begin(bool by_socket)
{
    local_queues_are_off = by_socket;
    if (owner == 0) {
        REQUIRE(atexit(remove_own_directory) == 0);
    }
    owner = getpid();
    (void)snprintf(directory, sizeof directory, "/tmp/corerunloop-test-XXXXXX");
    REQUIRE(mkdtemp(directory) != NULL);
    (void)snprintf(names, sizeof names, "%s/corerunloop.v1", directory);
    REQUIRE(setenv("XDG_RUNTIME_DIR", directory, 1) == 0);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

void port_probe_end(void)
{
    (void)nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *port_probe_directory(void)
{
    return directory;
}

const char *port_probe_names(void)
{
    return names;
}

int port_probe_count_files(void)
{
    DIR *stream = opendir(names);
    int count = 0;

    if (!stream) {
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        count += entry->d_name[0] == '.' ? 0 : 1;
    }
    (void)closedir(stream);
    return count;
}

double port_probe_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The first numbers of a file of the kernel's. */
static int read_numbers(const char *path, unsigned long long ret_numbers[2])
{
    FILE *file = fopen(path, "r");
    int count = file ? fscanf(file, "%llu %llu", &ret_numbers[0], &ret_numbers[1]) : 0;

    if (file) {
        (void)fclose(file);
    }
    return count;
}

double port_probe_starved_s(void)
{
    unsigned long long numbers[2]; /* nanoseconds run and starved */

    return read_numbers("/proc/thread-self/schedstat", numbers) == 2 ? (double)numbers[1] / 1e9 : 0;
}

double port_probe_own_time(void)
{
    return port_probe_now() - port_probe_starved_s();
}

size_t port_probe_resident_bytes(void)
{
    unsigned long long numbers[2] = {0, 0}; /* pages mapped and resident */

    (void)read_numbers("/proc/self/statm", numbers);
    return (size_t)numbers[1] * (size_t)sysconf(_SC_PAGESIZE);
}

int port_probe_count_descriptors(void)
{
    DIR *stream = opendir("/proc/self/fd");
    int count = -3; /* ".", ".." and the stream's own */

    while (stream && readdir(stream)) {
        count++;
    }
    (void)closedir(stream);
    return count;
}

bool port_probe_descriptors_fall_to(int most)
{
    double limit = port_probe_now() + 10;
    bool have_fallen;

    while (!(have_fallen = port_probe_count_descriptors() <= most) && port_probe_now() < limit) {
        (void)sched_yield();
    }
    return have_fallen;
}

CFDataRef port_data(const char *text)
{
    return CFDataCreate(NULL, (const UInt8 *)text, (CFIndex)strlen(text));
}

static UInt8 pattern_byte(CFIndex place, unsigned seed)
{
    return (UInt8)((unsigned)place * 31 + ((unsigned)place >> 8) * 7 + seed);
}

CFDataRef port_pattern(CFIndex length, unsigned seed)
{
    CFMutableDataRef data = CFDataCreateMutable(NULL, 0);
    UInt8 *bytes;

    CFDataSetLength(data, length);
    bytes = CFDataGetMutableBytePtr(data);
    for (CFIndex i = 0; i < length; i++) {
        bytes[i] = pattern_byte(i, seed);
    }
    return data;
}

bool port_is_pattern(CFDataRef data, CFIndex length, unsigned seed)
{
    const UInt8 *bytes;

    if (!data || CFDataGetLength(data) != length) {
        return false;
    }
    bytes = CFDataGetBytePtr(data);
    for (CFIndex i = 0; i < length; i++) {
        if (bytes[i] != pattern_byte(i, seed)) {
            return false;
        }
    }
    return true;
}

bool port_data_is(CFDataRef data, const char *text)
{
    return data && CFDataGetLength(data) == (CFIndex)strlen(text) && memcmp(CFDataGetBytePtr(data), text, strlen(text)) == 0;
}

/* ---- callouts ---- */

CFDataRef port_echo(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)local;
    (void)message_id;
    (void)info;
    return CFRetain(data);
}

CFDataRef port_fork_and_echo(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    pid_t pid = fork();

    (void)local;
    (void)message_id;
    (void)info;
    if (pid == 0) {
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    return CFRetain(data);
}

CFDataRef port_silence(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)local;
    (void)message_id;
    (void)data;
    (void)info;
    return NULL;
}

CFDataRef port_note(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)local;
    trace_addf(info, "%d:%.*s", (int)message_id, (int)CFDataGetLength(data), (const char *)CFDataGetBytePtr(data));
    return NULL;
}

/* ---- ports ---- */

CFMessagePortRef port_open(CFStringRef name, CFMessagePortCallBack callout, void *info, CFStringRef mode)
{
    CFMessagePortContext context = {0, info, NULL, NULL, NULL};
    Boolean should_free = true;
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, name, callout, &context, &should_free);
    CFRunLoopSourceRef source;

    REQUIRE(port != NULL && !should_free);
    source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, mode);
    CFRelease(source);
    return port;
}

static int without_proc_status(int folder, const char *leaf, struct stat *ret_status)
{
    return strncmp(leaf, "/proc", 5) == 0 ? -ENOENT : kernel_ports_linux.path_status(folder, leaf, ret_status);
}

static int without_proc_connect(int socket_number, const char *path)
{
    return strncmp(path, "/proc", 5) == 0 ? -ENOENT : kernel_ports_linux.datagram_connect(socket_number, path);
}

void port_lose_proc(void)
{
    kernel_ports.path_status = without_proc_status;
    kernel_ports.datagram_connect = without_proc_connect;
}

CFMessagePortRef port_connect(CFStringRef name)
{
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, name);

    REQUIRE(remote != NULL);
    return remote;
}

void port_drop(CFMessagePortRef port)
{
    CFMessagePortInvalidate(port);
    CFRelease(port);
}

SInt32 port_ask(CFMessagePortRef remote, SInt32 message_id, CFDataRef data, CFDataRef *ret_reply)
{
    return CFMessagePortSendRequest(remote, message_id, data, test_patience_s(), test_patience_s(), MODE, ret_reply);
}

SInt32 port_tell(CFMessagePortRef remote, SInt32 message_id, CFDataRef data)
{
    return CFMessagePortSendRequest(remote, message_id, data, test_patience_s(), 0, NULL, NULL);
}

/* ---- threads ---- */

static void say_ready(void *info)
{
    struct port_thread *server = info;

    (void)pthread_barrier_wait(&server->ready);
}

static void *serve(void *info)
{
    struct port_thread *server = info;

    server->loop = CFRunLoopGetCurrent();
    server->port = port_open(server->name, server->callout, server->info, kCFRunLoopDefaultMode);
    CRLRunLoopPerformFunction(server->loop, kCFRunLoopDefaultMode, say_ready, server, NULL);
    CFRunLoopRun();
    if (CFMessagePortIsValid(server->port)) {
        CFMessagePortInvalidate(server->port);
    }
    CFRelease(server->port);
    return NULL;
}

void port_thread_start(struct port_thread *server, CFStringRef name, CFMessagePortCallBack callout, void *info)
{
    *server = (struct port_thread){.name = name, .callout = callout, .info = info};
    (void)pthread_barrier_init(&server->ready, NULL, 2);
    REQUIRE(pthread_create(&server->thread, NULL, serve, server) == 0);
    (void)pthread_barrier_wait(&server->ready);
    CFRetain(server->loop); /* which may end between two calls on it */
}

static void stop_current(void *info)
{
    (void)info;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

void port_thread_stop(struct port_thread *server)
{
    CRLRunLoopPerformFunction(server->loop, kCFRunLoopDefaultMode, stop_current, NULL, NULL);
    CFRunLoopWakeUp(server->loop);
    (void)pthread_join(server->thread, NULL);
    CFRelease(server->loop);
    (void)pthread_barrier_destroy(&server->ready);
}

/* ---- processes ---- */

static void serve_in_process(int ready, CFStringRef name, CFMessagePortCallBack callout, void *info, void (*prepare)(CFMessagePortRef port),
                             bool runs)
{
    CFMessagePortRef port = port_open(name, callout, info, kCFRunLoopDefaultMode);

    if (prepare) {
        prepare(port);
    }
    (void)!write(ready, "r", 1);
    (void)close(ready);
    while (runs) {
        CFRunLoopRun();
    }
    for (;;) {
        (void)pause();
    }
}

static pid_t start(CFStringRef name, CFMessagePortCallBack callout, void *info, void (*prepare)(CFMessagePortRef port), bool runs)
{
    int ready[2];
    char byte;
    pid_t pid;

    REQUIRE(pipe(ready) == 0);
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(ready[0]);
        serve_in_process(ready[1], name, callout, info, prepare, runs);
    }
    (void)close(ready[1]);
    REQUIRE(read(ready[0], &byte, 1) == 1);
    (void)close(ready[0]);
    return pid;
}

pid_t port_process_start(CFStringRef name, CFMessagePortCallBack callout, void *info, void (*prepare)(CFMessagePortRef port))
{
    return start(name, callout, info, prepare, true);
}

pid_t port_process_start_idle(CFStringRef name)
{
    return start(name, port_silence, NULL, NULL, false);
}

void port_process_kill(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

int port_probe_in_child(int (*body)(void))
{
    int status = 1;
    pid_t pid = fork();

    if (pid == 0) {
        _exit(body());
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
