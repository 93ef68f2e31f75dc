/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of chaos-network: servers, bridges, owners of names and their clients. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

#include "CoreFoundation/CoreFoundation.h"
#include "chaos_network.h"

/* ---- what the processes do ---- */

struct message {
    uint32_t client; /* a life */
    uint32_t number;
};

static CFStringRef name_of(int machine)
{
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("chaos %d"), machine);
}

static CFDataRef on_message(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    const struct worker *worker = info;
    struct message message;

    (void)port;
    if (CFDataGetLength(data) < (CFIndex)sizeof message) {
        chaos_violation("server %u got a message that nobody sent it", worker->life);
        return NULL;
    }
    memcpy(&message, CFDataGetBytePtr(data), sizeof message);
    if ((uint32_t)message_id != message.number) {
        chaos_violation("server %u got a message with another number", worker->life);
    }
    chaos_note(event_handled, worker->machine, message.client, message.number, worker->life);
    return CFRetain(data);
}

static void serve_name(struct worker *worker)
{
    CFMessagePortContext context = {.info = worker};
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, name_of(worker->machine), on_message, &context, NULL);

    while (!port) { /* the dead owner's lock may last for a moment */
        (void)usleep(1000);
        port = CFMessagePortCreateLocal(NULL, name_of(worker->machine), on_message, &context, NULL);
    }
    CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(NULL, port, 0), kCFRunLoopDefaultMode);
    CFRunLoopRun();
}

static CFDataRef make_message(const struct worker *worker, uint32_t number)
{
    struct message message = {worker->life, number};
    CFMutableDataRef data = CFDataCreateMutable(NULL, 0);

    CFDataAppendBytes(data, (const UInt8 *)&message, sizeof message);
    CFDataIncreaseLength(data, (CFIndex)random_below(random_below(8) == 0 ? 100000 : 200));
    return data;
}

static void check_result(const struct worker *worker, int name, uint32_t number, CFDataRef data, SInt32 result, CFDataRef reply)
{
    atomic_fetch_add(&chaos->results[-result], 1);
    if (result == kCFMessagePortSuccess && reply) {
        if (!CFEqual(data, reply)) {
            chaos_violation("client %u got another reply than that to its message %u", worker->life, number);
        }
        chaos_note(event_answered, name, worker->life, number, 0);
        if (atomic_load(&chaos->is_calm)) {
            atomic_fetch_add(&chaos->progress[worker->machine * clients_of_machine + (int)(worker->life % clients_of_machine)][name], 1);
        }
    }
}

static void send_one(const struct worker *worker, CFMessagePortRef remote, int name, uint32_t number)
{
    bool is_request = random_below(3) != 0;
    double limit_s = random_below(4) == 0 ? random_below(50) / 1e3 : 2;
    CFDataRef data = make_message(worker, number);
    CFDataRef reply = NULL;
    double begun = chaos_now();
    CFStringRef mode = is_request ? kCFRunLoopDefaultMode : NULL;
    SInt32 result = CFMessagePortSendRequest(remote, (SInt32)number, data, limit_s, limit_s, mode, &reply);
    double beyond = chaos_now() - begun - (is_request ? 2 : 1) * limit_s;

    if (beyond > atomic_load(&chaos->longest_s)) {
        atomic_store(&chaos->longest_s, beyond);
    }
    if (beyond > margin_s + longest_stop_s) { /* a client may itself be stopped */
        chaos_violation("client %u waited %.3f s longer than it was to", worker->life, beyond);
    }
    check_result(worker, name, number, data, result, reply);
    if (reply) {
        CFRelease(reply);
    }
    CFRelease(data);
}

static void send_requests(struct worker *worker)
{
    CFMessagePortRef remotes[machines] = {NULL};

    for (uint32_t number = 1; !atomic_load(&chaos->is_over);) {
        int name = (int)((unsigned)worker->machine + 1 + random_below(machines - 1)) % machines;

        if (remotes[name] && !CFMessagePortIsValid(remotes[name])) {
            CFRelease(remotes[name]);
            remotes[name] = NULL;
        }
        remotes[name] = remotes[name] ? remotes[name] : CFMessagePortCreateRemote(NULL, name_of(name));
        if (remotes[name]) {
            send_one(worker, remotes[name], name, number++);
        } else {
            (void)usleep(1000 + random_below(10000));
        }
    }
}

/* Sends one-way messages to the durable name, at a pace that the server's disk keeps up with. */
static void send_durable(struct worker *worker)
{
    CFMessagePortRef remote = NULL;

    while (!atomic_load(&durable->ends)) {
        uint32_t number = atomic_load(&durable->taken) + 1;
        CFDataRef data = make_message(worker, number);

        remote = remote ? remote : CFMessagePortCreateRemote(NULL, name_of(0));
        if (remote && CFMessagePortSendRequest(remote, (SInt32)number, data, 0.1, 0, NULL, NULL) == kCFMessagePortSuccess) {
            atomic_store(&durable->taken, number);
        }
        CFRelease(data);
        (void)usleep(500 + random_below(2000));
    }
}

/* ---- programs ---- */

const char *path_of(const char *format, int number)
{
    static char paths[8][128];
    static int next;
    char *path = paths[next++ % 8];
    char name[64];

    (void)snprintf(name, sizeof name, format, number);
    (void)snprintf(path, sizeof paths[0], "%s/%s", base_folder, name);
    return path;
}

static void redirect_output(const char *name)
{
    int log = open(path_of(name, 0), O_WRONLY | O_CREAT | O_APPEND, 0600);

    (void)dup2(log, STDOUT_FILENO);
    (void)dup2(log, STDERR_FILENO);
}

static void become_nats(const struct worker *worker)
{
    char port[16];
    char cluster[64];
    char routes[256] = "";

    redirect_output("nats.log");
    if (worker->role == role_durable_nats) {
        (void)snprintf(port, sizeof port, "%d", server_ports[2 * machines]);
        (void)execlp("nats-server", "nats-server", "-a", address_of(worker->machine), "-p", port, "-js", "-sd", path_of("jetstream", 0),
                     (char *)NULL);
        _exit(127);
    }
    (void)snprintf(port, sizeof port, "%d", server_ports[worker->machine]);
    (void)snprintf(cluster, sizeof cluster, "nats://%s:%d", address_of(worker->machine), server_ports[machines + worker->machine]);
    for (int i = 0; i < machines; i++) {
        (void)snprintf(routes + strlen(routes), sizeof routes - strlen(routes), "%snats://%s:%d", i > 0 ? "," : "", address_of(i),
                       server_ports[machines + i]);
    }
    (void)execlp("nats-server", "nats-server", "-a", address_of(worker->machine), "-p", port, "--cluster_name", "chaos", "--cluster",
                 cluster, "--routes", routes, (char *)NULL);
    _exit(127);
}

static void become_bridge(const struct worker *worker)
{
    char machine[16];
    char names[machines][32];
    char server[64];

    redirect_output("bridge.log");
    (void)snprintf(machine, sizeof machine, "m%d", worker->machine);
    (void)snprintf(server, sizeof server, "nats://%s:%d", address_of(0), server_ports[2 * machines]);
    for (int i = 0; i < machines; i++) {
        (void)snprintf(names[i], sizeof names[i], "chaos %d", i);
    }
    if (worker->role == role_bridge) {
        (void)execl(bridge_program, bridge_program, "--server", all_servers, "--machine", machine, "--export", names[worker->machine],
                    "--import", names[(worker->machine + 1) % machines], names[(worker->machine + 2) % machines], (char *)NULL);
    } else {
        (void)execl(bridge_program, bridge_program, "--server", server, "--machine", machine, "--durable",
                    worker->role == role_sending_bridge ? "--import" : "--export", names[0], (char *)NULL);
    }
    _exit(127);
}

void worker_run(struct worker *worker)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setenv("CORERUNLOOP_PORTS", path_of("machine%d", worker->machine), 1);
    network_enter(worker->machine);
    random_begin((unsigned)chaos->seed * 2654435761u + worker->life);
    switch (worker->role) {
    case role_nats:
    case role_durable_nats:
        become_nats(worker);
        break;
    case role_bridge:
    case role_sending_bridge:
    case role_receiving_bridge:
        become_bridge(worker);
        break;
    case role_owner:
    case role_receiver:
        worker->machine = worker->role == role_receiver ? 0 : worker->machine; /* the name's number */
        serve_name(worker);
        break;
    case role_client:
        send_requests(worker);
        break;
    case role_sender:
        send_durable(worker);
    }
    _exit(0);
}
