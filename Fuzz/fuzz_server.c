/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local port under attack: the bytes are a program of what a hostile process of the same user may do to the port's socket, its channels
 * and the memory it passes on. Whatever that is, the port goes on: it runs no more messages than were right, says nothing wrong on any
 * channel, answers a polite client in another process, and leaves no object and no descriptor when it ends.
 *
 * Each input has a port of its own, on this process's one thread. The polite client is forked at the first input and told to ask by a pipe.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <signal.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "CoreFoundation/CoreFoundation.h"
#include "Port/Core/message_port.h"
#include "Port/Wire/reply_page.h"
#include "check.h"

#define NAME CFSTR("victim")
#define MODE CFSTR("fuzzed")

enum { ends_max = 12, arena_size = 65536, memory_size = 70000, most_operations = 32, most_depth = 4 };
enum { most_passes = 100000, patience_s = 10, most_descriptors = 4 };

static const char victim[] = "victim";

/* ---- the bytes ---- */

struct input {
    const uint8_t *bytes;
    size_t left;
};

static uint8_t next(struct input *input)
{
    if (input->left == 0) {
        return 0;
    }
    input->left--;
    return *input->bytes++;
}

/* ---- the polite client ---- */

static int order_pipe[2], answer_pipe[2];

static bool ask(uint64_t nonce)
{
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, NAME);
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)&nonce, sizeof nonce);
    CFDataRef reply = NULL;
    bool is_right = remote && CFMessagePortSendRequest(remote, 0, data, patience_s, patience_s, MODE, &reply) == kCFMessagePortSuccess &&
                    CFEqual(reply, data);

    if (reply) {
        CFRelease(reply);
    }
    CFRelease(data);
    if (remote) {
        CFRelease(remote);
    }
    return is_right;
}

static void be_polite(void)
{
    uint64_t nonce;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(order_pipe[0], &nonce, sizeof nonce) == sizeof nonce) {
        char answer = ask(nonce) ? 'y' : 'n';

        (void)!write(answer_pipe[1], &answer, 1);
    }
    _exit(0);
}

/* ---- the port ---- */

static CFMessagePortRef port;
static uint64_t polite_nonce;
static bool has_asked;
static int calls; /* but for the polite one */
static int depth; /* of calls inside one another */

static CFDataRef reply_of(CFIndex length)
{
    CFMutableDataRef reply = CFDataCreateMutable(NULL, 0);

    CFDataSetLength(reply, length);
    return reply;
}

/* Touches every byte; the message id says what the reply is. */
static CFDataRef answer(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    static const CFIndex lengths[] = {0, 3, 2000, 65536, 65537, 0};
    const UInt8 *bytes = CFDataGetBytePtr(data);
    CFIndex length = CFDataGetLength(data);
    uint32_t sum = 0;

    (void)local;
    (void)info;
    for (CFIndex i = 0; i < length; i++) {
        sum += bytes[i];
    }
    if (length == sizeof polite_nonce && memcmp(bytes, &polite_nonce, sizeof polite_nonce) == 0) {
        has_asked = true;
        return CFRetain(data);
    }
    calls++;
    if (message_id % 5 == 4 && depth < most_depth) { /* the next message comes inside */
        depth++;
        (void)CFRunLoopRunInMode(MODE, 0, true);
        depth--;
    }
    return message_id % 7 == 6 ? CFRetain(data) : sum == 1 ? NULL : reply_of(lengths[(uint32_t)message_id % 6]);
}

static void run_pending(void)
{
    int passes = 0;

    while (CFRunLoopRunInMode(MODE, 0, true) == kCFRunLoopRunHandledSource) {
        CHECK(++passes < most_passes);
    }
}

static void open_port(void)
{
    CFRunLoopSourceRef source;

    port = CFMessagePortCreateLocal(NULL, NAME, answer, NULL, NULL);
    CHECK(port);
    source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    CFRelease(source);
    calls = 0;
}

static void close_port(void)
{
    CFMessagePortInvalidate(port);
    CFRelease(port);
}

/* The fuzzer's clock sends this process a signal every few seconds, whose handler ends what waits. */
static char read_answer(void)
{
    char result = 'n';
    ssize_t size;

    do {
        size = read(answer_pipe[0], &result, 1);
    } while (size < 0 && errno == EINTR);
    CHECK(size == 1);
    return result;
}

static void expect_answer_for_others(void)
{
    polite_nonce = polite_nonce * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    has_asked = false;
    CRLMessagePortSetMemoryBudget(port, 1 << 20);
    CHECK(write(order_pipe[1], &polite_nonce, sizeof polite_nonce) == sizeof polite_nonce);
    for (int passes = 0; !has_asked; passes++) {
        CHECK(passes < most_passes && CFRunLoopRunInMode(MODE, patience_s, true) == kCFRunLoopRunHandledSource);
    }
    CHECK(read_answer() == 'y');
}

/* ---- the attacker ---- */

static struct {
    int socket;
    int ends[ends_max]; /* of channels: the attacker's; -1: none */
    int others[ends_max]; /* and what he handed over */
    int arena; /* the latest; -1: none */
    int right; /* frames sent so far that a port may run */
    int answers; /* read so far */
} attacker;

static void attacker_begin(void)
{
    struct port_card card;
    struct port_name name;
    int place;

    CHECK(port_name_of(NAME, &name));
    CHECK(name_registry_connect("fuzz", &name, &attacker.socket, &place, &card) == 0);
    (void)close(place);
    for (int i = 0; i < ends_max; i++) {
        attacker.ends[i] = attacker.others[i] = -1;
    }
    attacker.arena = -1;
    attacker.right = attacker.answers = 0;
}

static void close_one(int *descriptor)
{
    if (*descriptor >= 0) {
        (void)close(*descriptor);
        *descriptor = -1;
    }
}

static void attacker_end(void)
{
    close_one(&attacker.socket);
    close_one(&attacker.arena);
    for (int i = 0; i < ends_max; i++) {
        close_one(&attacker.ends[i]);
        close_one(&attacker.others[i]);
    }
}

static int make_channel(uint8_t place)
{
    int ends[2];

    place %= ends_max;
    close_one(&attacker.ends[place]);
    close_one(&attacker.others[place]);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    attacker.ends[place] = ends[0];
    attacker.others[place] = ends[1];
    return fcntl(ends[1], F_DUPFD_CLOEXEC, 0);
}

static int make_memory(off_t size, int seals, bool is_filled)
{
    int memory = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    CHECK(memory >= 0);
    (void)!ftruncate(memory, size);
    if (is_filled) {
        (void)fallocate(memory, 0, 0, size);
    }
    (void)fcntl(memory, F_ADD_SEALS, seals);
    return memory;
}

/* The attacker keeps it, to change it later. */
static int make_arena(int seals, bool is_filled)
{
    close_one(&attacker.arena);
    attacker.arena = make_memory(arena_size, seals, is_filled);
    return fcntl(attacker.arena, F_DUPFD_CLOEXEC, 0);
}

/* The same for a reply page. */
static int make_page(int seals)
{
    close_one(&attacker.arena);
    attacker.arena = make_memory(reply_page_size, seals, true);
    return fcntl(attacker.arena, F_DUPFD_CLOEXEC, 0);
}

/* The read end of a pipe with something in it. */
static int make_pipe(void)
{
    int ends[2];

    CHECK(pipe2(ends, O_CLOEXEC) == 0 && write(ends[1], "fuzz", 4) == 4);
    (void)close(ends[1]);
    return ends[0];
}

/* A descriptor to hand over, which the caller closes. */
static int make_descriptor(uint8_t kind, uint8_t place, uint64_t length)
{
    const int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    int end = attacker.others[place % ends_max];

    switch (kind % 13) {
    case 0:
    case 1:
    case 2:
        return make_channel(place);
    case 3:
        return make_arena(place < 64 ? F_SEAL_GROW : F_SEAL_SHRINK | F_SEAL_GROW, true);
    case 4:
        return make_memory((off_t)(length <= memory_size ? length : memory_size), all_seals, true);
    case 5: /* anything may be wrong */
        return make_arena(place & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), place & 1);
    case 6:
        return fcntl(attacker.socket, F_DUPFD_CLOEXEC, 0);
    case 7:
        return fcntl(port->side.local.socket, F_DUPFD_CLOEXEC, 0);
    case 8:
        return make_pipe();
    case 9:
        return epoll_create1(EPOLL_CLOEXEC);
    case 10: /* the end of a channel that it has already */
        return end >= 0 ? fcntl(end, F_DUPFD_CLOEXEC, 0) : make_channel(place);
    case 11:
        return make_page(place < 128 ? F_SEAL_SHRINK | F_SEAL_GROW : place & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
    default:
        return open(place & 1 ? "/dev/null" : "/", O_RDONLY | O_CLOEXEC);
    }
}

static void send_packet(const uint8_t *bytes, size_t size, const int *descriptors, int count)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(most_descriptors * sizeof(int))];
    } control = {.room = {0}};
    struct iovec piece = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    struct wire_frame frame;

    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
        memcpy(CMSG_DATA(&control.header), descriptors, (size_t)count * sizeof(int));
    }
    while (sendmsg(attacker.socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        if (errno != EAGAIN) {
            return;
        }
        run_pending();
    }
    attacker.right += wire_decode(wire_to_port, bytes, size, &frame) == wire_ok && wire_descriptor_count(&frame) == count ? 1 : 0;
}

static uint64_t choose_length(struct input *input, uint8_t choice)
{
    static const uint64_t lengths[] = {0, 1, 8, 64 << 20, arena_size, memory_size, arena_size + 1, 0x60000000, 0x60000001, UINT64_MAX};

    return choice < 128 ? choice % 32 : choice < 250 ? lengths[choice % 10] : (uint64_t)next(input) << (next(input) % 64);
}

/* What clients send. */
static const struct shape {
    enum wire_type type;
    uint16_t flags;
} shapes[] = {
    {wire_request, 0},
    {wire_request, wire_no_data},
    {wire_request, wire_no_data | wire_want_ack},
    {wire_request, wire_in_arena},
    {wire_request, wire_in_memory},
    {wire_request, wire_new_arena | wire_in_arena},
    {wire_request, wire_new_channel},
    {wire_request, wire_new_channel | wire_no_data},
    {wire_request, wire_new_channel | wire_in_memory},
    {wire_request, wire_new_channel | wire_new_arena},
    {wire_request, wire_new_channel | wire_new_arena | wire_in_arena},
    {wire_one_way, 0},
    {wire_one_way, wire_no_data | wire_want_ack},
    {wire_one_way, wire_in_memory},
    {wire_control, wire_new_channel},
    {wire_reply, wire_no_data},
    {wire_page, 0},
};

static struct wire_frame make_frame(struct input *input, uint8_t changes)
{
    const struct shape *shape = &shapes[next(input) % (sizeof shapes / sizeof shapes[0])];
    struct wire_frame frame = {.type = shape->type, .flags = shape->flags, .message_id = (int8_t)next(input)};
    uint8_t names = next(input);

    if (changes & 8) {
        frame.flags ^= next(input);
    }
    if (!(frame.flags & wire_no_data) && frame.type != wire_control && frame.type != wire_page) {
        frame.length = choose_length(input, next(input));
    }
    if (frame.type == wire_request || frame.type == wire_control || frame.type == wire_page) {
        frame.channel = 1 + (names & 1);
        frame.token = 1 + (names >> 1 & 3);
    }
    frame.conversation = frame.type == wire_request || frame.type == wire_reply ? 1 + (names >> 3 & 1) : 0;
    frame.extra = frame.flags & wire_want_ack ? 1 + (names >> 4 & 3) : 0;
    frame.name_length = frame.flags & wire_new_channel ? sizeof victim - 1 : 0;
    frame.sequence = names;
    return frame;
}

/* Descriptors that belong to the frame, or any. Returns how many; flags that contradict one another may ask for more than are made. */
static int make_descriptors(struct input *input, const struct wire_frame *frame, uint8_t changes, int descriptors[most_descriptors])
{
    int belonging = wire_descriptor_count(frame);
    int count = changes & 128 ? changes >> 5 & 3 : belonging < most_descriptors ? belonging : most_descriptors;

    for (int i = 0; i < count; i++) {
        bool is_channel = i == 0 && frame->flags & wire_new_channel;
        bool is_page = frame->type == wire_page ? i == 0 : frame->type == wire_control;
        uint8_t belongs = is_channel ? 0 : is_page ? 11 : frame->type == wire_page ? 9 : frame->flags & wire_new_arena ? 3 : 4;

        descriptors[i] = make_descriptor(changes & 64 ? next(input) : belongs, next(input), frame->length);
    }
    return count;
}

/* A frame that is right but for what the bytes change in it. */
static void send_frame(struct input *input)
{
    static uint8_t packet[wire_frame_max + 64];
    uint8_t changes = next(input);
    struct wire_frame frame = make_frame(input, changes);
    int descriptors[most_descriptors];
    int count = make_descriptors(input, &frame, changes, descriptors);
    size_t size = wire_header_size;

    memset(packet, 0, wire_header_size + wire_name_max);
    wire_encode(&frame, packet);
    memcpy(packet + size, victim, frame.name_length);
    size += frame.name_length;
    if (!(frame.flags & (wire_no_data | wire_in_arena | wire_in_memory)) && frame.length <= wire_inline_max) {
        size += frame.length;
    }
    for (int i = 0; i < (changes & 3); i++) {
        packet[next(input) % (wire_header_size + 8)] ^= next(input);
    }
    send_packet(packet, changes & 4 ? size - next(input) % size : size, descriptors, count);
    for (int i = 0; i < count; i++) {
        close_one(&descriptors[i]);
    }
}

static void send_bytes(struct input *input)
{
    size_t size = next(input);

    size = size <= input->left ? size : input->left;
    send_packet(input->bytes, size, NULL, 0);
    input->bytes += size;
    input->left -= size;
}

/* What a port says on a channel is right, whatever it was asked. */
static void read_channel(int end)
{
    static uint8_t bytes[wire_frame_max + 1];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(most_descriptors * sizeof(int))];
    } control;
    struct iovec piece = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct wire_frame frame;
    ssize_t size = recvmsg(end, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *part = size > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    int brought = 0;

    if (size <= 0) {
        return;
    }
    CHECK(wire_decode(wire_to_client, bytes, (size_t)size, &frame) == wire_ok);
    attacker.answers += frame.type == wire_reply || frame.type == wire_dropped ? 1 : 0;
    CHECK(attacker.answers <= attacker.right);
    if (part) {
        int descriptor;

        CHECK(part->cmsg_type == SCM_RIGHTS && part->cmsg_len == CMSG_LEN(sizeof(int)));
        memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
        (void)close(descriptor);
        brought = 1;
    }
    CHECK(brought == wire_descriptor_count(&frame));
}

static void use_channel(struct input *input)
{
    uint8_t what = next(input);
    int *end = &attacker.ends[what % ends_max];

    if (*end < 0) {
        return;
    }
    switch (what / ends_max % 5) {
    case 0:
        close_one(end);
        break;
    case 1:
        (void)shutdown(*end, SHUT_RDWR);
        break;
    case 2:
        (void)send(*end, input->bytes, input->left < 100 ? input->left : 100, MSG_NOSIGNAL | MSG_DONTWAIT);
        break;
    default:
        read_channel(*end);
    }
}

static void use_arena(struct input *input)
{
    uint8_t what = next(input);

    if (attacker.arena >= 0) {
        (void)fallocate(attacker.arena, what & 1 ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : 0, 0, arena_size);
        (void)!ftruncate(attacker.arena, what & 2 ? 0 : arena_size);
    }
}

static void operate(struct input *input)
{
    uint8_t what = next(input);

    switch (what % 8) {
    case 0:
        send_bytes(input);
        break;
    case 1:
        use_channel(input);
        break;
    case 2:
        use_arena(input);
        break;
    case 3:
        (void)CFRunLoopRunInMode(MODE, 0, true);
        break;
    case 4:
        CRLMessagePortSetMemoryBudget(port, (CFIndex)next(input) << 10);
        CRLMessagePortSetQueueLimit(port, next(input));
        break;
    default:
        send_frame(input);
    }
}

/* ---- one input ---- */

static int count_descriptors(void)
{
    DIR *stream = opendir("/proc/self/fd");
    int count = 0;

    CHECK(stream);
    while (readdir(stream)) {
        count++;
    }
    (void)closedir(stream);
    return count;
}

static void attack(struct input *input)
{
    open_port();
    attacker_begin();
    for (int i = 0; i < most_operations && input->left > 0; i++) {
        operate(input);
    }
    run_pending();
    CHECK(calls <= attacker.right);
    for (int i = 0; i < ends_max; i++) {
        if (attacker.ends[i] >= 0) {
            read_channel(attacker.ends[i]);
        }
    }
    expect_answer_for_others();
    attacker_end();
    close_port();
}

static void begin_once(void)
{
    static char directory[] = "/tmp/corerunloop-fuzz-XXXXXX";
    static bool has_begun;
    struct input none = {NULL, 0};

    if (has_begun) {
        return;
    }
    has_begun = true;
    CHECK(mkdtemp(directory) && setenv("XDG_RUNTIME_DIR", directory, 1) == 0);
    CHECK(pipe2(order_pipe, O_CLOEXEC) == 0 && pipe2(answer_pipe, O_CLOEXEC) == 0);
    if (fork() == 0) {
        be_polite();
    }
    /* What the library keeps is there after the first sleep and the first message. */
    open_port();
    CHECK(CFRunLoopRunInMode(MODE, 0.001, true) == kCFRunLoopRunTimedOut);
    close_port();
    attack(&none);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input input = {bytes, size};
    int descriptors;
    long objects;

    begin_once();
    descriptors = count_descriptors();
    objects = object_live_count();
    attack(&input);
    CHECK(count_descriptors() == descriptors);
    CHECK(object_live_count() == objects);
    return 0;
}
