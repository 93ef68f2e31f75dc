/* SPDX-License-Identifier: Apache-2.0 */
/* Packets; see packet.h. */
#define _GNU_SOURCE
#include "Port/Wire/packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Support/invariant.h"

enum {
    together_max = 2048, /* bytes that are copied into one buffer, so that `send` will do */
    descriptors_size = wire_descriptors_max * (int)sizeof(int),
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

/* Control data with room for the descriptors and, when receiving, the credentials: two descriptors, and a pidfd. */
union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int)) + CMSG_SPACE(descriptors_size)];
};

static int send_with_descriptors(int socket, struct iovec *pieces, int piece_count, const int *descriptors, int count)
{
    union control control = {.room = {0}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)piece_count};
    ssize_t result;

    if (count > 0) {
        size_t size = (size_t)count * sizeof(int);

        message.msg_control = &control;
        message.msg_controllen = (socklen_t)CMSG_SPACE(size); /* its type is another one with musl */
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = (socklen_t)CMSG_LEN(size);
        memcpy(CMSG_DATA(&control.header), descriptors, size);
    }
    result = kernel_ports.send_message(socket, &message);
    return result < 0 ? (int)result : 0;
}

int packet_send(int socket, const struct wire_frame *frame, const void *data, const int *descriptors, int count)
{
    uint8_t header[wire_header_size + together_max];
    size_t data_size = data ? (size_t)frame->length : 0;
    size_t size = wire_header_size + (size_t)frame->name_length;

    invariant(count >= 0 && count <= wire_descriptors_max);
    invariant(frame->name_length <= wire_name_max && data_size <= wire_inline_max);
    wire_encode(frame, header);
    if (frame->name_length > 0) {
        memcpy(header + wire_header_size, frame->name, frame->name_length);
    }
    if (count == 0 && size + data_size <= sizeof header) {
        ssize_t result;

        if (data_size > 0) {
            memcpy(header + size, data, data_size);
        }
        result = kernel_ports.send(socket, header, size + data_size);
        return result < 0 ? (int)result : 0;
    }
    struct iovec pieces[2] = {{header, size}, {(void *)(uintptr_t)data, data_size}};

    return send_with_descriptors(socket, pieces, data_size > 0 ? 2 : 1, descriptors, count);
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
            size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

            for (size_t i = 0; i < count; i++) {
                int descriptor;

                memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof descriptor);
                descriptor = kernel_above_streams(descriptor);
                if (packet->descriptor_count < wire_descriptors_max) {
                    packet->descriptors[packet->descriptor_count++] = descriptor;
                } else {
                    (void)kernel.close(descriptor);
                    packet->is_cut = true;
                }
            }
        }
    }
}

int packet_receive(int socket, uint8_t *buffer, struct packet *ret_packet)
{
    union control control;
    struct iovec piece = {buffer, wire_frame_max};
    /* A sender may use the room of the pidfd for more descriptors, which are closed. */
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
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

void packet_close(struct packet *packet)
{
    for (int i = 0; i < packet->descriptor_count; i++) {
        if (packet->descriptors[i] >= 0) {
            (void)kernel.close(packet->descriptors[i]);
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
