/* SPDX-License-Identifier: Apache-2.0 */
/* Packets; see packet.h. */
#define _GNU_SOURCE
#include "Port/Wire/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Kernel/kernel_descriptors.h"
#include "Port/Wire/peer_descriptor.h"
#include "Support/invariant.h"

enum {
    together_max = 2048, /* bytes that are copied into one buffer, so that `send` will do */
    descriptors_most = 253, /* that the kernel passes with one packet */
    descriptors_size = descriptors_most * (int)sizeof(int),
};

/* ---- what the kernel counts ---- */

/*
 * The kernel counts a structure that describes the packet, one block, and whole pages. The packet's first bytes are in the block, whose
 * size is a power of two and at most four pages. The rest is in the pages, and a list of them is at the block's end. The length of the
 * list depends on the kernel's configuration.
 */
enum { description_max = 512, list_max = 1024, block_pages = 4 };

uint64_t packet_charge_max(uint64_t size, uint64_t page_size)
{
    const uint64_t largest = block_pages * page_size;
    uint64_t block = 1;

    if (size + list_max > largest) {
        return description_max + (size + list_max + page_size - 1) / page_size * page_size;
    }
    while (block < size + list_max) {
        block *= 2;
    }
    return description_max + block;
}

uint64_t packet_size_within(uint64_t charge, uint64_t page_size)
{
    const uint64_t largest = block_pages * page_size;
    uint64_t bytes = charge > description_max ? charge - description_max : 0;
    uint64_t block = 1;

    if (bytes >= largest) {
        return bytes / page_size * page_size - list_max;
    }
    while (block <= bytes / 2) {
        block *= 2;
    }
    return block > list_max && block <= bytes ? block - list_max : 0;
}

/* ---- buffers ---- */

uint8_t *scratch_take(struct scratch *scratch)
{
    uint8_t *buffer = atomic_exchange_explicit(&scratch->buffer, NULL, memory_order_acquire);

    return buffer ? buffer : malloc(wire_frame_max);
}

void scratch_give(struct scratch *scratch, uint8_t *buffer)
{
    uint8_t *none = NULL;

    if (!atomic_compare_exchange_strong_explicit(&scratch->buffer, &none, buffer, memory_order_release, memory_order_relaxed)) {
        free(buffer);
    }
}

void scratch_free(struct scratch *scratch)
{
    free(atomic_exchange_explicit(&scratch->buffer, NULL, memory_order_acquire));
}

/* ---- packets ---- */

enum { scm_pidfd = 4 }; /* SCM_PIDFD, which older headers lack */

/*
 * Control data with room for the credentials, a pidfd of the sender, and as many descriptors as a packet can bring. The kernel closes those
 * without room.
 */
union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(descriptors_size)];
};

/* Encodes the frame's header and name. Returns their size. */
static size_t put_head(const struct wire_frame *frame, uint8_t *ret_bytes)
{
    invariant(frame->name_length <= wire_name_max);
    wire_encode(frame, ret_bytes);
    if (frame->name_length > 0) {
        memcpy(ret_bytes + wire_header_size, frame->name, frame->name_length);
    }
    return wire_header_size + (size_t)frame->name_length;
}

/* A packet in pieces, which points into itself. */
struct outgoing {
    uint8_t head[wire_header_size + wire_name_max];
    struct iovec pieces[2];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(wire_descriptors_max * sizeof(int))];
    struct msghdr message;
};

static void put_together(struct outgoing *outgoing, const struct wire_frame *frame, const void *data, const int *descriptors, int count)
{
    size_t data_size = data ? (size_t)frame->length : 0;
    size_t descriptors_bytes = (size_t)count * sizeof(int);

    invariant(count >= 0 && count <= wire_descriptors_max && data_size <= wire_inline_max);
    outgoing->pieces[0] = (struct iovec){outgoing->head, put_head(frame, outgoing->head)};
    outgoing->pieces[1] = (struct iovec){(void *)(uintptr_t)data, data_size};
    outgoing->message = (struct msghdr){.msg_iov = outgoing->pieces, .msg_iovlen = data_size > 0 ? 2 : 1};
    if (count > 0) {
        struct cmsghdr *part = (struct cmsghdr *)(void *)outgoing->control;

        memset(outgoing->control, 0, sizeof outgoing->control);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = (socklen_t)CMSG_LEN(descriptors_bytes); /* musl declares the field with another type */
        memcpy(CMSG_DATA(part), descriptors, descriptors_bytes);
        outgoing->message.msg_control = outgoing->control;
        outgoing->message.msg_controllen = (socklen_t)CMSG_SPACE(descriptors_bytes);
    }
}

int packet_send(int socket, const struct wire_frame *frame, const void *data, const int *descriptors, int count)
{
    uint8_t bytes[wire_header_size + together_max];
    size_t data_size = data ? (size_t)frame->length : 0;
    struct outgoing outgoing;
    ssize_t result;

    if (count == 0 && data_size <= together_max - wire_name_max) {
        size_t size = put_head(frame, bytes);

        if (data_size > 0) {
            memcpy(bytes + size, data, data_size);
        }
        result = kernel_ports.send(socket, bytes, size + data_size);
    } else {
        put_together(&outgoing, frame, data, descriptors, count);
        result = kernel_ports.send_message(socket, &outgoing.message);
    }
    return result < 0 ? (int)result : 0;
}

int packet_send_in_turn(int socket, const struct wire_frame *frame, const void *data, const int *descriptors, int count, int64_t limit_ns,
                        int64_t *socket_limit_ns)
{
    struct outgoing outgoing;
    ssize_t result;

    put_together(&outgoing, frame, data, descriptors, count);
    result = kernel_ports.send_in_turn(socket, &outgoing.message, limit_ns, socket_limit_ns);
    return result < 0 ? (int)result : 0;
}

/* Takes the pidfd of the sender; it is a negative number if the kernel could not make one. */
static void take_process(const void *bytes, struct packet *packet)
{
    int process;

    memcpy(&process, bytes, sizeof process);
    if (process >= 0) {
        packet->sender.process = packet->sender.pid == 0 ? kernel_ports.process_number(process) : 0;
        (void)kernel.close(process);
    }
}

/* Takes the descriptors of one part, and closes those beyond what a frame may bring. */
static void take_descriptors(const struct cmsghdr *part, struct packet *packet)
{
    size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

    for (size_t i = 0; i < count; i++) {
        int descriptor;

        memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof descriptor);
        descriptor = kernel_above_streams(descriptor);
        if (packet->descriptor_count < wire_descriptors_max) {
            packet->descriptors[packet->descriptor_count++] = descriptor;
        } else {
            peer_descriptor_close(descriptor);
            packet->is_cut = true;
        }
    }
}

static void take_control(struct msghdr *message, struct packet *packet)
{
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET) {
            continue;
        }
        if (part->cmsg_type == SCM_CREDENTIALS && part->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
            struct ucred sender;

            memcpy(&sender, CMSG_DATA(part), sizeof sender);
            packet->has_sender = true;
            packet->sender.pid = sender.pid;
            packet->uid = sender.uid;
        } else if (part->cmsg_type == scm_pidfd && part->cmsg_len == CMSG_LEN(sizeof(int))) {
            take_process(CMSG_DATA(part), packet);
        } else if (part->cmsg_type == SCM_RIGHTS) {
            take_descriptors(part, packet);
        }
    }
}

static int receive(int socket, uint8_t *buffer, size_t room, struct packet *ret_packet)
{
    union control control;
    struct iovec piece = {buffer, room};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t size = kernel_ports.receive_message(socket, &message);

    *ret_packet = (struct packet){.size = size > 0 ? (size_t)size : 0, .descriptors = {-1, -1}};
    if (size < 0) {
        return (int)size;
    }
    ret_packet->is_cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    take_control(&message, ret_packet);
    ret_packet->lacks_descriptors =
        ret_packet->is_cut && !(message.msg_flags & MSG_TRUNC) && ret_packet->descriptor_count < wire_descriptors_max;
    return 0;
}

int packet_receive(int socket, uint8_t *buffer, struct packet *ret_packet)
{
    return receive(socket, buffer, wire_frame_max, ret_packet);
}

int packet_skip(int socket)
{
    uint8_t bytes[wire_header_size];
    struct packet packet;
    int result = receive(socket, bytes, sizeof bytes, &packet);

    if (result == 0) {
        packet_close(&packet);
        result = packet.size > 0 ? 1 : 0;
    }
    return result;
}

/* Takes one packet out of a queue, to be closed later. Without memory closes it now. Returns false if none can be taken. */
static bool take_for_later(int socket, struct packet **packets, size_t *count)
{
    uint8_t bytes[wire_header_size];
    struct packet *more = realloc(*packets, (*count + 1) * sizeof **packets);
    int result;

    if (!more) {
        result = packet_skip(socket);
        return result >= 0 || result == -EINTR;
    }
    *packets = more;
    result = receive(socket, bytes, sizeof bytes, &more[*count]);
    if (result == 0) {
        ++*count;
    }
    return result == 0 || result == -EINTR;
}

void packet_socket_close(int socket)
{
    struct packet *packets = NULL;
    size_t count = 0;

    while (!kernel_ports.stop_receiving(socket) && take_for_later(socket, &packets, &count)) {
    }
    (void)kernel.close(socket);
    for (size_t i = 0; i < count; i++) {
        packet_close(&packets[i]); /* now: whoever finds a channel of theirs closed looks whether the socket still is there */
    }
    free(packets);
}

int packet_socket_replace(int fresh, int number)
{
    int old = kernel_ports.duplicate(number);
    int result = old < 0 ? old : kernel_ports.replace(fresh, number);

    if (result < 0) {
        packet_socket_close(fresh);
    } else {
        (void)kernel.close(fresh); /* not the last close of its file, which `number` stands for now */
    }
    if (old >= 0 && result < 0) {
        (void)kernel.close(old);
    } else if (old >= 0) {
        packet_socket_close(old);
    }
    return result < 0 ? result : 0;
}

void packet_close(struct packet *packet)
{
    for (int i = 0; i < packet->descriptor_count; i++) {
        if (packet->descriptors[i] >= 0) {
            peer_descriptor_close(packet->descriptors[i]);
        }
    }
    packet->descriptor_count = 0;
}

int packet_take(struct packet *packet, int index)
{
    int descriptor = packet->descriptors[index];

    invariant(index < packet->descriptor_count && descriptor >= 0);
    packet->descriptors[index] = -1;
    return descriptor;
}
