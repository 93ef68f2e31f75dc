/* SPDX-License-Identifier: Apache-2.0 */
/* Unix datagram sockets, pairs of packet sockets, and what is passed along; see files.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "files.h"
#include "plan.h"
#include "scheduler.h"

enum { channel_packets_max = 200, channel_bytes_max = 400000, packet_max = 212960, process_id_base = 100 };

size_t datagrams_max = 11;

/* ---- queues ---- */

static void message_free(struct message *message)
{
    for (int i = 0; i < message->count; i++) {
        file_release(message->passed[i]);
    }
    free(message);
}

static void queue_clear(struct file *file)
{
    while (file->queue) {
        struct message *message = file->queue;

        file->queue = message->next;
        message_free(message);
    }
    file->tail = &file->queue;
    file->queued = file->queued_bytes = 0;
}

static bool has_room(const struct file *receiver)
{
    return receiver->kind == file_datagram ? receiver->queued < datagrams_max
                                           : receiver->queued < channel_packets_max && receiver->queued_bytes < channel_bytes_max;
}

int socket_status(const struct file *file)
{
    int status = file->queue ? status_in : 0;
    const struct file *receiver;

    if (file->was_reset) {
        status |= status_error;
    }
    if (file->is_shut || file->peer_has_gone) {
        status |= status_in | status_hang_up | status_half_closed;
    }
    receiver = file->kind == file_channel ? file->peer : file->node ? file->node->socket : NULL;
    if (!receiver || has_room(receiver)) {
        status |= status_out;
    }
    return status;
}

/* ---- the end ---- */

/* Whoever is connected to a datagram socket finds out when it next sends. */
static void forget_datagram(struct file *gone)
{
    if (gone->node && gone->node->socket == gone) {
        gone->node->socket = NULL;
    }
}

void socket_closed(struct file *file)
{
    bool had_unread = file->queue != NULL;

    queue_clear(file);
    if (file->kind == file_datagram) {
        forget_datagram(file);
        turns_wake_all(file);
        turns_forget(file);
        return;
    }
    if (file->peer) {
        file->peer->peer = NULL;
        file->peer->peer_has_gone = true;
        file->peer->was_reset = had_unread;
        file_stir(file->peer);
    }
}

int socket_shut(int descriptor)
{
    struct file *file = file_of(descriptor);

    if (!file || (file->kind != file_channel && file->kind != file_datagram)) {
        return -ENOTSOCK;
    }
    if (!file->peer && !file->peer_has_gone && !file->node) {
        return -ENOTCONN;
    }
    file->is_shut = true;
    file_stir(file);
    if (file->kind == file_channel && file->peer) {
        file->peer->is_shut = true;
        file_stir(file->peer);
    }
    return 0;
}

bool socket_stop_receiving(int descriptor)
{
    struct file *file = file_of(descriptor);

    if (!file || (file->kind != file_channel && file->kind != file_datagram)) {
        return true;
    }
    file->takes_no_packets = true;
    return !file->queue;
}

int socket_refuse_descriptors(int descriptor)
{
    struct file *file = file_of(descriptor);

    if (!file || (file->kind != file_channel && file->kind != file_datagram)) {
        return -ENOTSOCK;
    }
    file->refuses_descriptors = true;
    return 0;
}

/* ---- making them ---- */

int datagram_make(bool takes_credentials)
{
    struct file *file = file_create(file_datagram);

    file->takes_credentials = takes_credentials;
    return file_install(file);
}

int datagram_name(int descriptor, const char *path)
{
    struct file *file = file_of(descriptor);
    struct node *node;

    if (!file || file->kind != file_datagram) {
        return -ENOTSOCK;
    }
    node = file->node ? NULL : node_bind(path, file);
    if (!node) {
        return -EADDRINUSE;
    }
    file->node = node;
    return 0;
}

/* A connected socket stands on its receiver's node, which has no socket any more once the receiver has closed it. */
int datagram_join(int descriptor, const char *path)
{
    struct file *file = file_of(descriptor);
    struct node *node = node_find(path);

    if (!file || file->kind != file_datagram) {
        return -ENOTSOCK;
    }
    if (!node) {
        return -ENOENT;
    }
    if (!node->socket) {
        return -ECONNREFUSED;
    }
    if (file->node) {
        return -EISCONN;
    }
    file->node = node;
    file->node->references++;
    file->peer_has_gone = false;
    return 0;
}

int channel_make(int ret_ends[2])
{
    struct file *one = file_create(file_channel);
    struct file *other = file_create(file_channel);

    one->peer = other;
    other->peer = one;
    ret_ends[0] = file_install(one);
    if (ret_ends[0] < 0) {
        file_release(other);
        return ret_ends[0];
    }
    ret_ends[1] = file_install(other);
    if (ret_ends[1] < 0) {
        (void)file_close(ret_ends[0]);
        return ret_ends[1];
    }
    return 0;
}

bool channel_is(int descriptor)
{
    const struct file *file = file_of(descriptor);

    return file && file->kind == file_channel;
}

struct file *datagram_full(int descriptor)
{
    const struct file *file = file_of(descriptor);
    struct file *receiver = file && file->kind == file_datagram && file->node && !file->peer_has_gone ? file->node->socket : NULL;

    return receiver && !has_room(receiver) ? receiver : NULL;
}

/* ---- sending ---- */

static size_t size_of(const struct msghdr *message)
{
    size_t size = 0;

    for (size_t i = 0; i < message->msg_iovlen; i++) {
        size += message->msg_iov[i].iov_len;
    }
    return size;
}

static struct message *message_create(const struct msghdr *header, size_t size)
{
    struct message *message = calloc(1, sizeof *message + size);
    size_t done = 0;

    if (!message) {
        scheduler_fail("the simulation has no memory");
    }
    message->size = size;
    message->pid = process_id_base + scheduler_process()->number;
    for (size_t i = 0; i < header->msg_iovlen; i++) {
        if (header->msg_iov[i].iov_len > 0) {
            memcpy(message->bytes + done, header->msg_iov[i].iov_base, header->msg_iov[i].iov_len);
        }
        done += header->msg_iov[i].iov_len;
    }
    return message;
}

/* False: a number is no descriptor. */
static bool attach(struct message *message, const struct msghdr *header)
{
    const struct cmsghdr *part = header->msg_control ? CMSG_FIRSTHDR(header) : NULL;
    size_t count = part && part->cmsg_type == SCM_RIGHTS ? (part->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

    for (size_t i = 0; i < count && i < passed_max; i++) {
        struct file *file;
        int descriptor;

        memcpy(&descriptor, CMSG_DATA(part) + i * sizeof descriptor, sizeof descriptor);
        file = file_of(descriptor);
        if (!file) {
            return false;
        }
        file_retain(file);
        message->passed[message->count++] = file;
    }
    return true;
}

/* Who gets what is sent, or the error. */
static int receiver_of(struct file *file, struct file **ret_receiver)
{
    if (file->is_shut) {
        return -EPIPE;
    }
    if (file->kind == file_channel) {
        *ret_receiver = file->peer;
        return file->peer ? 0 : -EPIPE;
    }
    if (!file->node || file->peer_has_gone) {
        return -ENOTCONN;
    }
    *ret_receiver = file->node->socket;
    if (!*ret_receiver) {
        file->peer_has_gone = true;
        return -ECONNREFUSED;
    }
    return 0;
}

ssize_t socket_put(int descriptor, const struct msghdr *header)
{
    struct file *file = file_of(descriptor);
    struct file *receiver;
    struct message *message;
    size_t size = size_of(header);
    int error;

    if (!file || (file->kind != file_datagram && file->kind != file_channel)) {
        return -ENOTSOCK;
    }
    error = receiver_of(file, &receiver);
    if (error < 0) {
        return error;
    }
    if (receiver->takes_no_packets) {
        return -EPIPE;
    }
    if (receiver->refuses_descriptors && header->msg_control) {
        return -EPERM;
    }
    if (size > packet_max) {
        return -EMSGSIZE;
    }
    if (!has_room(receiver)) {
        if (file->kind == file_datagram) {
            turns_note_full(receiver);
        }
        return -EAGAIN;
    }
    message = message_create(header, size);
    if (!attach(message, header)) {
        message_free(message);
        return -EBADF;
    }
    *receiver->tail = message;
    receiver->tail = &message->next;
    receiver->queued++;
    receiver->queued_bytes += size;
    receiver->puts++;
    if (file->kind == file_datagram) {
        turns_note_put(receiver);
    }
    file_stir(receiver);
    return (ssize_t)size;
}

/* ---- receiving ---- */

static struct message *unqueue(struct file *file)
{
    struct message *message = file->queue;

    file->queue = message->next;
    if (!file->queue) {
        file->tail = &file->queue;
    }
    file->queued--;
    file->queued_bytes -= message->size;
    return message;
}

/* Puts one part of control data behind what is there. False: it does not fit. */
static bool add_control(struct msghdr *header, size_t *used, int type, const void *bytes, size_t size)
{
    struct cmsghdr part = {.cmsg_level = SOL_SOCKET, .cmsg_type = type, .cmsg_len = CMSG_LEN(size)};
    char *place = (char *)header->msg_control + *used;

    if (!header->msg_control || *used + CMSG_LEN(size) > header->msg_controllen) {
        header->msg_flags |= MSG_CTRUNC;
        return false;
    }
    memcpy(place, &part, sizeof part);
    memcpy(place + CMSG_LEN(0), bytes, size);
    *used += *used + CMSG_SPACE(size) <= header->msg_controllen ? CMSG_SPACE(size) : CMSG_LEN(size);
    return true;
}

/* Returns false if the process has no number left for what comes with the message. */
static bool hand_out(struct file *file, struct message *message, struct msghdr *header)
{
    bool is_seen = !plan.hides_processes || message->pid == process_id_base + scheduler_process()->number;
    const struct ucred sender = {.pid = is_seen ? message->pid : 0, .uid = user_id, .gid = user_id};
    int numbers[passed_max];
    size_t used = 0;
    int count = 0;
    bool has_numbers = true;

    if (file->takes_credentials) {
        (void)add_control(header, &used, SCM_CREDENTIALS, &sender, sizeof sender);
    }
    for (int i = 0; i < message->count; i++) {
        int number;

        file_retain(message->passed[i]);
        number = header->msg_control ? file_install(message->passed[i]) : -EMFILE;
        if (!header->msg_control) {
            file_release(message->passed[i]);
        }
        if (number < 0) {
            header->msg_flags |= MSG_CTRUNC;
            has_numbers = header->msg_control == NULL;
            break;
        }
        numbers[count++] = number;
    }
    if (count > 0 && !add_control(header, &used, SCM_RIGHTS, numbers, (size_t)count * sizeof(int))) {
        for (int i = 0; i < count; i++) {
            (void)file_close(numbers[i]);
        }
    }
    header->msg_controllen = used;
    return has_numbers;
}

ssize_t socket_take(int descriptor, struct msghdr *header)
{
    struct file *file = file_of(descriptor);
    struct message *message;
    size_t size;

    if (!file || (file->kind != file_datagram && file->kind != file_channel)) {
        return -ENOTSOCK;
    }
    header->msg_flags = 0;
    if (file->was_reset) {
        file->was_reset = false;
        return -ECONNRESET;
    }
    if (!file->queue) {
        header->msg_controllen = 0;
        return file->is_shut || (file->kind == file_channel && file->peer_has_gone) ? 0 : -EAGAIN;
    }
    message = unqueue(file);
    size = message->size;
    if (size > header->msg_iov[0].iov_len) {
        header->msg_flags |= MSG_TRUNC;
        memcpy(header->msg_iov[0].iov_base, message->bytes, header->msg_iov[0].iov_len);
    } else {
        memcpy(header->msg_iov[0].iov_base, message->bytes, size);
    }
    slow_allow(!hand_out(file, message, header));
    if (file->peer) {
        file_stir(file->peer); /* there is room again */
    }
    turns_wake_next(file);
    message_free(message);
    slow_allow(false);
    return (ssize_t)size;
}
