/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the bridge costs: a request through two bridges and a server on loopback beside a bare request of cnats, one-way messages a
 * second, and the memory of a bridge.
 *
 *   bridge PROGRAM [MESSAGES]     PROGRAM is messageport-bridge; with MESSAGES as many one-way messages are sent, and memory is printed
 *
 * Each program is a process of its own: nats-server, two bridges, and for either way a receiver and this sender.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <nats/nats.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "CoreFoundation/CoreFoundation.h"

enum { rounds = 7, requests = 2000, text_max = 256 };

static char folder[] = "/tmp/corerunloop-bridge-XXXXXX";
static char url[64];

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static _Noreturn void fail_with(const char *why)
{
    (void)fprintf(stderr, "bridge: %s\n", why);
    exit(1);
}

/* A port of loopback that nobody has at the moment. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (descriptor < 0 || bind(descriptor, (const struct sockaddr *)&address, size) != 0 ||
        getsockname(descriptor, (struct sockaddr *)&address, &size) != 0) {
        fail_with("there is no port for the server");
    }
    (void)close(descriptor);
    return ntohs(address.sin_port);
}

/* ---- processes ---- */

static const char *path_of(const char *name)
{
    static char paths[4][text_max];
    static int next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, text_max, "%s/%s", folder, name);
    return path;
}

static pid_t start_program(const char *machine, char *const words[])
{
    pid_t pid = fork();

    if (pid == 0) {
        int log = open(path_of("log"), O_WRONLY | O_CREAT | O_APPEND, 0600);

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setenv("CORERUNLOOP_PORTS", path_of(machine), 1);
        (void)dup2(log, STDOUT_FILENO);
        (void)dup2(log, STDERR_FILENO);
        (void)execvp(words[0], words);
        _exit(127);
    }
    return pid;
}

static pid_t start_server(const char *machine, void (*body)(void))
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setenv("CORERUNLOOP_PORTS", path_of(machine), 1);
        body();
        _exit(0);
    }
    return pid;
}

/* Processor time in seconds, and resident memory in kB, of a process. */
static double processor_s(pid_t pid)
{
    char path[64];
    unsigned long user = 0;
    unsigned long system = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "r");
    if (file) {
        (void)fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
        (void)fclose(file);
    }
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static long resident_kb(pid_t pid)
{
    char path[64];
    long pages = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    file = fopen(path, "r");
    if (file) {
        (void)fscanf(file, "%*d %ld", &pages);
        (void)fclose(file);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* ---- the receivers ---- */

static CFDataRef echo_data(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)message_id;
    (void)info;
    return CFRetain(data);
}

static void serve_echo(void)
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, CFSTR("echo"), echo_data, NULL, NULL);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(NULL, port, 0), kCFRunLoopDefaultMode);
    CFRunLoopRun();
}

/* Replies to number 1 with how many messages of number 0 have come. */
static CFDataRef count_or_reply(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    static long taken;

    (void)port;
    (void)data;
    (void)info;
    taken += message_id == 0;
    return message_id == 0 ? NULL : CFDataCreate(NULL, (const UInt8 *)&taken, sizeof taken);
}

static void serve_count(void)
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, CFSTR("count"), count_or_reply, NULL, NULL);

    CRLMessagePortSetQueueLimit(port, 256);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(NULL, port, 0), kCFRunLoopDefaultMode);
    CFRunLoopRun();
}

static void answer_bare(natsConnection *nats, natsSubscription *subscription, natsMsg *message, void *info)
{
    (void)subscription;
    (void)info;
    (void)natsConnection_Publish(nats, natsMsg_GetReply(message), natsMsg_GetData(message), natsMsg_GetDataLength(message));
    natsMsg_Destroy(message);
}

static natsConnection *connect_bare(void)
{
    natsConnection *nats = NULL;
    natsOptions *options = NULL;

    if (natsOptions_Create(&options) != NATS_OK || natsOptions_SetURL(options, url) != NATS_OK ||
        natsOptions_SetSendAsap(options, true) != NATS_OK || natsConnection_Connect(&nats, options) != NATS_OK) {
        fail_with("there is no server");
    }
    natsOptions_Destroy(options);
    return nats;
}

static void serve_bare(void)
{
    natsSubscription *subscription;

    (void)natsConnection_Subscribe(&subscription, connect_bare(), "bare", answer_bare, NULL);
    for (;;) {
        (void)pause();
    }
}

/* ---- measuring ---- */

static int compare_times(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;

    return (difference > 0) - (difference < 0);
}

/* Prints the median of the rounds, of the requests' medians, in microseconds. */
static double measure_requests(void (*ask)(void *info), void *info)
{
    static double times[requests];
    double medians[rounds];

    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < requests; i++) {
            double begin = now_s();

            ask(info);
            times[i] = now_s() - begin;
        }
        qsort(times, requests, sizeof times[0], compare_times);
        medians[round] = times[requests / 2];
    }
    qsort(medians, rounds, sizeof medians[0], compare_times);
    return medians[rounds / 2] * 1e6;
}

static void ask_bare(void *info)
{
    natsMsg *reply = NULL;

    if (natsConnection_Request(&reply, info, "bare", "0123456789abcdef0123456789abcdef", 32, 5000) != NATS_OK) {
        fail_with("a bare request has failed");
    }
    natsMsg_Destroy(reply);
}

static void ask_port(void *info)
{
    static CFDataRef data;
    CFDataRef reply = NULL;

    data = data ? data : CFDataCreate(NULL, (const UInt8 *)"0123456789abcdef0123456789abcdef", 32);
    if (CFMessagePortSendRequest(info, 0, data, 5, 5, kCFRunLoopDefaultMode, &reply) != kCFMessagePortSuccess) {
        fail_with("a request has failed");
    }
    CFRelease(reply);
}

static CFMessagePortRef await_port(CFStringRef name)
{
    CFMessagePortRef port = NULL;

    for (int i = 0; i < 1000 && !(port = CFMessagePortCreateRemote(NULL, name)); i++) {
        (void)usleep(10000);
    }
    return port ? port : (fail_with("a name has not appeared"), NULL);
}

static long request_count(CFMessagePortRef port)
{
    CFDataRef reply = NULL;
    long result = -1;

    if (CFMessagePortSendRequest(port, 1, NULL, 60, 60, kCFRunLoopDefaultMode, &reply) == kCFMessagePortSuccess) {
        memcpy(&result, CFDataGetBytePtr(reply), sizeof result);
        CFRelease(reply);
    }
    return result;
}

static void measure_one_way(CFMessagePortRef port, long messages, const pid_t bridges[2])
{
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)"0123456789abcdef0123456789abcdef", 32);
    long before = request_count(port);
    double processor[2] = {processor_s(bridges[0]), processor_s(bridges[1])};
    double begin = now_s();
    double seconds;

    for (long i = 0; i < messages; i++) {
        if (CFMessagePortSendRequest(port, 0, data, 60, 0, NULL, NULL) != kCFMessagePortSuccess) {
            fail_with("a message was not taken");
        }
        if (messages >= 100000 && i % (messages / 10) == 0) {
            (void)printf("memory after %9ld: exporting %ld kB, importing %ld kB\n", i, resident_kb(bridges[0]), resident_kb(bridges[1]));
        }
    }
    if (request_count(port) != before + messages) { /* the request comes after all of them */
        fail_with("messages were lost");
    }
    seconds = now_s() - begin;
    (void)printf("one way: %ld messages in %.2f s, %.0f a second; processor time of a message: exporting %.2f us, importing %.2f us\n",
                 messages, seconds, (double)messages / seconds, (processor_s(bridges[0]) - processor[0]) / (double)messages * 1e6,
                 (processor_s(bridges[1]) - processor[1]) / (double)messages * 1e6);
    (void)printf("memory after %9ld: exporting %ld kB, importing %ld kB\n", messages, resident_kb(bridges[0]), resident_kb(bridges[1]));
    CFRelease(data);
}

int main(int word_count, char **words)
{
    char number[16];
    char *server[] = {"nats-server", "-a", "127.0.0.1", "-p", number, NULL};
    pid_t bridges[2];
    natsConnection *bare;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (word_count < 2 || !mkdtemp(folder)) {
        return 2;
    }
    (void)snprintf(number, sizeof number, "%d", free_port());
    (void)snprintf(url, sizeof url, "nats://127.0.0.1:%s", number);
    (void)mkdir(path_of("here"), 0700);
    (void)mkdir(path_of("there"), 0700);
    (void)start_program("here", server);
    (void)usleep(500000);
    (void)start_server("there", serve_echo);
    (void)start_server("there", serve_count);
    (void)start_server("there", serve_bare);
    bridges[0] = start_program("there", (char *[]){words[1], "--server", url, "--machine", "there", "--export", "echo", "count", NULL});
    bridges[1] = start_program("here", (char *[]){words[1], "--server", url, "--machine", "here", "--import", "echo", "count", NULL});
    (void)setenv("CORERUNLOOP_PORTS", path_of("here"), 1);
    if (word_count > 2) {
        measure_one_way(await_port(CFSTR("count")), atol(words[2]), bridges);
    } else {
        CFMessagePortRef echo_port = await_port(CFSTR("echo")); /* by now all are there */

        bare = connect_bare();
        for (int i = 0; i < 3; i++) {
            double bare_us;
            double port_us;
            /* in turn, because the machine's speed changes */
            bare_us = measure_requests(ask_bare, bare);
            port_us = measure_requests(ask_port, echo_port);
            (void)printf("request: bare cnats %.1f us, through two bridges %.1f us, %.2fx\n", bare_us, port_us, port_us / bare_us);
        }
        measure_one_way(await_port(CFSTR("count")), 300000, bridges);
    }
    (void)execlp("rm", "rm", "-rf", folder, (char *)NULL);
    return 0;
}
