/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a test, its server, and bridges of its own; see nats_place.h. */
#include "nats_place.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
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
#include "Connection/nats_connection.h"

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

int loopback_listen(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    REQUIRE(listener >= 0 && bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 16) == 0);
    REQUIRE(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    *ret_port = ntohs(address.sin_port);
    return listener;
}

int loopback_connect(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (descriptor >= 0 && connect(descriptor, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(descriptor);
        return -1;
    }
    return descriptor;
}

static bool takes_connections(void)
{
    int descriptor = loopback_connect(port_number);

    if (descriptor >= 0) {
        (void)close(descriptor);
    }
    return descriptor >= 0;
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
    while (!takes_connections()) {
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
    (void)close(loopback_listen(&port_number)); /* a port that was free just now */
    (void)snprintf(url, sizeof url, "nats://127.0.0.1:%d", port_number);
    server_restart_with(options);
}

void server_start_keeping(void)
{
    place_set_durable();
    server_start("-js");
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

bool server_answers(const char *subject, const void *bytes, int size, const char *wanted, char ret_answer[server_answer_max])
{
    natsConnection *nats = NULL;
    natsMsg *answer = NULL;

    ret_answer[0] = '\0';
    REQUIRE(natsConnection_ConnectTo(&nats, url) == NATS_OK);
    if (natsConnection_Request(&answer, nats, subject, bytes, size, 1000) == NATS_OK) {
        (void)snprintf(ret_answer, server_answer_max, "%.*s", natsMsg_GetDataLength(answer), natsMsg_GetData(answer));
        natsMsg_Destroy(answer);
    }
    natsConnection_Destroy(nats);
    return strstr(ret_answer, wanted) != NULL;
}

/* ---- bridges ---- */

static void on_bridge_event(CRLNatsBridgeRef bridge, CRLNatsEvent event, const char *name, const char *text, void *info)
{
    struct bridge_events *log = info;
    FILE *file = log ? NULL : fopen(place_path("events"), "a");

    (void)bridge;
    (void)name;
    if (file) {
        (void)fprintf(file, "%d %s\n", (int)event, text);
        (void)fclose(file);
    }
    if (log) {
        (void)snprintf(log->texts[event + 16], sizeof log->texts[0], "%s", text);
        log->counts[event + 16]++;
    }
}

static CRLNatsBridgeRef create_bridge(CRLNatsConfiguration configuration, struct bridge_events *log)
{
    configuration.durable = is_durable;
    configuration.callback = on_bridge_event;
    configuration.info = log;
    return CRLNatsBridgeCreate(&configuration);
}

CRLNatsBridgeRef place_try_bridge(const char *servers, const char *machine, struct bridge_events *log)
{
    return create_bridge((CRLNatsConfiguration){.servers = servers, .machine = machine}, log);
}

CRLNatsBridgeRef place_bridge_with(CRLNatsConfiguration configuration, struct bridge_events *log)
{
    CRLNatsBridgeRef bridge = create_bridge(configuration, log);

    REQUIRE(bridge);
    return bridge;
}

static bool has_connections(void *info)
{
    (void)info;
    return nats_connections_left() > 0;
}

void place_end_bridge(CRLNatsBridgeRef bridge)
{
    CRLNatsBridgeInvalidate(bridge);
    EXPECT(place_run_while(has_connections, NULL));
}

CRLNatsBridgeRef place_bridge(const char *machine, struct bridge_events *log)
{
    return place_bridge_with((CRLNatsConfiguration){.servers = url, .machine = machine}, log);
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
    const struct bridge_events *log;
    CRLNatsEvent event;
    int count;
};

static bool has_not_come(void *info)
{
    const struct awaited_event *awaited = info;

    return EVENT_COUNT(*awaited->log, awaited->event) < awaited->count;
}

void place_await(const struct bridge_events *log, CRLNatsEvent event, int count)
{
    struct awaited_event awaited = {log, event, count};

    REQUIRE(place_run_while(has_not_come, &awaited));
}

void place_set_durable(void)
{
    is_durable = true;
}
