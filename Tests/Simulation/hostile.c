/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile peer of the simulated ports. It passes files whose close waits, with frames that bring none, in the places of others, and in
 * the queue of a channel that it hands over; the simulation fails where a thread of a program closes one.
 */
#include "hostile.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Port/Names/port_name.h"
#include "Port/Wire/wire.h"
#include "files.h"
#include "scheduler.h"
#include "tables.h"

enum attack { attack_not_due, attack_no_channel, attack_hidden, attacks };

static void pass(int to, const void *bytes, size_t size, const int descriptors[passed_max])
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(passed_max * sizeof(int))];
    } control = {.header = {CMSG_LEN(passed_max * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec piece = {(void *)(uintptr_t)bytes, size};
    const struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};

    memcpy(CMSG_DATA(&control.header), descriptors, passed_max * sizeof(int));
    (void)kernel_ports.send_message(to, &message);
}

static void pass_with_frame(int to, struct wire_frame *frame, const struct port_name *name, const int descriptors[passed_max])
{
    uint8_t bytes[wire_header_size + wire_name_max];
    size_t size = wire_header_size;

    if (frame->flags & wire_new_channel) {
        frame->token = scheduler_random(random_work, UINT64_MAX) | 1;
        frame->name_length = name->length;
        memcpy(bytes + wire_header_size, name->bytes, name->length);
        size += name->length;
    }
    wire_encode(frame, bytes);
    pass(to, bytes, size, descriptors);
}

/* With a frame that brings none, as both descriptors of a control frame, or behind a true channel and in its queue. */
static void attack_with(int to, const struct port_name *name, const int slow[passed_max], const int channel[2])
{
    enum attack kind = (enum attack)scheduler_random(random_work, attacks);
    struct wire_frame one_way = {.type = wire_one_way, .flags = wire_no_data};
    struct wire_frame control = {.type = wire_control, .flags = wire_new_channel, .channel = wire_control_watches};
    const int handed_over[passed_max] = {channel[1], slow[1]};

    scheduler_trace("attack %d", (int)kind);
    if (kind == attack_hidden) {
        pass(channel[0], "x", 1, slow);
        pass_with_frame(to, &control, name, handed_over);
    } else {
        pass_with_frame(to, kind == attack_no_channel ? &control : &one_way, name, slow);
    }
}

static void close_if_open(int descriptor)
{
    if (descriptor >= 0) {
        (void)kernel.close(descriptor);
    }
}

static void attack(int to, const struct port_name *name)
{
    const int slow[passed_max] = {slow_make(), slow_make()};
    int channel[2] = {-1, -1};

    if (slow[0] >= 0 && slow[1] >= 0 && kernel_ports.channel_create(channel) == 0) {
        attack_with(to, name, slow, channel);
    }
    close_if_open(slow[0]);
    close_if_open(slow[1]);
    close_if_open(channel[0]);
    close_if_open(channel[1]);
}

void hostile_attack(CFStringRef port)
{
    char leaf[port_leaf_size];
    char path[name_max];
    struct port_name name;
    int to;

    tables_spare(true);
    to = kernel_ports.datagram_create(false);
    if (port_name_of(port, &name)) {
        port_name_leaf(&name, leaf);
        (void)snprintf(path, sizeof path, "/run/simulated/corerunloop.v1/%s.sock", leaf);
        if (to >= 0 && kernel_ports.datagram_connect(to, path) == 0) {
            attack(to, &name);
        }
    }
    close_if_open(to);
    tables_spare(false);
}
