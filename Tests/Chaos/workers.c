/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of chaos: servers, which contend for a name, clients, which send numbered messages to all of them, and a crowd, which sends
 * to one. A server that has its name is a client of itself, too.
 *
 * A message says who sent it, its number, over which connection, and how many small one-way messages went before it on that. A server
 * counts what it handled of each connection, so it knows whether one of them got lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Core/message_port.h"
#include "Port/Names/port_directory.h"
#include "chaos.h"

#define MODE CFSTR("chaos")

enum { connections_max = 4096 };

/* How long a call may take beyond its time limits, not counting when it was stopped or had no processor. */
static const double margin_s = 0.5;

struct message {
    uint32_t client; /* a life */
    uint32_t number;
    uint32_t connection; /* counts the client's */
    uint32_t told; /* small one-way messages that were sent on it before */
    uint32_t name;
    uint32_t is_told; /* this is one */
    uint64_t length; /* of the data, this included; what follows depends on its place and the number */
};

static CFStringRef copy_name(int name)
{
    return CFStringCreateWithFormat(NULL, NULL, CFSTR("chaos %d"), name);
}

static uint8_t pattern(uint64_t place, uint32_t number)
{
    return (uint8_t)(place * 31 + (place >> 8) * 7 + number);
}

static CFDataRef make_message(const struct message *message)
{
    CFMutableDataRef data = CFDataCreateMutable(NULL, 0);
    UInt8 *bytes;

    CFDataSetLength(data, (CFIndex)message->length);
    bytes = CFDataGetMutableBytePtr(data);
    memcpy(bytes, message, sizeof *message);
    for (uint64_t i = sizeof *message; i < message->length; i++) {
        bytes[i] = pattern(i, message->number);
    }
    return data;
}

static bool read_message(CFDataRef data, struct message *ret_message)
{
    const UInt8 *bytes = CFDataGetBytePtr(data);
    uint64_t length = (uint64_t)CFDataGetLength(data);

    if (length < sizeof *ret_message) {
        return false;
    }
    memcpy(ret_message, bytes, sizeof *ret_message);
    for (uint64_t i = sizeof *ret_message; i < length; i++) {
        if (bytes[i] != pattern(i, ret_message->number)) {
            return false;
        }
    }
    return ret_message->length == length;
}

/* ---- clients ---- */

static struct client {
    int slot;
    int statistics; /* of the kernel's scheduler about this process; -1: it has none */
    uint32_t life;
    uint32_t number; /* of the latest message, over all names */
    CFStringRef names[chaos_names];
    CFMessagePortRef remotes[chaos_names]; /* NULL: not connected */
    uint32_t connection[chaos_names];
    uint32_t told[chaos_names];
} client;

static void connect_to(int name)
{
    if (client.remotes[name] && !CFMessagePortIsValid(client.remotes[name])) {
        CFRelease(client.remotes[name]);
        client.remotes[name] = NULL;
    }
    if (!client.remotes[name]) {
        client.remotes[name] = CFMessagePortCreateRemote(NULL, client.names[name]);
        client.connection[name]++;
        client.told[name] = 0;
    }
}

static uint64_t choose_length(void)
{
    static const unsigned limits[] = {1, 100, 100, 1000, 5000, 60000, 70000, 300000};

    return sizeof(struct message) + chaos_random(limits[chaos_random(sizeof limits / sizeof limits[0])]);
}

/* What passes while this process can do something: the time, less when it was stopped or waited for a processor. */
static double own_time(void)
{
    double now = chaos_now();
    char text[64] = "";
    unsigned long long ran_ns = 0;
    unsigned long long starved_ns = 0;

    if (client.statistics >= 0 && pread(client.statistics, text, sizeof text - 1, 0) > 0) {
        (void)sscanf(text, "%llu %llu", &ran_ns, &starved_ns);
    }
    return now - (double)starved_ns / 1e9 - atomic_load(&chaos->stopped_s[client.slot]);
}

static void note_result(SInt32 result, double took, double told_to_wait)
{
    double beyond = took - told_to_wait;

    atomic_fetch_add(&chaos->results[-result], 1);
    if (beyond > atomic_load(&chaos->longest_s)) {
        atomic_store(&chaos->longest_s, beyond);
    }
    if (beyond > margin_s) {
        chaos_violation("client %u waited %.3f s, %.3f s longer than it was to", client.life, took, beyond);
    }
}

static void note_progress(int name)
{
    if (atomic_load(&chaos->is_calm)) {
        atomic_fetch_add(&chaos->progress[client.slot][name], 1);
    }
}

static void check_reply(const struct message *message, CFDataRef sent, CFDataRef reply)
{
    if (!reply || !CFEqual(sent, reply)) {
        chaos_violation("client %u got another reply than that to its message %u", client.life, message->number);
    }
    chaos_note(event_answered, (int)message->name, client.life, message->number, 0);
    note_progress((int)message->name);
}

/* How a message is sent. */
struct terms {
    uint64_t length;
    bool is_request;
    double send_limit, receive_limit;
};

/* With short time limits where the sender is the receiver too, which runs only when it waits. */
static struct terms choose_terms(bool is_own)
{
    struct terms terms = {.length = choose_length(), .is_request = chaos_random(3) != 0};

    terms.send_limit = is_own || chaos_random(4) == 0 ? chaos_random(20) / 1e3 : 0.5;
    terms.receive_limit = terms.is_request ? chaos_random(4) == 0 ? chaos_random(2000) / 1e6 : 0.5 : 0;
    return terms;
}

static void send_one(int name, const struct terms *terms)
{
    struct message message = {.client = client.life, .number = ++client.number, .name = (uint32_t)name, .length = terms->length};
    double begun = own_time();
    CFDataRef data, reply = NULL;
    SInt32 result;

    message.connection = client.connection[name];
    message.told = client.told[name];
    message.is_told = !terms->is_request && message.length <= wire_inline_max;
    data = make_message(&message);
    result = CFMessagePortSendRequest(client.remotes[name], (SInt32)message.number, data, terms->send_limit, terms->receive_limit,
                                      terms->is_request ? MODE : NULL, terms->is_request ? &reply : NULL);
    note_result(result, own_time() - begun, terms->send_limit + terms->receive_limit);
    if (result == kCFMessagePortSuccess && terms->is_request) {
        check_reply(&message, data, reply);
    } else if (result == kCFMessagePortSuccess) {
        note_progress(name);
        atomic_fetch_add(&chaos->one_way, 1);
        client.told[name] += message.is_told;
    } else if (reply) {
        chaos_violation("client %u got a reply with result %d", client.life, (int)result);
    }
    if (reply) {
        CFRelease(reply);
    }
    CFRelease(data);
}

static void begin_asking(int slot, uint32_t life)
{
    client.slot = slot;
    client.life = life;
    client.statistics = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < chaos_names; i++) {
        client.names[i] = copy_name(i);
    }
}

void ask(int slot, uint32_t life)
{
    chaos_begin_life(slot, life);
    begin_asking(slot, life);
    while (!atomic_load(&chaos->is_over)) {
        int name = (int)chaos_random(chaos_names);

        connect_to(name);
        if (client.remotes[name]) {
            const struct terms terms = choose_terms(false);

            send_one(name, &terms);
        } else {
            usleep(chaos_random(1000)); /* until there is somebody */
        }
    }
    _exit(0);
}

/* ---- the crowd ---- */

static ssize_t send_in_turn_and_tell(int socket, const struct msghdr *message, int64_t limit_ns, int64_t *socket_limit_ns)
{
    ssize_t result;

    atomic_store(&chaos->is_in_line[client.slot], true);
    result = kernel_ports_linux.send_in_turn(socket, message, limit_ns, socket_limit_ns);
    atomic_store(&chaos->is_in_line[client.slot], false);
    return result;
}

/* Small one-way messages to one name, in bursts: more senders than its queue has places, so they wait in line. */
void crowd(int slot, uint32_t life)
{
    chaos_begin_life(slot, life);
    begin_asking(slot, life);
    atomic_store(&chaos->is_in_line[slot], false); /* who had the slot before may have died there */
    kernel_ports.send_in_turn = send_in_turn_and_tell;
    while (!atomic_load(&chaos->is_over)) {
        const struct terms terms = {.length = sizeof(struct message) + chaos_random(100), .send_limit = 0.5};

        connect_to(0);
        for (unsigned left = chaos_random(20); client.remotes[0] && left > 0; left--) {
            send_one(0, &terms);
        }
        usleep(chaos_random(20000)); /* until there is somebody, or the next burst */
    }
    _exit(0);
}

/* ---- servers ---- */

/* What a server has handled of the connections it has met; a place is used again by another connection. */
static struct connection {
    uint32_t client;
    uint32_t connection;
    uint32_t told;
} connections[connections_max];

static struct {
    int name;
    uint32_t life;
    pthread_mutex_t *witness; /* NULL: it owns nothing */
    uint64_t directory; /* in which it owns it */
} server;

/* True if the connection is known; else it becomes so with its first message. */
static struct connection *connection_of(const struct message *message)
{
    struct connection *connection = &connections[(message->client * 31 + message->connection) % connections_max];

    if (connection->client != message->client || connection->connection != message->connection) {
        /* Known from its first message on, else its place was another's meanwhile. */
        *connection = (struct connection){message->client, message->connection, message->told == 0 ? 0 : UINT32_MAX};
    }
    return connection;
}

static CFDataRef handle(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    struct message message;
    struct connection *connection;

    (void)local;
    (void)info;
    if (!read_message(data, &message) || (uint32_t)message_id != message.number || message.name != (uint32_t)server.name) {
        chaos_violation("server %u got a message that nobody sent it", server.life);
        return NULL;
    }
    chaos_note(event_handled, server.name, message.client, message.number, server.life);
    connection = connection_of(&message);
    if (connection->told != UINT32_MAX && connection->told != message.told) {
        chaos_violation("of %u one-way messages of client %u, %u came to server %u before message %u", message.told, message.client,
                        connection->told, server.life, message.number);
        connection->told = message.told;
    }
    if (connection->told != UINT32_MAX) {
        connection->told += message.is_told;
    }
    return CFRetain(data);
}

static struct directory_witness *witness_of(uint64_t inode)
{
    for (uint64_t i = 0; i < chaos_directories_max; i++) {
        struct directory_witness *witness = &chaos->directories[(inode + i) % chaos_directories_max];
        uint64_t found = 0;

        if (atomic_compare_exchange_strong(&witness->inode, &found, inode) || found == inode) {
            return witness;
        }
    }
    chaos_violation("there are more directories than expected");
    abort();
}

static void let_go(void)
{
    if (server.witness) {
        (void)pthread_mutex_unlock(server.witness);
        server.witness = NULL;
    }
    server.directory = 0;
}

/* The files of a directory that was removed are not there any more to keep anybody from owning a name in it, where nobody looks. */
static bool still_stands(uint64_t inode)
{
    struct stat status;

    return stat(chaos->directory, &status) == 0 && status.st_ino == inode;
}

/* Notes where the port is registered now. */
static void look_where(CFMessagePortRef port)
{
    const struct port_directory *directory = port->side.local.publication.directory;
    uint64_t inode = directory ? directory->inode : 0;
    pthread_mutex_t *witness;
    int result;

    if (inode == server.directory) {
        return;
    }
    let_go();
    if (inode == 0) {
        return;
    }
    witness = &witness_of(inode)->owners[server.name];
    result = pthread_mutex_trylock(witness);
    if (result == EOWNERDEAD) {
        result = pthread_mutex_consistent(witness);
    }
    if (result != 0 && still_stands(inode)) {
        chaos_violation("server %u owns name %d, and another one too", server.life, server.name);
    }
    if (result != 0) {
        return;
    }
    server.witness = witness;
    server.directory = inode;
}

static void note_owner(void)
{
    uint32_t before = atomic_exchange(&chaos->owner[server.name], server.life);

    atomic_fetch_add(&chaos->owners, 1);
    if (before != server.life && atomic_load(&chaos->was_killed[before])) {
        atomic_fetch_add(&chaos->takeovers, 1);
    }
}

/* Looking for any port registers those again whose directory is gone. */
static void look_for_nothing(void)
{
    CFMessagePortRef none = CFMessagePortCreateRemote(NULL, CFSTR("nobody has this name"));

    if (none) {
        chaos_violation("server %u found a port that there is not", server.life);
        CFRelease(none);
    }
}

/*
 * No peer may keep the loop from anything, whatever descriptors it passes. Only without a descriptor left the kernel closes what comes, on
 * this thread.
 */
static void run_for(double seconds)
{
    uint32_t shortages = atomic_load(&chaos->shortages[client.slot]);
    double begun = own_time();
    double beyond;

    (void)CFRunLoopRunInMode(MODE, seconds, false);
    beyond = own_time() - begun - seconds;
    if (shortages % 2 == 1 || atomic_load(&chaos->shortages[client.slot]) != shortages) {
        return;
    }
    if (beyond > atomic_load(&chaos->longest_run_s)) {
        atomic_store(&chaos->longest_run_s, beyond);
    }
    if (beyond > margin_s) {
        chaos_violation("the loop of server %u was held up for %.3f s", server.life, beyond);
    }
}

static void own(CFMessagePortRef port)
{
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    double until = chaos_now() + (chaos_random(4) == 0 ? chaos_random(20) / 1e3 : 1e9);

    look_where(port);
    note_owner();
    if (source) {
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
        CFRelease(source);
    }
    while (source && chaos_now() < until && !atomic_load(&chaos->is_over)) {
        run_for(0.005);
        look_for_nothing();
        look_where(port);
        connect_to(server.name);
        if (client.remotes[server.name]) { /* to itself, or to whom has the name in a newer directory */
            const struct terms terms = choose_terms(true);

            send_one(server.name, &terms);
        }
    }
    let_go();
}

void serve(int slot, uint32_t life)
{
    CFStringRef name = copy_name(slot % chaos_names);

    chaos_begin_life(slot, life);
    begin_asking(slot, life);
    server.name = slot % chaos_names;
    server.life = life;
    while (!atomic_load(&chaos->is_over)) {
        CFMessagePortRef port = CFMessagePortCreateLocal(NULL, name, handle, NULL, NULL);

        if (port) {
            own(port);
            CFMessagePortInvalidate(port);
            CFRelease(port);
        }
        usleep(chaos_random(2000)); /* the contest goes on at any moment */
    }
    CFRelease(name);
    _exit(0);
}
