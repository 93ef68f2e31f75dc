/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile peers of the same user: H1 to H15. Each attack runs in a process of its own against a port that must go on serving others, leak
 * nothing and never crash; what the attacker gets is his own affair.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Message/client_channel.h"
#include "Port/Core/message_port.h"
#include "Port/port_probe.h"
#include "Port/Wire/reply_page.h"
#include "Port/Wire/wire.h"

/* ---- the attacker's means ---- */

static int attacker_connect(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int socket_number = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/victim.sock", port_probe_names());
    if (connect(socket_number, (struct sockaddr *)&address, sizeof address) != 0) {
        _exit(9);
    }
    return socket_number;
}

static void attacker_send(int to, const void *bytes, size_t size, const int *descriptors, int count)
{
    char control[CMSG_SPACE(300 * sizeof(int))] = {0};
    struct iovec piece = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

    if (count > 0) {
        struct cmsghdr *header = (struct cmsghdr *)(void *)control;

        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
        memcpy(CMSG_DATA(header), descriptors, (size_t)count * sizeof(int));
    }
    while (sendmsg(to, &message, MSG_NOSIGNAL) < 0 && (errno == EAGAIN || errno == EINTR)) {
    }
}

static void attacker_send_frame(int to, struct wire_frame *frame, const int *descriptors, int count)
{
    uint8_t bytes[wire_header_size + 64] = {0};
    size_t size = wire_header_size;

    if (frame->flags & wire_new_channel) {
        frame->name_length = 6;
    }
    wire_encode(frame, bytes);
    if (frame->name_length > 0) {
        memcpy(bytes + size, "victim", 6);
        size += 6;
    }
    if (!(frame->flags & (wire_in_arena | wire_in_memory | wire_no_data)) && frame->length <= 32 && frame->type != wire_control &&
        frame->type != wire_page) {
        size += (size_t)frame->length;
    }
    attacker_send(to, bytes, size, descriptors, count);
}

static struct wire_frame request(uint16_t flags)
{
    static uint64_t token = 1000;

    return (struct wire_frame){.type = wire_request, .flags = flags, .channel = 1, .token = ++token, .conversation = 1};
}

static atomic_int calls;

static CFDataRef count_and_echo(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    (void)local;
    (void)message_id;
    (void)info;
    atomic_fetch_add(&calls, 1);
    return CFRetain(data);
}

/* Runs `attack` in another process, and then a polite request. Returns how many messages of the attack got to the callout. */
static int withstand(void (*attack)(int socket))
{
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, CFSTR("victim"));
    CFDataRef data = port_data("polite");
    CFDataRef reply = NULL;
    int before = atomic_load(&calls);
    pid_t pid = fork();
    int status = 1;

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        attack(attacker_connect());
        _exit(0);
    }
    REQUIRE(remote != NULL);
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(port_ask(remote, 1, data, &reply), kCFMessagePortSuccess);
    EXPECT(port_data_is(reply, "polite"));
    if (reply) {
        CFRelease(reply);
    }
    CFRelease(data);
    CFRelease(remote);
    return atomic_load(&calls) - before - 1;
}

static void victim_start(struct port_thread *server)
{
    port_thread_start(server, CFSTR("victim"), count_and_echo, NULL);
}

/* ---- H1 to H5 ---- */

static void send_short_and_wrong_frames(int to)
{
    struct wire_frame frame = {.type = wire_one_way, .flags = wire_no_data};
    uint8_t bytes[wire_header_size + 8];

    memset(bytes, 0, sizeof bytes);
    for (size_t size = 0; size < wire_header_size; size += size < 2 ? 1 : 20) {
        attacker_send(to, bytes, size, NULL, 0);
    }
    wire_encode(&frame, bytes);
    attacker_send(to, bytes, wire_header_size - 1, NULL, 0);
    for (size_t place = 0; place < wire_header_size; place++) {
        wire_encode(&frame, bytes);
        bytes[place] ^= 0xA5;
        attacker_send(to, bytes, wire_header_size, NULL, 0);
    }
    for (int i = 0; i < 64; i++) { /* lengths from 1 to 2^63 that are not there */
        frame.flags = 0;
        frame.length = UINT64_C(1) << i;
        wire_encode(&frame, bytes);
        attacker_send(to, bytes, wire_header_size, NULL, 0);
    }
    frame.length = UINT64_MAX;
    wire_encode(&frame, bytes);
    attacker_send(to, bytes, wire_header_size, NULL, 0);
}

PORT_TEST(frames_that_are_short_or_wrong_are_dropped, "241 H1 H2 H3")
{
    struct port_thread server;

    victim_start(&server);
    EXPECT_EQ(withstand(send_short_and_wrong_frames), 16); /* message id, extra and sequence may be anything */
    port_thread_stop(&server);
}

static void send_too_large(int to)
{
    static uint8_t bytes[wire_frame_max + 4096];
    struct wire_frame frame = {.type = wire_one_way, .length = sizeof bytes - wire_header_size};

    wire_encode(&frame, bytes);
    attacker_send(to, bytes, sizeof bytes, NULL, 0);
    frame.length = wire_inline_max; /* the rest is cut off on the way in */
    wire_encode(&frame, bytes);
    attacker_send(to, bytes, sizeof bytes, NULL, 0);
}

PORT_TEST(a_packet_larger_than_a_frame_is_dropped, "241 H4")
{
    struct port_thread server;

    victim_start(&server);
    EXPECT_EQ(withstand(send_too_large), 0);
    port_thread_stop(&server);
}

static void send_wrong_names(int to)
{
    static const char *const names[] = {"victix", "victi", "vic\0im", "\xFF\xFE\xFD\xFC\xFB\xFA"};
    uint8_t bytes[wire_header_size + 256];
    int ends[2];

    (void)socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
    for (int i = 0; i < 4; i++) {
        struct wire_frame frame = request(wire_new_channel | wire_no_data);

        frame.name_length = i == 1 ? 5 : 6;
        wire_encode(&frame, bytes);
        memcpy(bytes + wire_header_size, names[i], frame.name_length);
        attacker_send(to, bytes, wire_header_size + (size_t)frame.name_length, &ends[1], 1);
        frame.name_length = 200;
        wire_encode(&frame, bytes);
        memset(bytes + wire_header_size, 'n', 200);
        attacker_send(to, bytes, wire_header_size + 200, &ends[1], 1);
    }
}

PORT_TEST(names_that_are_not_the_ports_are_refused, "241 H5")
{
    struct port_thread server;

    victim_start(&server);
    EXPECT_EQ(withstand(send_wrong_names), 0);
    port_thread_stop(&server);
}

/* ---- H6: ends of channels that are none ---- */

static void send_false_channels(int to)
{
    struct wire_frame frame = request(wire_no_data);
    int pair[2], shut[2], pipes[2], full[2], stream[2];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    int others[16];
    int count = 0;
    char byte = 0;

    attacker_send_frame(to, &frame, NULL, 0); /* names a channel that there is not */
    frame = request(wire_no_data | wire_new_channel);
    attacker_send_frame(to, &frame, NULL, 0); /* says it brings one */
    (void)!pipe2(pipes, O_NONBLOCK);
    while (write(pipes[1], &byte, 1) == 1) {
    }
    (void)socketpair(AF_UNIX, SOCK_STREAM, 0, stream);
    (void)socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    (void)socketpair(AF_UNIX, SOCK_SEQPACKET, 0, shut);
    (void)socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, full);
    (void)shutdown(shut[1], SHUT_RDWR);
    (void)close(shut[0]);
    while (send(full[1], &byte, 1, MSG_NOSIGNAL) == 1) {
    }
    (void)snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "crl-test-%d", (int)getpid());
    (void)bind(listener, (struct sockaddr *)&name, sizeof name);
    (void)listen(listener, 1);
    others[count++] = open("/dev/null", O_RDWR);
    others[count++] = open("/", O_RDONLY | O_DIRECTORY);
    others[count++] = stream[1];
    others[count++] = listener;
    others[count++] = epoll_create1(0);
    others[count++] = to;
    others[count++] = pipes[1];
    others[count++] = shut[1];
    others[count++] = full[1];
    for (int i = 0; i < count; i++) {
        frame = request(wire_no_data | wire_new_channel);
        attacker_send_frame(to, &frame, &others[i], 1);
    }
    frame = request(wire_no_data | wire_new_channel); /* the same channel twice, and used while it runs */
    attacker_send_frame(to, &frame, &pair[1], 1);
    attacker_send_frame(to, &frame, &pair[1], 1);
    frame.flags = wire_no_data;
    frame.name_length = 0;
    for (int i = 0; i < 20; i++) {
        attacker_send_frame(to, &frame, NULL, 0);
    }
}

PORT_TEST(what_is_no_channel_is_refused, "241 H6 H11")
{
    struct port_thread server;
    int accepted;

    victim_start(&server);
    accepted = withstand(send_false_channels);
    EXPECT(accepted >= 4 && accepted <= 4 + 20); /* the true channels, dead and full ones among them, and what names one while it lives */
    port_thread_stop(&server);
}

/* ---- H7: descriptors ---- */

static void send_many_descriptors(int to)
{
    struct wire_frame frame = {.type = wire_one_way, .flags = wire_no_data};
    int descriptors[253];
    int null = open("/dev/null", O_RDWR);

    for (int i = 0; i < 253; i++) {
        descriptors[i] = null;
    }
    attacker_send_frame(to, &frame, descriptors, 1);
    attacker_send_frame(to, &frame, descriptors, 2);
    attacker_send_frame(to, &frame, descriptors, 3);
    attacker_send_frame(to, &frame, descriptors, 253);
    frame = request(wire_no_data | wire_new_channel);
    attacker_send_frame(to, &frame, descriptors, 3);
    attacker_send_frame(to, &frame, descriptors, 253);
}

PORT_TEST(more_descriptors_than_belong_are_closed, "241 H7")
{
    struct port_thread server;

    victim_start(&server);
    EXPECT_EQ(withstand(send_many_descriptors), 0);
    port_thread_stop(&server);
}

/* ---- H8: memory ---- */

static int memory_of(off_t size, int seals, bool filled)
{
    int memory = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    (void)!ftruncate(memory, size);
    if (filled) {
        (void)fallocate(memory, 0, 0, size);
    }
    (void)fcntl(memory, F_ADD_SEALS, seals);
    return memory;
}

enum { all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, arena_seals = F_SEAL_SHRINK | F_SEAL_GROW };

static int page_memory(void)
{
    return memory_of(shared_page_size, arena_seals, true);
}

static const struct wire_frame control_frame = {.type = wire_control, .flags = wire_new_channel, .channel = 1, .token = 77};

/* Both descriptors are closed. */
static void attacker_send_control(int to, uint64_t token, int end, int page)
{
    struct wire_frame frame = control_frame;
    const int both[] = {end, page};

    frame.token = token;
    attacker_send_frame(to, &frame, both, 2);
    (void)close(end);
    (void)close(page);
}

/* Descriptors that are no memory at all, with `size` bytes where that can be. */
static int add_other_files(int descriptors[], int count, off_t size)
{
    char plain_path[] = "/tmp/crl-hostile-XXXXXX";
    char shared_path[] = "/dev/shm/crl-hostile-XXXXXX";
    int plain = mkstemp(plain_path);
    int shared = mkstemp(shared_path);
    int huge = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    int pipes[2];

    (void)!pipe(pipes);
    (void)!write(pipes[1], "not memory", 10);
    (void)unlink(plain_path);
    (void)unlink(shared_path);
    (void)!ftruncate(plain, size);
    (void)!posix_fallocate(shared, 0, size);
    descriptors[count++] = open("/dev/zero", O_RDONLY);
    descriptors[count++] = plain;
    descriptors[count++] = pipes[0];
    if (shared >= 0) {
        descriptors[count++] = shared;
    }
    if (huge >= 0) {
        descriptors[count++] = huge;
    }
    return count;
}

static void send_false_memory(int to)
{
    const off_t size = 100000;
    int memories[16] = {
        memory_of(size, 0, true),
        memory_of(size, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW, true),
        memory_of(size, F_SEAL_WRITE | F_SEAL_GROW, true),
        memory_of(size, F_SEAL_WRITE | F_SEAL_SHRINK, true),
        memory_of(size - 1, all_seals, true),
        memory_of(size + 1, all_seals, true),
        memory_of((off_t)1 << 40, all_seals, false),
        memory_of(size, all_seals, false),
    };
    int count = add_other_files(memories, 8, size);

    for (int i = 0; i < count; i++) {
        struct wire_frame frame = {.type = wire_one_way, .flags = wire_in_memory, .length = (uint64_t)size};

        attacker_send_frame(to, &frame, &memories[i], 1);
    }
}

PORT_TEST(memory_that_cannot_be_trusted_is_not_touched, "241 H8")
{
    struct port_thread server;

    victim_start(&server);
    EXPECT_EQ(withstand(send_false_memory), 0);
    port_thread_stop(&server);
}

static void send_request_in_arena(int to, uint64_t length, int arena)
{
    struct wire_frame frame = request(wire_new_channel | wire_new_arena | wire_in_arena);
    int both[2] = {-1, arena};
    int ends[2];

    (void)socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
    both[0] = ends[1];
    frame.length = length;
    attacker_send_frame(to, &frame, both, 2);
    (void)close(ends[1]);
}

static void send_false_arenas(int to)
{
    const off_t size = 1 << 17;
    int arenas[16] = {
        memory_of(size, 0, true),
        memory_of(size, F_SEAL_SHRINK, true),
        memory_of(size, F_SEAL_GROW, true),
        memory_of(size, arena_seals, false),
        memory_of(size - 1, arena_seals, true),
        memory_of(4096, arena_seals, true),
        memory_of(0, arena_seals, false),
        memory_of((off_t)1 << 40, arena_seals, false),
    };
    int count = add_other_files(arenas, 8, size);

    for (int i = 0; i < count; i++) {
        send_request_in_arena(to, (uint64_t)size, arenas[i]);
    }
    send_request_in_arena(to, (uint64_t)size + 1, memory_of(size, arena_seals, true)); /* more than it has */
    send_request_in_arena(to, 0x50000000, memory_of(size, arena_seals, true));
}

static void send_arenas_that_cannot_be_mapped(int to)
{
    const off_t size = 1 << 17;

    send_request_in_arena(to, (uint64_t)size, memory_of(size, all_seals, true));
    send_request_in_arena(to, (uint64_t)size, memory_of(size, arena_seals | F_SEAL_FUTURE_WRITE, true));
}

PORT_TEST(arenas_that_cannot_be_trusted_are_not_touched, "241 H8")
{
    struct port_thread server;

    victim_start(&server);
    EXPECT_EQ(withstand(send_false_arenas), 0);
    EXPECT_EQ(withstand(send_arenas_that_cannot_be_mapped), 2); /* they are read */
    port_thread_stop(&server);
}

static ssize_t read_half(int descriptor, void *bytes, size_t size, off_t offset)
{
    return offset > 0 ? 0 : kernel_ports_linux.file_read(descriptor, bytes, size / 2, offset);
}

/* No seal would let it happen; the receiver does not rely on that. */
/* Whoever serves the file's system might never answer. */
TEST(a_file_that_is_no_memory_is_not_asked_for_its_size, "241 H8")
{
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC); /* a program's own file may lie in memory */
    uint64_t size = 1;

    EXPECT(kernel_ports_linux.memory_size(file, &size) < 0);
    EXPECT_EQ(size, 0);
    (void)close(file);
}

PORT_TEST(memory_that_ends_while_it_is_read_is_refused, "241 H8")
{
    struct trace seen = {0};
    CFMessagePortRef port = port_open(CFSTR("victim"), port_note, &seen, MODE);
    CFMessagePortRef remote = port_connect(CFSTR("victim"));
    CFDataRef data = port_pattern(100000, 1);

    EXPECT_EQ(port_tell(remote, 1, data), kCFMessagePortSuccess);
    kernel_ports.file_read = read_half;
    (void)CFRunLoopRunInMode(MODE, 0, true);
    kernel_ports = kernel_ports_linux;
    EXPECT_EQ(port_ask(remote, 2, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_TRACE(&seen, "2:");
    CFRelease(data);
    CFRelease(remote);
    port_drop(port);
}

/* Punches holes into the arena while it is being read. */
static void punch_arena(int to)
{
    int memory = memory_of(1 << 20, F_SEAL_SHRINK | F_SEAL_GROW, true);
    int ends[2];

    for (int i = 0; i < 50; i++) {
        struct wire_frame frame = request(wire_new_channel | wire_new_arena | wire_in_arena);
        int both[2];

        (void)socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
        both[0] = ends[1];
        both[1] = memory;
        frame.length = 1 << 20;
        attacker_send_frame(to, &frame, both, 2);
        (void)fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
        (void)fallocate(memory, 0, 0, 1 << 20);
        (void)close(ends[0]);
        (void)close(ends[1]);
    }
}

PORT_TEST(an_arena_may_change_while_it_is_read, "241 H8")
{
    struct port_thread server;

    victim_start(&server);
    EXPECT(withstand(punch_arena) <= 50);
    port_thread_stop(&server);
}

/* ---- H9 to H13 ---- */

static void die_after_sending(int to)
{
    int ends[2];

    for (int i = 0; i < 100; i++) {
        struct wire_frame frame = request(wire_new_channel | wire_no_data);

        (void)socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
        attacker_send_frame(to, &frame, &ends[1], 1);
        (void)close(ends[1]);
        if (i % 2) {
            (void)close(ends[0]);
        }
    }
}

PORT_TEST(senders_that_die_leave_nothing, "H9")
{
    struct port_thread server;

    victim_start(&server);
    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(withstand(die_after_sending), 100);
    }
    port_thread_stop(&server);
}

static CFRunLoopSourceRef ticked;

static void tick(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    ++*(int *)info;
    CFRunLoopSourceSignal(ticked);
}

static void count_perform(void *info)
{
    ++*(int *)info;
}

PORT_TEST(a_flood_does_not_starve_timers_and_sources, "H10")
{
    int ticks = 0;
    int performs = 0;
    double deadline_s = port_probe_now() + 5 * test_patience_s();
    CFRunLoopTimerContext context = {0, &ticks, NULL, NULL, NULL};
    CFRunLoopSourceContext source_context = {.info = &performs, .perform = count_perform};
    CFMessagePortRef port = port_open(CFSTR("victim"), port_silence, NULL, kCFRunLoopDefaultMode);
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent(), 0.002, 0, 0, tick, &context);
    pid_t pid = fork();

    if (pid == 0) {
        int to = attacker_connect();

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            struct wire_frame frame = {.type = wire_one_way, .flags = wire_no_data};

            attacker_send_frame(to, &frame, NULL, 0);
        }
    }
    ticked = CFRunLoopSourceCreate(NULL, 0, &source_context);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), ticked, kCFRunLoopDefaultMode);
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    while (ticks <= 20 && port_probe_now() < deadline_s) {
        (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0.2, false);
    }
    EXPECT(ticks > 20);
    EXPECT(performs >= ticks - 1 && performs <= ticks);
    CFRunLoopSourceInvalidate(ticked);
    CFRelease(ticked);
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    port_drop(port);
}

static void send_many_controls(int to)
{
    for (uint64_t i = 0; i < 200; i++) {
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0) {
            attacker_send_control(to, i + 1, ends[1], page_memory());
        }
    }
}

enum { attackers_max = 8 };

/*
 * How many more descriptors the port's process has after `count` processes have attacked that still live. If there are more than
 * `most`, waits for those that another thread closes.
 */
static int descriptors_after(void (*attack)(int socket), int count, int most)
{
    CFMessagePortRef remote = port_connect(CFSTR("victim"));
    pid_t pids[attackers_max];
    int before, after;

    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    before = port_probe_count_descriptors();
    for (int i = 0; i < count; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            attack(attacker_connect());
            (void)raise(SIGSTOP); /* and keeps what it has */
        }
    }
    for (int i = 0; i < count; i++) {
        waitpid(pids[i], NULL, WUNTRACED);
    }
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    (void)port_probe_descriptors_fall_to(before + most);
    after = port_probe_count_descriptors();
    for (int i = 0; i < count; i++) {
        port_process_kill(pids[i]);
    }
    CFRelease(remote);
    return after - before;
}

PORT_TEST(control_channels_are_bounded, "H12")
{
    struct port_thread server;
    int more;

    victim_start(&server);
    more = descriptors_after(send_many_controls, 1, channel_control_max);
    EXPECT(more > 0 && more <= channel_control_max);
    EXPECT_EQ(withstand(send_many_controls), 0);
    port_thread_stop(&server);
}

static void offer_many_channels(int to)
{
    for (int i = 0; i < 400; i++) {
        struct wire_frame frame = request(wire_new_channel | wire_no_data);
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0) {
            attacker_send_frame(to, &frame, &ends[1], 1);
            (void)close(ends[1]);
        }
    }
}

PORT_TEST(reply_channels_are_bounded, "H12 H11")
{
    struct port_thread server;
    int more;

    test_need_descriptors(4 * channel_reply_max);
    victim_start(&server);
    more = descriptors_after(offer_many_channels, 1, channel_reply_max_of_peer);
    EXPECT(more > 0 && more <= channel_reply_max_of_peer);
    more = descriptors_after(offer_many_channels, attackers_max, channel_reply_max);
    EXPECT(more > channel_reply_max_of_peer && more <= channel_reply_max);
    EXPECT_EQ(withstand(offer_many_channels), 400);
    port_thread_stop(&server);
}

/* Far more requests than a channel has room for replies. */
static void never_read(int to)
{
    struct wire_frame frame = request(wire_new_channel | wire_no_data);
    int ends[2];

    (void)socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
    attacker_send_frame(to, &frame, &ends[1], 1);
    (void)close(ends[1]);
    frame.flags = wire_no_data;
    frame.name_length = 0;
    for (int i = 0; i < 5000; i++) {
        attacker_send_frame(to, &frame, NULL, 0);
    }
}

PORT_TEST(a_reader_that_never_reads_loses_its_channel, "H11")
{
    struct port_thread server;
    int answered;

    victim_start(&server);
    EXPECT_EQ(descriptors_after(never_read, 1, 0), 0);
    answered = withstand(never_read);
    EXPECT(answered > 1 && answered < 5000);
    port_thread_stop(&server);
}

/* ---- reply pages ---- */

/* A channel of the attacker's that the port has kept, once its first request has been answered. */
struct attackers_channel {
    struct wire_frame frame; /* of further requests */
    int end;
};

static void await_answer(int end)
{
    uint8_t bytes[wire_frame_max];

    if (recv(end, bytes, sizeof bytes, 0) <= 0) {
        _exit(5);
    }
}

static struct attackers_channel attacker_make_channel(int to)
{
    struct attackers_channel channel = {.frame = request(wire_new_channel | wire_no_data)};
    int ends[2];

    (void)socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
    attacker_send_frame(to, &channel.frame, &ends[1], 1);
    (void)close(ends[1]);
    await_answer(ends[0]);
    channel.frame.flags = wire_no_data;
    channel.frame.name_length = 0;
    channel.end = ends[0];
    return channel;
}

static void attacker_send_page(int to, uint32_t channel, uint64_t token, int memory, int set)
{
    struct wire_frame frame = {.type = wire_page, .channel = channel, .token = token};
    const int both[2] = {memory, set};

    attacker_send_frame(to, &frame, both, 2);
}

/* A channel of somebody else's, as if its secret were out. */
static uint32_t stolen_number;
static uint64_t stolen_token;

static void send_pages_for_no_channel_of_ones_own(int to)
{
    struct attackers_channel channel = attacker_make_channel(to);
    int set = epoll_create1(EPOLL_CLOEXEC);
    int ends[2];

    (void)socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
    attacker_send_control(to, control_frame.token, ends[1], page_memory());
    attacker_send_page(to, 1, control_frame.token, page_memory(), set);
    attacker_send_page(to, stolen_number, stolen_token, page_memory(), set);
    attacker_send_page(to, channel.frame.channel, channel.frame.token + 1, page_memory(), set);
    attacker_send_page(to, channel.frame.channel + 1, channel.frame.token, page_memory(), set);
    attacker_send_frame(to, &channel.frame, NULL, 0);
    await_answer(channel.end);
}

/* How many pages the port had given out when it was last asked something. */
static atomic_int pages;

static CFDataRef count_pages_and_echo(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    port_lock(local);
    atomic_store(&pages, (int)local->side.local.channels.page_count);
    port_unlock(local);
    return count_and_echo(local, message_id, data, info);
}

PORT_TEST(a_page_is_taken_only_for_a_channel_of_its_senders, "241 H6")
{
    struct port_thread server;
    CFMessagePortRef remote;
    const struct client_channel *channel;

    port_thread_start(&server, CFSTR("victim"), count_pages_and_echo, NULL);
    remote = port_connect(CFSTR("victim"));
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    channel = container_of(remote->side.remote.free_channels.next, const struct client_channel, link);
    stolen_number = channel->number;
    stolen_token = channel->token;
    EXPECT_EQ(withstand(send_pages_for_no_channel_of_ones_own), 2);
    EXPECT_EQ(atomic_load(&pages), 0);
    CFRelease(remote);
    port_thread_stop(&server);
}

static void send_false_pages(int to)
{
    struct attackers_channel channel = attacker_make_channel(to);
    int set = epoll_create1(EPOLL_CLOEXEC);
    int null = open("/dev/null", O_RDWR);
    int pipes[2];
    int ends[2];
    struct wire_frame bare = {.type = wire_page, .channel = channel.frame.channel, .token = channel.frame.token};
    int descriptors[3] = {page_memory(), set, set};

    (void)!pipe(pipes);
    (void)socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
    attacker_send_page(to, bare.channel, bare.token, memory_of(reply_page_size, 0, true), set);
    attacker_send_page(to, bare.channel, bare.token, memory_of(reply_page_size, arena_seals, false), set);
    attacker_send_page(to, bare.channel, bare.token, memory_of(2 * reply_page_size, arena_seals, true), set);
    attacker_send_page(to, bare.channel, bare.token, null, set);
    attacker_send_page(to, bare.channel, bare.token, set, page_memory()); /* the wrong way about */
    attacker_send_page(to, bare.channel, bare.token, page_memory(), null);
    attacker_send_page(to, bare.channel, bare.token, page_memory(), pipes[0]);
    attacker_send_page(to, bare.channel, bare.token, page_memory(), ends[0]); /* not his own channel, which would end */
    attacker_send_page(to, bare.channel, bare.token, page_memory(), to);
    for (int count = 0; count <= 3; count++) { /* two are right */
        if (count != 2) {
            attacker_send_frame(to, &bare, descriptors, count);
        }
    }
    attacker_send_frame(to, &channel.frame, NULL, 0);
    await_answer(channel.end); /* the channel goes on, without a page */
}

PORT_TEST(what_is_no_page_and_no_wait_set_is_refused, "241 H6 H8")
{
    struct port_thread server;
    int before;

    port_thread_start(&server, CFSTR("victim"), count_pages_and_echo, NULL);
    EXPECT_EQ(withstand(send_false_pages), 2);
    before = port_probe_count_descriptors();
    EXPECT_EQ(withstand(send_false_pages), 2);
    EXPECT(port_probe_descriptors_fall_to(before));
    EXPECT_EQ(atomic_load(&pages), 0);
    port_thread_stop(&server);
}

static void send_false_pages_again_and_again(int to)
{
    struct attackers_channel channel = attacker_make_channel(to);
    uint8_t bytes[wire_frame_max];

    for (int i = 0; i < 16; i++) {
        attacker_send_page(to, channel.frame.channel, channel.frame.token, page_memory(), to);
    }
    if (recv(channel.end, bytes, sizeof bytes, 0) != 0) {
        _exit(6); /* it was to be hung up */
    }
}

PORT_TEST(who_goes_on_sending_false_pages_loses_his_channels, "241")
{
    struct port_thread server;

    port_thread_start(&server, CFSTR("victim"), count_pages_and_echo, NULL);
    EXPECT_EQ(withstand(send_false_pages_again_and_again), 1);
    port_thread_stop(&server);
}

/* A request whose reply is in the page when this returns. */
static void ask_in_page(int to, struct attackers_channel *channel, const struct reply_page *page)
{
    attacker_send_frame(to, &channel->frame, NULL, 0);
    while (atomic_load(&page->size) != wire_header_size) {
        (void)sched_yield();
    }
}

/* Has a page, and does with it what nobody should. */
static void misuse_page(int to)
{
    struct attackers_channel channel = attacker_make_channel(to);
    int memory = page_memory();
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct reply_page *page = mmap(NULL, reply_page_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);

    attacker_send_page(to, channel.frame.channel, channel.frame.token, memory, set);
    attacker_send_page(to, channel.frame.channel, channel.frame.token, memory, set); /* a second is too much */
    ask_in_page(to, &channel, page);
    if (ftruncate(memory, 0) == 0) {
        _exit(7);
    }
    for (unsigned i = 0; i < 300; i++) { /* more than a channel has room for; nothing is ever read */
        (void)fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, reply_page_size);
        atomic_store(&page->is_awaited, i % 3 ? UINT32_MAX - i : 0);
        atomic_store(&page->size, i % 2 ? UINT32_MAX : 1);
        memset(page->packet, (int)i, sizeof page->packet);
        ask_in_page(to, &channel, page);
    }
}

PORT_TEST(a_page_may_be_misused_to_nobodys_harm_but_its_owners, "241 H8 H11")
{
    struct port_thread server;
    int before;

    port_thread_start(&server, CFSTR("victim"), count_pages_and_echo, NULL);
    EXPECT_EQ(withstand(misuse_page), 302);
    EXPECT_EQ(atomic_load(&pages), 0); /* the dead one's went with the polite one's new channel */
    before = port_probe_count_descriptors();
    EXPECT_EQ(withstand(misuse_page), 302);
    EXPECT(port_probe_descriptors_fall_to(before));
    port_thread_stop(&server);
}

static void take_many_pages(int to)
{
    for (int i = 0; i < channel_reply_max_of_peer; i++) {
        struct attackers_channel channel = attacker_make_channel(to);
        int memory = page_memory();
        int set = epoll_create1(EPOLL_CLOEXEC);

        attacker_send_page(to, channel.frame.channel, channel.frame.token, memory, set);
        (void)close(memory);
        (void)close(set);
    }
}

PORT_TEST(pages_are_bounded, "H12")
{
    struct port_thread server;
    int more;

    test_need_descriptors(16 * channel_page_max);
    port_thread_start(&server, CFSTR("victim"), count_pages_and_echo, NULL);
    more = descriptors_after(take_many_pages, 3, 3 * channel_reply_max_of_peer + channel_page_max);
    EXPECT(more > 3 * (channel_reply_max_of_peer - 1) && more <= 3 * channel_reply_max_of_peer + channel_page_max);
    EXPECT_EQ(atomic_load(&pages), channel_page_max);
    EXPECT_EQ(withstand(take_many_pages), channel_reply_max_of_peer);
    port_thread_stop(&server);
}

/* ---- acknowledgement pages ---- */

/* How many control channels the port had when it was last asked something. */
static atomic_int controls;

static CFDataRef count_controls_and_echo(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info)
{
    port_lock(local);
    atomic_store(&controls, (int)local->side.local.channels.counts[channel_control]);
    port_unlock(local);
    return count_and_echo(local, message_id, data, info);
}

static int end_of_channel(void)
{
    int ends[2];

    (void)socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
    return ends[1]; /* the other stays open */
}

static void send_false_controls(int to)
{
    struct wire_frame bare = control_frame;
    int descriptors[3] = {end_of_channel(), page_memory(), page_memory()};
    int pipes[2];

    (void)!pipe(pipes);
    attacker_send_control(to, 1, end_of_channel(), memory_of(shared_page_size, 0, true));
    attacker_send_control(to, 2, end_of_channel(), memory_of(shared_page_size, F_SEAL_GROW, true));
    attacker_send_control(to, 3, end_of_channel(), memory_of(shared_page_size, arena_seals, false));
    attacker_send_control(to, 4, end_of_channel(), memory_of(2 * shared_page_size, arena_seals, true));
    attacker_send_control(to, 5, end_of_channel(), memory_of(shared_page_size, all_seals, true));
    attacker_send_control(to, 6, end_of_channel(), open("/dev/zero", O_RDWR));
    attacker_send_control(to, 7, end_of_channel(), end_of_channel());
    attacker_send_control(to, 8, page_memory(), end_of_channel()); /* the wrong way about */
    attacker_send_control(to, 9, page_memory(), page_memory());
    attacker_send_control(to, 10, pipes[0], page_memory());
    attacker_send_control(to, 11, socket(AF_UNIX, SOCK_STREAM, 0), page_memory());
    for (int count = 0; count <= 3; count++) { /* two are right */
        if (count != 2) {
            attacker_send_frame(to, &bare, descriptors, count);
        }
    }
    (void)attacker_make_channel(to); /* all of it has been looked at */
}

PORT_TEST(what_is_no_control_channel_with_a_page_is_refused, "241 H6 H8")
{
    struct port_thread server;
    int before;

    port_thread_start(&server, CFSTR("victim"), count_controls_and_echo, NULL);
    EXPECT_EQ(withstand(send_false_controls), 1);
    EXPECT_EQ(atomic_load(&controls), 0);
    before = port_probe_count_descriptors();
    EXPECT_EQ(withstand(send_false_controls), 1);
    EXPECT(port_probe_descriptors_fall_to(before));
    EXPECT_EQ(atomic_load(&controls), 0);
    port_thread_stop(&server);
}

static void send_false_controls_again_and_again(int to)
{
    struct attackers_channel channel = attacker_make_channel(to);
    uint8_t bytes[wire_frame_max];

    for (int i = 0; i < 16; i++) {
        attacker_send_control(to, 1, end_of_channel(), memory_of(shared_page_size, 0, true));
    }
    if (recv(channel.end, bytes, sizeof bytes, 0) != 0) {
        _exit(6); /* it was to be hung up */
    }
}

PORT_TEST(who_goes_on_sending_false_control_channels_loses_his_channels, "241 H6")
{
    struct port_thread server;

    port_thread_start(&server, CFSTR("victim"), count_controls_and_echo, NULL);
    EXPECT_EQ(withstand(send_false_controls_again_and_again), 1);
    port_thread_stop(&server);
}

enum { tells = 600 }; /* more than a channel has room for packets */

struct attackers_control {
    int to;
    int end; /* from which nobody reads */
    int memory;
    struct ack_page *page;
};

static void tell_and_want_ack(const struct attackers_control *control, uint32_t sequence)
{
    struct wire_frame frame = {
        .type = wire_one_way, .flags = wire_no_data | wire_want_ack, .extra = control_frame.token, .sequence = sequence};

    attacker_send_frame(control->to, &frame, NULL, 0);
}

static struct attackers_control attacker_make_control(int to)
{
    struct attackers_control control = {.to = to, .memory = page_memory()};
    int ends[2];

    (void)socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends);
    control.end = ends[0];
    control.page = mmap(NULL, shared_page_size, PROT_READ | PROT_WRITE, MAP_SHARED, control.memory, 0);
    attacker_send_control(to, control_frame.token, ends[1], fcntl(control.memory, F_DUPFD_CLOEXEC, 0));
    (void)attacker_make_channel(to); /* it has been looked at */
    return control;
}

/* Until that number is in the page. */
static void await_taken(const struct attackers_control *control, uint32_t sequence)
{
    while (atomic_load(&control->page->taken) != sequence) {
        (void)sched_yield();
    }
}

static void await_limit(const struct attackers_control *control)
{
    while (atomic_load(&control->page->queue_limit) == 0) {
        (void)sched_yield();
    }
}

/* Everything that is not to be done with a page. */
static void misuse_acknowledgements(int to)
{
    struct attackers_control control = attacker_make_control(to);

    if (ftruncate(control.memory, 0) == 0) {
        _exit(7);
    }
    for (uint32_t i = 1; i <= tells; i++) {
        (void)fallocate(control.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, shared_page_size);
        atomic_store(&control.page->taken, UINT32_MAX - i);
        atomic_store(&control.page->queue_limit, i % 2 ? UINT32_MAX : 0);
        atomic_store(&control.page->awaited, i % 3 ? i : UINT32_MAX - i);
        tell_and_want_ack(&control, i);
    }
    tell_and_want_ack(&control, tells + 1);
    await_taken(&control, tells + 1);
}

PORT_TEST(an_acknowledgement_page_may_be_misused_to_nobodys_harm_but_its_owners, "241 H8 H11")
{
    struct port_thread server;
    int before;

    port_thread_start(&server, CFSTR("victim"), count_controls_and_echo, NULL);
    EXPECT_EQ(withstand(misuse_acknowledgements), tells + 2);
    before = port_probe_count_descriptors();
    EXPECT_EQ(withstand(misuse_acknowledgements), tells + 2);
    EXPECT(port_probe_descriptors_fall_to(before));
    EXPECT_EQ(atomic_load(&controls), 0); /* the dead one's went with the polite one's new channel */
    port_thread_stop(&server);
}

/* A packet is asked for with each message, and none is read. */
static void ask_for_packets_and_read_none(int to)
{
    struct attackers_control control = attacker_make_control(to);
    uint8_t bytes[wire_header_size];
    int packets = 0;

    for (uint32_t i = 1; i <= tells; i++) {
        ack_page_await(control.page, i);
        tell_and_want_ack(&control, i);
        await_taken(&control, i);
    }
    (void)attacker_make_channel(to); /* the last packet has been sent */
    while (recv(control.end, bytes, sizeof bytes, 0) > 0) {
        packets++;
    }
    if (packets < 2 || packets >= tells) {
        _exit(8);
    }
    ack_page_await(control.page, tells + 1); /* the channel has room again, and is still the server's */
    tell_and_want_ack(&control, tells + 1);
    (void)attacker_make_channel(to);
    if (recv(control.end, bytes, sizeof bytes, 0) != wire_header_size || recv(control.end, bytes, sizeof bytes, 0) > 0) {
        _exit(9);
    }
}

PORT_TEST(a_sender_that_never_reads_what_wakes_it_fills_its_channel_and_keeps_it, "241 H11")
{
    struct port_thread server;

    port_thread_start(&server, CFSTR("victim"), count_controls_and_echo, NULL);
    EXPECT_EQ(withstand(ask_for_packets_and_read_none), tells + 4);
    port_thread_stop(&server);
}

/* As a thread of the receiver's that has taken a message comes to note it after others have noted later ones. */
static void send_numbers_out_of_order(int to)
{
    static const uint32_t old[] = {1000, 999, 3, 0, UINT32_MAX, 1000 + (UINT32_C(1) << 31)};
    struct attackers_control control = attacker_make_control(to);

    tell_and_want_ack(&control, 1000);
    await_taken(&control, 1000);
    await_limit(&control); /* which is stored after the number, and so may be late for what follows */
    atomic_store(&control.page->queue_limit, 0);
    atomic_store(&control.page->awaited, 1);
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        tell_and_want_ack(&control, old[i]);
    }
    (void)attacker_make_channel(to);
    if (atomic_load(&control.page->taken) != 1000 || atomic_load(&control.page->queue_limit) != 0) {
        _exit(8);
    }
    tell_and_want_ack(&control, UINT32_MAX / 2);
    await_taken(&control, UINT32_MAX / 2);
    tell_and_want_ack(&control, UINT32_MAX - 1);
    await_taken(&control, UINT32_MAX - 1);
    tell_and_want_ack(&control, 2); /* and anew */
    await_taken(&control, 2);
}

PORT_TEST(numbers_that_come_late_do_not_turn_a_page_back, "209 226")
{
    struct port_thread server;

    port_thread_start(&server, CFSTR("victim"), count_controls_and_echo, NULL);
    EXPECT_EQ(withstand(send_numbers_out_of_order), 12);
    port_thread_stop(&server);
}

PORT_TEST(a_ports_own_socket_is_no_channel, "241 H6")
{
    struct port_thread server;
    int before;
    int own;
    int to;

    victim_start(&server);
    before = atomic_load(&calls);
    own = server.port->side.local.socket;
    to = attacker_connect();
    for (int i = 0; i < 20; i++) {
        struct wire_frame frame = request(wire_new_channel | wire_no_data);

        attacker_send_frame(to, &frame, &own, 1);
        attacker_send_control(to, 1, fcntl(own, F_DUPFD_CLOEXEC, 0), page_memory());
    }
    CFMessagePortRef remote = port_connect(CFSTR("victim"));
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(atomic_load(&calls) - before, 1);
    CFRelease(remote);
    (void)close(to);
    port_thread_stop(&server);
}

PORT_TEST(a_stopped_receiver_costs_its_senders_only_their_patience, "H13 M9")
{
    pid_t owner = port_process_start(NAME, port_echo, NULL, NULL);
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, NAME);
    CFDataRef reply = NULL;
    int descriptors;
    size_t memory;
    int sent = 0;

    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    kill(owner, SIGSTOP);
    waitpid(owner, NULL, WUNTRACED);
    sent = CFMessagePortSendRequest(remote, 0, NULL, 0, 0, NULL, NULL) == kCFMessagePortSuccess ? 1 : 0;
    descriptors = port_probe_count_descriptors() + 1; /* the control channel */
    memory = port_probe_resident_bytes();
    for (int i = 0; i < 10000; i++) {
        sent += CFMessagePortSendRequest(remote, i, NULL, 0, 0, NULL, NULL) == kCFMessagePortSuccess ? 1 : 0;
    }
    EXPECT_EQ(sent, 5);
    EXPECT(port_probe_count_descriptors() <= descriptors);
    EXPECT(port_probe_resident_bytes() < memory + (256 << 10) || test_is_instrumented());
    kill(owner, SIGCONT);
    EXPECT_EQ(port_ask(remote, 1, NULL, &reply), kCFMessagePortSuccess);
    CFRelease(reply);
    CFRelease(remote);
    port_process_kill(owner);
}

/* ---- H14, H15 ---- */

PORT_TEST(another_users_messages_are_dropped_even_if_the_directory_is_open, "H14 H15 210")
{
    struct trace seen = {0};
    CFMessagePortRef port = port_open(CFSTR("victim"), port_note, &seen, MODE);
    char path[256];
    pid_t pid;

    if (geteuid() != 0) {
        port_drop(port);
        SKIP("needs root, to become another user");
    }
    (void)chmod(port_probe_directory(), 0777);
    (void)chmod(port_probe_names(), 0777);
    (void)snprintf(path, sizeof path, "%s/victim.sock", port_probe_names());
    (void)chmod(path, 0777);
    pid = fork();
    if (pid == 0) {
        struct wire_frame frame = {.type = wire_one_way, .flags = wire_no_data};

        if (setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(3);
        }
        attacker_send_frame(attacker_connect(), &frame, NULL, 0);
        _exit(0);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    (void)CFRunLoopRunInMode(MODE, 0, true);
    EXPECT_TRACE(&seen, "");
    port_drop(port);
}

/* Says that it is root. */
static void send_forged_credentials(int to)
{
    struct wire_frame frame = {.type = wire_one_way, .flags = wire_no_data};
    struct ucred forged = {.pid = getppid(), .uid = 0, .gid = 0};
    uint8_t bytes[wire_header_size];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof forged)];
    } control = {.room = {0}};
    struct iovec piece = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};

    wire_encode(&frame, bytes);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_CREDENTIALS;
    control.header.cmsg_len = CMSG_LEN(sizeof forged);
    memcpy(CMSG_DATA(&control.header), &forged, sizeof forged);
    EXPECT(sendmsg(to, &message, MSG_NOSIGNAL) < 0);
    EXPECT_EQ(errno, EPERM);
}

PORT_TEST(credentials_cannot_be_forged, "H15 210")
{
    struct port_thread server;
    pid_t pid;
    int status = 1;

    if (geteuid() != 0) {
        SKIP("needs root, to become another user");
    }
    victim_start(&server);
    pid = fork();
    if (pid == 0) {
        int to = attacker_connect();

        if (setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(3);
        }
        send_forged_credentials(to);
        struct wire_frame frame = {.type = wire_one_way, .flags = wire_no_data};
        attacker_send_frame(to, &frame, NULL, 0); /* and one that says who it is, on a connection of root's */
        _exit(0);
    }
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    CFMessagePortRef remote = port_connect(CFSTR("victim"));
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(atomic_load(&calls), 1);
    CFRelease(remote);
    port_thread_stop(&server);
}

static void write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY);

    if (file < 0 || write(file, text, strlen(text)) < 0) {
        _exit(77);
    }
    (void)close(file);
}

/* In a namespace of users that knows root alone. */
static int serve_in_user_namespace(int ready, int done)
{
    struct trace seen = {0};
    CFMessagePortRef port, remote;
    char byte = 'r';

    if (unshare(CLONE_NEWUSER) != 0) {
        return 77;
    }
    write_text("/proc/self/setgroups", "deny");
    write_text("/proc/self/gid_map", "0 0 1");
    write_text("/proc/self/uid_map", "0 0 1");
    port = port_open(CFSTR("victim"), port_note, &seen, MODE);
    (void)!write(ready, &byte, 1);
    (void)!read(done, &byte, 1);
    (void)CFRunLoopRunInMode(MODE, 0, true);
    EXPECT_TRACE(&seen, "");
    remote = port_connect(CFSTR("victim"));
    EXPECT_EQ(port_ask(remote, 1, NULL, NULL), kCFMessagePortSuccess);
    EXPECT_TRACE(&seen, "1:");
    CFRelease(remote);
    port_drop(port);
    return 0;
}

static void send_as_another_user(void)
{
    int to = attacker_connect();
    struct wire_frame frame = {.type = wire_one_way, .flags = wire_no_data};

    if (setgid(1000) != 0 || setuid(1000) != 0) {
        _exit(1);
    }
    attacker_send_frame(to, &frame, NULL, 0);
    _exit(0);
}

PORT_TEST(a_user_whom_the_receivers_namespace_does_not_know_is_dropped, "H15 210")
{
    int ready[2], done[2];
    char byte = 0;
    int status = 1;
    pid_t pid;

    if (geteuid() != 0) {
        SKIP("needs root, to become another user");
    }
    (void)!pipe(ready);
    (void)!pipe(done);
    pid = fork();
    if (pid == 0) {
        (void)close(ready[0]);
        _exit(serve_in_user_namespace(ready[1], done[0]));
    }
    (void)close(ready[1]);
    if (read(ready[0], &byte, 1) == 1) {
        pid_t sender = fork();

        if (sender == 0) {
            send_as_another_user();
        }
        waitpid(sender, &status, 0);
        EXPECT_EQ(status, 0);
    }
    (void)!write(done[1], &byte, 1);
    waitpid(pid, &status, 0);
    (void)close(ready[0]);
    (void)close(done[0]);
    (void)close(done[1]);
    if (WEXITSTATUS(status) == 77) {
        SKIP("needs user namespaces");
    }
    EXPECT_EQ(status, 0);
}

/* ---- a hostile server: H23 ---- */

static void write_card(void)
{
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/victim.lock", port_probe_names());
    file = fopen(path, "w");
    (void)fprintf(file, "%d 5 1000000 6\nvictim\n", (int)getpid());
    (void)fclose(file);
}

static void answer_falsely(int mode)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int own = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint8_t bytes[wire_frame_max];
    char control[CMSG_SPACE(8 * sizeof(int))];
    struct iovec piece = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct wire_frame frame;
    ssize_t size;
    int channel;

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/victim.sock", port_probe_names());
    (void)bind(own, (struct sockaddr *)&address, sizeof address);
    (void)kill(getppid(), SIGUSR1);
    size = recvmsg(own, &message, 0);
    if (size < 0 || wire_decode(wire_to_port, bytes, (size_t)size, &frame) != wire_ok || !CMSG_FIRSTHDR(&message)) {
        _exit(1);
    }
    memcpy(&channel, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof channel);
    struct wire_frame reply = {
        .type = wire_reply, .flags = wire_no_data, .message_id = -frame.message_id, .conversation = frame.conversation};
    switch (mode) {
    case 0:
        reply.conversation++;
        break;
    case 1:
        reply.message_id++;
        break;
    case 2:
        reply.type = wire_ack;
        reply.message_id = 0;
        reply.conversation = 0;
        reply.flags = 0;
        break;
    case 3:
        reply.flags = wire_in_arena;
        reply.length = 1 << 20;
        break;
    case 4:
        reply.flags = 0;
        reply.length = 77;
        break;
    default:
        reply.flags = wire_in_memory;
        reply.length = 70000;
        break;
    }
    wire_encode(&reply, bytes);
    (void)send(channel, bytes, wire_header_size, MSG_NOSIGNAL);
    if (mode == 5) { /* the memory that follows is none */
        int null = open("/dev/null", O_RDONLY);

        reply = (struct wire_frame){.type = wire_descriptor, .conversation = frame.conversation};
        wire_encode(&reply, bytes);
        attacker_send(channel, bytes, wire_header_size, &null, 1);
    }
    for (;;) {
        (void)pause();
    }
}

PORT_TEST(false_replies_are_no_replies, "241 H23 M11")
{
    sigset_t wanted;
    int got;

    (void)sigemptyset(&wanted);
    (void)sigaddset(&wanted, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &wanted, NULL);
    for (int mode = 0; mode < 6; mode++) {
        /* Sweeps, and makes the directory. */
        CFMessagePortRef port = CFMessagePortCreateLocal(NULL, CFSTR("another"), port_echo, NULL, NULL);
        CFMessagePortRef remote;
        CFDataRef reply = NULL;
        pid_t pid;

        write_card();
        pid = fork();
        if (pid == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            answer_falsely(mode);
        }
        (void)sigwait(&wanted, &got);
        remote = CFMessagePortCreateRemote(NULL, CFSTR("victim"));
        if (remote) {
            EXPECT_EQ(port_ask(remote, 5, NULL, &reply), kCFMessagePortTransportError);
            EXPECT_EQ(reply, NULL);
            CFRelease(remote);
        } else {
            FAIL("there is no remote");
        }
        port_process_kill(pid);
        port_drop(port);
    }
}

/* ---- a hostile server with a page ---- */

enum page_lie {
    lie_size_above_room,
    lie_size_of_all,
    lie_size_short,
    lie_garbage,
    lie_conversation,
    lie_message,
    lie_type,
    lie_length,
    lie_arena,
    lie_memory,
    lie_new_descriptor,
    lie_count,
    lie_none,
    truth_in_a_storm,
    endless_storm,
};

struct false_server {
    int own;
    int channel;
    bool is_new; /* the request brought the channel */
    struct wire_frame frame; /* of the latest packet */
    struct reply_page *page;
    int bell;
};

/* The next packet, whose descriptors are taken for what it says they are. */
static void take_packet(struct false_server *server)
{
    static uint8_t bytes[wire_frame_max];
    char control[CMSG_SPACE(8 * sizeof(int))];
    struct iovec piece = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t size = recvmsg(server->own, &message, 0);
    int descriptors[2];

    if (size < 0 || wire_decode(wire_to_port, bytes, (size_t)size, &server->frame) != wire_ok) {
        _exit(1);
    }
    server->is_new = server->frame.flags & wire_new_channel;
    if (CMSG_FIRSTHDR(&message)) {
        memcpy(descriptors, CMSG_DATA(CMSG_FIRSTHDR(&message)), CMSG_FIRSTHDR(&message)->cmsg_len - CMSG_LEN(0));
    }
    if (server->is_new) {
        server->channel = descriptors[0];
        server->page = NULL;
    }
    if (server->frame.type == wire_page && reply_page_adopt(descriptors[0], descriptors[1], &server->page, &server->bell) < 0) {
        _exit(2);
    }
}

static struct wire_frame honest_reply(const struct false_server *server)
{
    return (struct wire_frame){.type = wire_reply,
                               .flags = wire_no_data | wire_kept,
                               .message_id = -server->frame.message_id,
                               .conversation = server->frame.conversation,
                               .sequence = server->frame.sequence};
}

static void answer_in_packet(const struct false_server *server)
{
    const struct wire_frame reply = honest_reply(server);
    uint8_t bytes[wire_header_size];

    wire_encode(&reply, bytes);
    (void)send(server->channel, bytes, sizeof bytes, MSG_NOSIGNAL);
}

static void ring(const struct false_server *server, int times)
{
    for (int i = 0; i < times; i++) {
        (void)kernel.event_post(server->bell);
    }
}

static void set_size(const struct false_server *server, uint32_t size)
{
    atomic_store(&server->page->size, size);
    ring(server, 1);
}

static void answer_with_null_instead_of_memory(const struct false_server *server)
{
    const struct wire_frame frame = {.type = wire_descriptor, .conversation = server->frame.conversation};
    uint8_t bytes[wire_header_size];
    int null = open("/dev/null", O_RDONLY);

    wire_encode(&frame, bytes);
    attacker_send(server->channel, bytes, sizeof bytes, &null, 1);
}

static void answer_in_page(const struct false_server *server, enum page_lie lie)
{
    struct wire_frame reply = honest_reply(server);

    switch (lie) {
    case lie_size_above_room:
        set_size(server, reply_page_room + 1);
        return;
    case lie_size_of_all:
        set_size(server, UINT32_MAX);
        return;
    case lie_size_short:
        set_size(server, wire_header_size - 1);
        return;
    case lie_garbage:
        memset(server->page->packet, 0xA5, reply_page_room);
        set_size(server, reply_page_room);
        return;
    case lie_conversation:
        reply.conversation--; /* the reply before, once more */
        break;
    case lie_message:
        reply.message_id++;
        break;
    case lie_type:
        reply = (struct wire_frame){.type = wire_ack, .length = 5};
        break;
    case lie_length:
        reply.flags = wire_kept;
        reply.length = 100; /* and no data */
        break;
    case lie_arena:
        reply.flags = wire_kept | wire_in_arena;
        reply.length = 4096;
        break;
    case lie_memory:
        reply.flags = wire_kept | wire_in_memory;
        reply.length = 70000;
        break;
    case lie_new_descriptor:
        reply = (struct wire_frame){.type = wire_descriptor, .conversation = server->frame.conversation};
        break;
    case truth_in_a_storm:
        ring(server, 20000);
        break;
    case lie_none:
    case lie_count:
        break;
    case endless_storm:
        for (;;) {
            ring(server, 1000);
        }
    }
    (void)reply_page_put(server->page, server->bell, &reply, NULL);
    if (lie == lie_memory) {
        answer_with_null_instead_of_memory(server);
    }
    if (lie == truth_in_a_storm) {
        ring(server, 20000);
    }
}

enum { message_honest = 5, message_false = 6 };

/* Who has a page and asks for a lie gets it. */
static void serve_falsely(int lie)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct false_server server = {.own = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/victim.sock", port_probe_names());
    (void)bind(server.own, (struct sockaddr *)&address, sizeof address);
    (void)kill(getppid(), SIGUSR1);
    for (;;) {
        take_packet(&server);
        if (server.frame.type == wire_request && server.page) {
            answer_in_page(&server, server.frame.message_id == message_false ? (enum page_lie)lie : lie_none);
        } else if (server.frame.type == wire_request) {
            answer_in_packet(&server);
        }
    }
}

/* Starts such a server and asks it until it has the page, and the channel has been waited for with it. */
static CFMessagePortRef connect_to_false_server(int lie, pid_t *ret_pid)
{
    sigset_t wanted;
    CFMessagePortRef remote;
    int got;

    (void)sigemptyset(&wanted);
    (void)sigaddset(&wanted, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, &wanted, NULL);
    write_card();
    *ret_pid = fork();
    if (*ret_pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve_falsely(lie);
    }
    (void)sigwait(&wanted, &got);
    remote = port_connect(CFSTR("victim"));
    for (int i = 0; i < reply_page_after + 2; i++) {
        EXPECT_EQ(port_ask(remote, message_honest, NULL, NULL), kCFMessagePortSuccess);
    }
    return remote;
}

PORT_TEST(false_replies_in_a_page_are_no_replies, "241 H23 M11")
{
    for (int i = 0; i < 2 * lie_count; i++) {
        CFMessagePortRef port = CFMessagePortCreateLocal(NULL, CFSTR("another"), port_echo, NULL, NULL); /* makes the directory */
        CFMessagePortRef remote;
        CFDataRef reply = NULL;
        pid_t pid;

        remote = connect_to_false_server(i / 2, &pid);
        EXPECT_EQ(CFMessagePortSendRequest(remote, message_false, NULL, 5, test_patience_s(), i % 2 ? MODE : CFSTR("another mode"), &reply),
                  kCFMessagePortTransportError);
        EXPECT(reply == NULL);
        EXPECT_EQ(port_ask(remote, message_honest, NULL, NULL), kCFMessagePortSuccess); /* on a new channel, which has no page */
        CFRelease(remote);
        port_process_kill(pid);
        port_drop(port);
    }
}

PORT_TEST(a_storm_of_bells_hides_no_reply, "213 H23")
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, CFSTR("another"), port_echo, NULL, NULL);
    pid_t pid;
    CFMessagePortRef remote = connect_to_false_server(truth_in_a_storm, &pid);

    for (int i = 0; i < 5; i++) {
        EXPECT_EQ(CFMessagePortSendRequest(remote, message_false, NULL, 5, test_patience_s(), i % 2 ? MODE : CFSTR("another mode"), NULL),
                  kCFMessagePortSuccess);
    }
    CFRelease(remote);
    port_process_kill(pid);
    port_drop(port);
}

static int wait_that_always_finds(int set, struct kernel_event *events, int capacity, int64_t deadline_ns)
{
    int count = kernel_linux.set_wait(set, events, capacity, deadline_ns);

    /* As if the storm left no moment without a bell. */
    return count == 0 && capacity > 1 ? kernel_linux.set_wait(set, events, capacity, kernel_never) : count;
}

PORT_TEST(a_storm_of_bells_does_not_put_off_a_timeout, "228 233 H23")
{
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, CFSTR("another"), port_echo, NULL, NULL);
    pid_t pid;
    CFMessagePortRef remote = connect_to_false_server(endless_storm, &pid);
    double begun = port_probe_now();

    kernel.set_wait = wait_that_always_finds;
    EXPECT_EQ(CFMessagePortSendRequest(remote, message_false, NULL, 5, 0.05, MODE, NULL), kCFMessagePortReceiveTimeout);
    kernel.set_wait = kernel_linux.set_wait;
    EXPECT(port_probe_now() - begun >= 0.05);
    EXPECT(port_probe_now() - begun < 0.5 * test_patience_s());
    CFRelease(remote);
    port_process_kill(pid);
    port_drop(port);
}
