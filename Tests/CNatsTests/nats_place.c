/* SPDX-License-Identifier: Apache-2.0 */
/* A server and machines; see nats_place.h. */
#include "nats_place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Port/port_probe.h"
#include "connection.h"

enum { words_max = 32 };

static char folder[64];
static pid_t owner;
static pid_t server_pid;
static int port_number;
static char url[64];
static char server_options[512];
static bool is_durable;

/* ---- the place ---- */

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

void place_end(void)
{
    if (getpid() != owner) {
        return;
    }
    if (server_pid > 0) {
        server_stop(SIGKILL);
    }
    (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void place_begin(void)
{
    owner = getpid();
    (void)snprintf(folder, sizeof folder, "/tmp/corerunloop-nats-XXXXXX");
    REQUIRE(mkdtemp(folder) != NULL);
    REQUIRE(atexit(place_end) == 0);
    test_allow_left(8, 0); /* cnats keeps what it has opened until the process ends */
}

const char *place_path(const char *name)
{
    static char paths[8][128];
    static int next;
    char *path = paths[next++ % 8];

    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* ---- the server ---- */

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    REQUIRE(descriptor >= 0 && bind(descriptor, (struct sockaddr *)&address, sizeof address) == 0);
    REQUIRE(getsockname(descriptor, (struct sockaddr *)&address, &length) == 0);
    (void)close(descriptor);
    return ntohs(address.sin_port);
}

static bool answers(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port_number),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool result = connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0;

    (void)close(descriptor);
    return result;
}

static void become_server(void)
{
    char number[16];
    char options[512];
    char *words[words_max] = {"nats-server", "-a", "127.0.0.1", "-p", number, "-sd", (char *)(uintptr_t)place_path("jetstream")};
    int count = 7;
    int log = open(place_path("server.log"), O_WRONLY | O_CREAT | O_APPEND, 0600);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)snprintf(number, sizeof number, "%d", port_number);
    (void)snprintf(options, sizeof options, "%s", server_options);
    for (char *rest = NULL, *word = strtok_r(options, " ", &rest); word && count < words_max - 1; word = strtok_r(NULL, " ", &rest)) {
        words[count++] = word;
    }
    (void)dup2(log, STDOUT_FILENO);
    (void)dup2(log, STDERR_FILENO);
    (void)execvp(words[0], words);
    _exit(127);
}

void server_restart(void)
{
    int status;

    server_pid = fork();
    if (server_pid == 0) {
        become_server();
    }
    while (!answers()) {
        if (waitpid(server_pid, &status, WNOHANG) == server_pid) {
            server_pid = 0;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
                SKIP("there is no nats-server here (make deps)");
            }
            FAIL("the server has ended");
        }
        (void)usleep(2000);
    }
}

void server_start(const char *options)
{
    port_number = free_port();
    (void)snprintf(url, sizeof url, "nats://127.0.0.1:%d", port_number);
    server_restart_with(options);
}

void server_restart_with(const char *options)
{
    (void)snprintf(server_options, sizeof server_options, "%s", options);
    server_restart();
}

void process_pause(pid_t pid)
{
    int status = 0;

    REQUIRE(kill(pid, SIGSTOP) == 0);
    REQUIRE(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
}

void process_resume(pid_t pid)
{
    (void)kill(pid, SIGCONT);
}

void server_pause(void)
{
    process_pause(server_pid);
}

void server_resume(void)
{
    process_resume(server_pid);
}

void server_stop(int signal)
{
    (void)kill(server_pid, signal);
    server_resume();
    (void)waitpid(server_pid, NULL, 0);
    server_pid = 0;
}

const char *server_url(void)
{
    return url;
}

int server_port(void)
{
    return port_number;
}

void place_publish(const char *subject, const char *reply, const void *payload, size_t length)
{
    static int peer = -1;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port_number),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char text[512] = "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n";
    int size;

    if (peer < 0) {
        peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        REQUIRE(connect(peer, (struct sockaddr *)&address, sizeof address) == 0);
        REQUIRE(send(peer, text, strlen(text), MSG_NOSIGNAL) > 0);
    }
    size = snprintf(text, sizeof text, "PUB %s %s %zu\r\n", subject, reply, length);
    memcpy(text + size, payload, length);
    memcpy(text + (size_t)size + length, "\r\n", 2);
    REQUIRE(send(peer, text, (size_t)size + length + 2, MSG_NOSIGNAL) > 0);
}

/* ---- machines ---- */

void machine_become(const char *machine)
{
    const char *path = place_path(machine);

    REQUIRE(mkdir(path, 0700) == 0 || errno == EEXIST);
    REQUIRE(setenv("CORERUNLOOP_PORTS", path, 1) == 0);
}

static void open_ports(const char *names, CFMessagePortCallBack callback, const char *machine)
{
    char copy[256];

    (void)snprintf(copy, sizeof copy, "%s", names);
    for (char *rest = NULL, *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        CFMessagePortContext context = {.info = (void *)(uintptr_t)machine};
        CFStringRef string = CFStringCreateWithCString(NULL, name, kCFStringEncodingUTF8);
        CFMessagePortRef port = CFMessagePortCreateLocal(NULL, string, callback, &context, NULL);

        REQUIRE(port);
        CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(NULL, port, 0), kCFRunLoopDefaultMode);
    }
}

static void export_names(CRLNatsBridgeRef bridge, const char *names, bool shares)
{
    char copy[256];

    (void)snprintf(copy, sizeof copy, "%s", names);
    for (char *rest = NULL, *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        REQUIRE(CRLNatsBridgeExport(bridge, name, shares));
    }
}

static void end_process(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info)
{
    (void)source;
    (void)signal;
    CFRunLoopStop(info);
}

/* The program of a machine's process. */
static void be_machine(const char *machine, const char *names, CFMessagePortCallBack callback, bool shares, int ready)
{
    CRLSourceContext context = {0, CFRunLoopGetCurrent(), NULL, NULL, NULL};
    CRLNatsBridgeRef bridge;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    machine_become(machine);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), CRLSignalSourceCreate(NULL, SIGTERM, 0, end_process, &context), kCFRunLoopDefaultMode);
    if (callback) {
        open_ports(names, callback, machine);
    }
    bridge = place_bridge_with((CRLNatsConfiguration){.servers = url, .machine = machine}, NULL);
    export_names(bridge, names, shares);
    (void)!write(ready, "", 1);
    CFRunLoopRun();
    place_end_bridge(bridge);
    exit(0); /* coverage is written then */
}

/* Returns twice, as fork: in the child, which has pid 0, when it is woken. `ready` is to be written to then. */
static struct sleeping_machine fork_asleep(void)
{
    struct sleeping_machine result;
    int ready[2];
    int wake[2];
    char byte;

    REQUIRE(pipe(ready) == 0 && pipe(wake) == 0);
    result.pid = fork();
    result.ready = ready[result.pid == 0 ? 1 : 0];
    result.wake = wake[1];
    (void)close(ready[result.pid == 0 ? 0 : 1]);
    if (result.pid == 0) {
        (void)close(wake[1]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (read(wake[0], &byte, 1) != 1) {
            _exit(0);
        }
    }
    (void)close(wake[0]);
    return result;
}

struct sleeping_machine machine_start_later(const char *machine, const char *names, CFMessagePortCallBack callback, bool shares)
{
    struct sleeping_machine result = fork_asleep();

    if (result.pid == 0) {
        be_machine(machine, names, callback, shares, result.ready);
    }
    return result;
}

struct sleeping_machine program_start_later(const char *machine, const char *name, CRLMessagePortCallBack callback)
{
    struct sleeping_machine result = fork_asleep();
    CFMessagePortRef port;

    if (result.pid == 0) {
        machine_become(machine);
        port = CFMessagePortCreateLocal(NULL, CFStringCreateWithCString(NULL, name, kCFStringEncodingUTF8), NULL, NULL, NULL);
        REQUIRE(port && CRLMessagePortSetCallBack(port, callback));
        CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(NULL, port, 0), kCFRunLoopDefaultMode);
        (void)!write(result.ready, "", 1);
        CFRunLoopRun();
        _exit(0);
    }
    return result;
}

pid_t machine_wake(struct sleeping_machine machine)
{
    char byte = 0;

    REQUIRE(write(machine.wake, &byte, 1) == 1);
    REQUIRE(read(machine.ready, &byte, 1) == 1);
    (void)close(machine.ready);
    (void)close(machine.wake);
    return machine.pid;
}

pid_t machine_start(const char *machine, const char *names, CFMessagePortCallBack callback, bool shares)
{
    return machine_wake(machine_start_later(machine, names, callback, shares));
}

void machine_end(pid_t pid, int signal)
{
    (void)kill(pid, signal);
    (void)waitpid(pid, NULL, 0);
}

/* ---- a bridge of the test's own ---- */

static void note(CRLNatsBridgeRef bridge, CRLNatsEvent event, const char *name, const char *text, void *info)
{
    struct told *told = info;
    FILE *file = told ? NULL : fopen(place_path("events"), "a");

    (void)bridge;
    (void)name;
    if (file) {
        (void)fprintf(file, "%d %s\n", (int)event, text);
        (void)fclose(file);
    }
    if (told) {
        (void)snprintf(told->texts[event + 16], sizeof told->texts[0], "%s", text);
        told->counts[event + 16]++;
    }
}

static CRLNatsBridgeRef create_bridge(CRLNatsConfiguration configuration, struct told *told)
{
    configuration.durable = is_durable;
    configuration.callback = note;
    configuration.info = told;
    return CRLNatsBridgeCreate(&configuration);
}

CRLNatsBridgeRef place_try_bridge(const char *servers, const char *machine, struct told *told)
{
    return create_bridge((CRLNatsConfiguration){.servers = servers, .machine = machine}, told);
}

CRLNatsBridgeRef place_bridge_with(CRLNatsConfiguration configuration, struct told *told)
{
    CRLNatsBridgeRef bridge = create_bridge(configuration, told);

    REQUIRE(bridge);
    return bridge;
}

static bool is_left(void *info)
{
    (void)info;
    return connections_left() > 0;
}

void place_end_bridge(CRLNatsBridgeRef bridge)
{
    CRLNatsBridgeInvalidate(bridge);
    EXPECT(place_run_while(is_left, NULL));
}

CRLNatsBridgeRef place_bridge(const char *machine, struct told *told)
{
    return place_bridge_with((CRLNatsConfiguration){.servers = url, .machine = machine}, told);
}

bool place_run_while(bool (*condition)(void *info), void *info)
{
    double limit = port_probe_now() + test_patience_s();

    while (condition(info)) {
        if (port_probe_now() > limit) {
            return false;
        }
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.01, true);
    }
    return true;
}

struct awaited_event {
    const struct told *told;
    CRLNatsEvent event;
    int count;
};

static bool has_not_come(void *info)
{
    const struct awaited_event *awaited = info;

    return TOLD(*awaited->told, awaited->event) < awaited->count;
}

void place_await(const struct told *told, CRLNatsEvent event, int count)
{
    struct awaited_event awaited = {told, event, count};

    REQUIRE(place_run_while(has_not_come, &awaited));
}

/* ---- notes ---- */

void place_set_durable(void)
{
    is_durable = true;
}

CFDataRef place_note(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    FILE *file = fopen(place_path("noted"), "a");

    (void)local;
    (void)data;
    (void)info;
    if (file) {
        (void)fprintf(file, "%d\n", (int)message_id);
        (void)fclose(file);
    }
    return NULL;
}

/* Of a line that is just being written the file may have a part. */
bool place_lacks_notes(void *info)
{
    FILE *file = fopen(place_path("noted"), "r");
    char line[16];
    int count = 0;

    while (file && fgets(line, sizeof line, file) && strchr(line, '\n')) {
        EXPECT_EQ(strtol(line, NULL, 10), count);
        count++;
    }
    if (file) {
        (void)fclose(file);
    }
    return count < *(int *)info;
}

bool place_file_has(const char *name, const char *text)
{
    FILE *file = fopen(place_path(name), "r");
    char line[512];
    bool result = false;

    while (file && !result && fgets(line, sizeof line, file)) {
        result = strstr(line, text) != NULL;
    }
    if (file) {
        (void)fclose(file);
    }
    return result;
}

/* ---- a program of this machine ---- */

struct call {
    const char *name;
    SInt32 message_id;
    CFDataRef data;
    CFTimeInterval limit_s;
    int count; /* of one-way messages; 0: a request */
    SInt32 result;
    CFDataRef reply;
    _Atomic bool is_over;
};

static void *make_call(void *info)
{
    struct call *call = info;
    CFStringRef name = CFStringCreateWithCString(NULL, call->name, kCFStringEncodingUTF8);
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, name);

    call->result = kCFMessagePortIsInvalid;
    if (remote) {
        if (call->count == 0) {
            call->result = CFMessagePortSendRequest(remote, call->message_id, call->data, call->limit_s, call->limit_s,
                                                    kCFRunLoopDefaultMode, &call->reply);
        }
        for (int i = 0; i < call->count; i++) {
            call->result = CFMessagePortSendRequest(remote, call->message_id + i, call->data, call->limit_s, 0, NULL, NULL);
        }
        CFRelease(remote);
    }
    CFRelease(name);
    call->is_over = true;
    return NULL;
}

static bool is_under_way(void *info)
{
    return !((struct call *)info)->is_over;
}

static SInt32 call_here(struct call *call)
{
    pthread_t thread;

    REQUIRE(pthread_create(&thread, NULL, make_call, call) == 0);
    EXPECT(place_run_while(is_under_way, call));
    (void)pthread_join(thread, NULL);
    return call->result;
}

SInt32 place_ask(const char *name, SInt32 message_id, CFDataRef data, CFTimeInterval limit_s, CFDataRef *ret_reply)
{
    struct call call = {.name = name, .message_id = message_id, .data = data, .limit_s = limit_s};
    SInt32 result = call_here(&call);

    *ret_reply = call.reply;
    return result;
}

SInt32 place_tell(const char *name, SInt32 first, int count, CFDataRef data)
{
    struct call call = {.name = name, .message_id = first, .count = count, .data = data, .limit_s = 20};

    return call_here(&call);
}
