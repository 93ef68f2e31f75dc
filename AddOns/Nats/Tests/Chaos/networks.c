/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network namespace for each machine, joined by a bridge of the kernel, so that a machine's link can be cut. It needs root and the
 * program ip; without them all machines are on loopback, and no link is cut.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chaos_network.h"

enum { subnet = 213 }; /* addresses are in 10.213.0.0/16, in the namespaces only; the third byte is the process's */

static bool has_networks;
static pid_t maker;

static bool run_command(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool run_command(const char *format, ...)
{
    char command[512];
    char whole[600];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    (void)snprintf(whole, sizeof whole, "{ %s; } > /dev/null 2>&1", command);
    return system(whole) == 0;
}

static bool make_network(int machine)
{
    int id = (int)maker;

    return run_command("ip netns add crl%d-%d && ip link add crlv%d-%d type veth peer name eth0 netns crl%d-%d", id, machine, id % 100000,
                       machine, id, machine) &&
           run_command("ip link set crlv%d-%d master crlb%d up && ip -n crl%d-%d addr add %s/24 dev eth0", id % 100000, machine,
                       id % 100000, id, machine, address_of(machine)) &&
           run_command("ip -n crl%d-%d link set eth0 up && ip -n crl%d-%d link set lo up", id, machine, id, machine);
}

static void end_networks(void)
{
    if (getpid() != maker) {
        return;
    }
    for (int i = 0; i < machines; i++) {
        (void)run_command("ip netns del crl%d-%d", (int)maker, i); /* the pair of interfaces goes with it */
    }
    (void)run_command("ip link del crlb%d", (int)maker % 100000);
}

bool networks_make(void)
{
    maker = getpid();
    has_networks =
        geteuid() == 0 && run_command("ip link add crlb%d type bridge && ip link set crlb%d up", (int)maker % 100000, (int)maker % 100000);
    if (!has_networks) {
        return false;
    }
    (void)atexit(end_networks);
    for (int i = 0; i < machines && has_networks; i++) {
        has_networks = make_network(i);
    }
    return has_networks;
}

const char *address_of(int machine)
{
    static char addresses[machines][32];

    if (!has_networks) {
        return "127.0.0.1";
    }
    (void)snprintf(addresses[machine], sizeof addresses[0], "10.%d.%d.%d", subnet, (int)maker % 256, machine + 1);
    return addresses[machine];
}

void network_enter(int machine)
{
    char path[64];
    int network;

    if (!has_networks) {
        return;
    }
    (void)snprintf(path, sizeof path, "/run/netns/crl%d-%d", (int)maker, machine);
    network = open(path, O_RDONLY | O_CLOEXEC);
    if (network < 0 || setns(network, CLONE_NEWNET) != 0) {
        chaos_violation("a process cannot enter the network of machine %d", machine);
        _exit(1);
    }
    (void)close(network);
}

void network_set_link(int machine, bool is_up)
{
    if (has_networks) {
        (void)run_command("ip -n crl%d-%d link set eth0 %s", (int)maker, machine, is_up ? "up" : "down");
    }
}
