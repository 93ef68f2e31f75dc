/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd ports|raw CLIENTS MESSAGES
 *
 * Many processes begin at one moment to send one-way messages to one receiver, with a time limit of a minute. By message ports, or by the
 * kernel's datagrams alone: blocking senders, and a receiver that blocks. Prints how long all of it took in seconds, the time after which
 * the first client was done, and how late a timer of the receiver was at most, in milliseconds. The receiver's timer is due every 10 ms.
 */
#define _GNU_SOURCE
#include <CoreFoundation/CoreFoundation.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double interval_s = 0.01;
static const double limit_s = 60;

/* Shared by all processes. */
struct board {
    atomic_int connected;
    atomic_int failed;
    atomic_long received;
    _Atomic double lateness_s;
    double done_s[];
};

static struct board *board;
static int gate[2];
static char folder[64];
static long wanted;

static double now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

_Noreturn static void give_up(const char *what)
{
    (void)fprintf(stderr, "crowd: %s\n", what);
    (void)kill(0, SIGTERM);
    _exit(1);
}

/* ---- message ports ---- */

static CFDataRef count_message(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port, (void)message_id, (void)data, (void)info;
    if (atomic_fetch_add(&board->received, 1) + 1 == wanted) {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
    return NULL;
}

/* As a timer of the loop, or after each datagram. */
static void look_at_clock(CFRunLoopTimerRef timer, void *info)
{
    double *due_s = info;
    double late_s = now_s() - *due_s;

    (void)timer;
    if (atomic_load(&board->received) > 0 && late_s > atomic_load(&board->lateness_s)) { /* the crowd is no longer connecting */
        atomic_store(&board->lateness_s, late_s);
    }
    while (*due_s <= now_s()) {
        *due_s += interval_s;
    }
}

static void serve_by_port(int ready)
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, CFSTR("crowd"), count_message, NULL, NULL);
    double due_s = now_s() + interval_s;
    CFRunLoopTimerContext context = {.info = &due_s};
    CFRunLoopTimerRef timer =
        CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + interval_s, interval_s, 0, 0, look_at_clock, &context);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(NULL, port, 0), kCFRunLoopDefaultMode);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    if (write(ready, "r", 1) == 1) {
        CFRunLoopRun();
    }
}

static CFMessagePortRef remote;

static bool connect_port(void)
{
    remote = CFMessagePortCreateRemote(NULL, CFSTR("crowd"));
    return remote != NULL;
}

static bool send_by_port(void)
{
    return CFMessagePortSendRequest(remote, 1, NULL, limit_s, 0, NULL, NULL) == kCFMessagePortSuccess;
}

/* ---- datagrams ---- */

static int raw_socket = -1;

static void name_socket(struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    (void)snprintf(address->sun_path, sizeof address->sun_path, "%s/socket", folder);
}

static void serve_raw(int ready)
{
    struct sockaddr_un address;
    double due_s;
    char bytes[128];

    name_socket(&address);
    raw_socket = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (bind(raw_socket, (struct sockaddr *)&address, sizeof address) != 0 || write(ready, "r", 1) != 1) {
        give_up("the receiver cannot begin");
    }
    for (long i = 0; i < wanted && recv(raw_socket, bytes, sizeof bytes, 0) > 0; i++) {
        due_s = i == 0 ? now_s() + interval_s : due_s;
        atomic_fetch_add(&board->received, 1);
        look_at_clock(NULL, &due_s);
    }
}

static bool connect_raw(void)
{
    struct timeval limit = {.tv_sec = (time_t)limit_s};
    struct sockaddr_un address;

    name_socket(&address);
    raw_socket = socket(AF_UNIX, SOCK_DGRAM, 0);
    return setsockopt(raw_socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
           connect(raw_socket, (struct sockaddr *)&address, sizeof address) == 0;
}

static bool send_raw(void)
{
    static const char bytes[64];

    return send(raw_socket, bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes;
}

/* ---- the crowd ---- */

struct way {
    const char *name;
    void (*serve)(int ready);
    bool (*connect)(void);
    bool (*send)(void);
};

static const struct way ways[] = {{"ports", serve_by_port, connect_port, send_by_port}, {"raw", serve_raw, connect_raw, send_raw}};

static void be_client(const struct way *way, int number, int messages)
{
    char byte;
    bool is_sent = way->connect();

    atomic_fetch_add(&board->connected, 1);
    (void)close(gate[1]);
    if (read(gate[0], &byte, 1) != 0) { /* all hear the end of the gate at once */
        _exit(1);
    }
    for (int i = 0; is_sent && i < messages; i++) {
        is_sent = way->send();
    }
    board->done_s[number] = now_s();
    atomic_fetch_add(&board->failed, is_sent ? 0 : 1);
    _exit(0);
}

static pid_t begin(const struct way *way)
{
    int ready[2];
    char byte;
    pid_t server;

    if (pipe(ready) != 0) {
        give_up("no pipe");
    }
    server = fork();
    if (server == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(gate[0]);
        (void)close(gate[1]);
        way->serve(ready[1]);
        _exit(0);
    }
    if (read(ready[0], &byte, 1) != 1) {
        give_up("the receiver did not begin");
    }
    return server;
}

static void print_result(double begun_s, int clients)
{
    double first_s = 1e9;
    double last_s = 0;

    for (int i = 0; i < clients; i++) {
        first_s = board->done_s[i] < first_s ? board->done_s[i] : first_s;
        last_s = board->done_s[i] > last_s ? board->done_s[i] : last_s;
    }
    (void)printf("%.3f\t%.3f\t%.1f\t%d\n", last_s - begun_s, first_s - begun_s, 1e3 * atomic_load(&board->lateness_s),
                 atomic_load(&board->failed));
}

int main(int count, char **arguments)
{
    int clients = count == 4 ? atoi(arguments[2]) : 0;
    int messages = count == 4 ? atoi(arguments[3]) : 0;
    const struct way *way = count == 4 && strcmp(arguments[1], "raw") == 0 ? &ways[1] : &ways[0];
    double begun_s;
    pid_t server;

    if (clients < 1 || messages < 1) {
        (void)fprintf(stderr, "usage: crowd ports|raw CLIENTS MESSAGES\n");
        return 2;
    }
    (void)signal(SIGTERM, SIG_DFL);
    (void)snprintf(folder, sizeof folder, "/tmp/crowd-XXXXXX");
    board = mmap(NULL, sizeof *board + (size_t)clients * sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!mkdtemp(folder) || board == MAP_FAILED || pipe(gate) != 0 || setenv("XDG_RUNTIME_DIR", folder, 1) != 0) {
        give_up("no folder, memory or pipe");
    }
    wanted = (long)clients * messages;
    server = begin(way);
    for (int i = 0; i < clients; i++) {
        pid_t client = fork();

        if (client == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            be_client(way, i, messages);
        }
        if (client < 0) {
            give_up("no more processes");
        }
    }
    while (atomic_load(&board->connected) < clients) {
        (void)usleep(1000);
    }
    begun_s = now_s();
    (void)close(gate[1]);
    for (int i = 0; i < clients; i++) {
        pid_t ended = wait(NULL);

        i -= ended == server ? 1 : 0;
    }
    print_result(begun_s, clients);
    (void)kill(server, SIGKILL);
    (void)fflush(stdout);
    (void)execlp("rm", "rm", "-rf", folder, (char *)NULL);
    return 1;
}
