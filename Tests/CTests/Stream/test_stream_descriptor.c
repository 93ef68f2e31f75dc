/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the program's descriptors that are no sockets: rules 313, 323, 325 and 327. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "Loop/loop_probe.h"
#include "Stream/stream_recorder.h"

/* A pipe with a stream at one end. */
struct piped {
    CFReadStreamRef reader; /* of ends[0], or NULL */
    CFWriteStreamRef writer; /* of ends[1], or NULL */
    int ends[2];
};

static void open_pipe(struct piped *piped, int flags, bool is_read, bool closes)
{
    *piped = (struct piped){0};
    REQUIRE(pipe2(piped->ends, O_CLOEXEC | flags) == 0);
    if (is_read) {
        piped->reader = CRLReadStreamCreateWithDescriptor(NULL, piped->ends[0], closes);
    } else {
        piped->writer = CRLWriteStreamCreateWithDescriptor(NULL, piped->ends[1], closes);
    }
}

TEST(a_child_s_output_is_read_from_its_pipe_until_it_ends, "313 321 325")
{
    struct stream_recorder recorder = {.reads = 100};
    struct piped piped;
    pid_t child;

    open_pipe(&piped, 0, true, true);
    recorder_add_reader(&recorder, piped.reader);
    EXPECT(CFReadStreamOpen(piped.reader));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open");
    EXPECT(!CFReadStreamHasBytesAvailable(piped.reader));
    child = fork();
    if (child == 0) {
        (void)!write(piped.ends[1], "hello", 5);
        _exit(0);
    }
    close(piped.ends[1]);
    run_until_count(&recorder.ends, 1);
    EXPECT_TRACE(&recorder.trace, "open bytes 5\"hello\" end");
    EXPECT_EQ(CFReadStreamGetStatus(piped.reader), kCFStreamStatusAtEnd);
    EXPECT_EQ(waitpid(child, NULL, 0), child);
    CFReadStreamClose(piped.reader);
    EXPECT(!descriptor_is_open(piped.ends[0]));
    CFRelease(piped.reader);
}

TEST(a_descriptor_is_closed_by_its_stream_if_that_was_asked_for, "325")
{
    for (int closes = 0; closes < 2; closes++) {
        for (int opens = 0; opens < 2; opens++) {
            struct piped piped;

            open_pipe(&piped, 0, false, closes);
            EXPECT_EQ(opens ? CFWriteStreamOpen(piped.writer) : true, true);
            CFRelease(piped.writer);
            EXPECT_EQ(descriptor_is_open(piped.ends[1]), !closes);
            close(piped.ends[0]);
            if (!closes) {
                close(piped.ends[1]);
            }
        }
    }
}

static void expect_bad_descriptor(int descriptor, bool is_read)
{
    if (is_read) {
        CFReadStreamRef stream = CRLReadStreamCreateWithDescriptor(NULL, descriptor, true);

        EXPECT(!CFReadStreamOpen(stream));
        EXPECT_ERRNO(CFReadStreamGetError(stream), EBADF);
        CFRelease(stream);
    } else {
        CFWriteStreamRef stream = CRLWriteStreamCreateWithDescriptor(NULL, descriptor, true);

        EXPECT(!CFWriteStreamOpen(stream));
        EXPECT_ERRNO(CFWriteStreamGetError(stream), EBADF);
        CFRelease(stream);
    }
}

TEST(a_descriptor_that_is_not_open_for_what_its_stream_does_is_refused, "325 307")
{
    int ends[2];

    for (int is_read = 0; is_read < 2; is_read++) {
        expect_bad_descriptor(-1, is_read);
        expect_bad_descriptor(INT_MIN, is_read);
        expect_bad_descriptor(INT_MAX, is_read);
        REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
        expect_bad_descriptor(ends[is_read], is_read); /* the wrong end */
        EXPECT(!descriptor_is_open(ends[is_read]));
        close(ends[!is_read]);
        expect_bad_descriptor(ends[0], is_read);
    }
}

static void write_later(void *context)
{
    const struct piped *piped = context;

    EXPECT_EQ(write(piped->ends[1], "late", 4), 4);
}

/* The mode belongs to all who have the pipe, such as the parent's terminal. Reading waits in either. */
TEST(a_descriptor_stays_in_its_mode, "323 325")
{
    static const int modes[] = {0, O_NONBLOCK};

    for (int i = 0; i < 2; i++) {
        struct trace trace = {0};
        struct probe_thread thread;
        struct piped piped;

        open_pipe(&piped, modes[i], true, true);
        EXPECT(CFReadStreamOpen(piped.reader));
        probe_thread_start(&thread, write_later, &piped);
        note_read(&trace, piped.reader, 2);
        note_read(&trace, piped.reader, 9);
        EXPECT_TRACE(&trace, "2\"la\" 2\"te\"");
        EXPECT_EQ(fcntl(piped.ends[0], F_GETFL) & O_NONBLOCK, modes[i]);
        probe_thread_join(&thread);
        CFRelease(piped.reader);
        close(piped.ends[1]);
    }
}

static void write_much(struct stream_recorder *recorder, CFTypeRef stream, CFStreamEventType type)
{
    static UInt8 bytes[1 << 20];

    if (type == kCFStreamEventCanAcceptBytes) {
        CFIndex taken = CFWriteStreamWrite((CFWriteStreamRef)(uintptr_t)stream, bytes, sizeof bytes);

        REQUIRE(taken > 0);
        recorder->total += taken;
    }
}

/*
 * Without a limit, a write to a pipe that waits would wait until the reader has taken all of it. A pipe is full when each of its pages has
 * something in it: the last of them the 4096 bytes of a write.
 */
TEST(a_pipe_that_nobody_reads_holds_up_no_loop, "312 323")
{
    static const int modes[] = {0, O_NONBLOCK};
    static UInt8 bytes[65536];
    const int page = (int)sysconf(_SC_PAGESIZE);

    for (int i = 0; i < 2; i++) {
        struct stream_recorder recorder = {.action = write_much};
        struct piped piped;
        long before;

        open_pipe(&piped, modes[i], false, true);
        EXPECT_EQ(fcntl(piped.ends[1], F_SETPIPE_SZ, 16 * page), 16 * page);
        recorder_add_writer(&recorder, piped.writer);
        EXPECT(CFWriteStreamOpen(piped.writer));
        run_what_is_ready();
        EXPECT_EQ(recorder.total, 15 * page + 4096);
        EXPECT(!CFWriteStreamCanAcceptBytes(piped.writer));
        before = recorder.total;
        EXPECT_EQ(read(piped.ends[0], bytes, (size_t)page), page);
        run_what_is_ready();
        EXPECT_EQ(recorder.total, before + page);
        EXPECT_EQ(fcntl(piped.ends[1], F_GETFL) & O_NONBLOCK, modes[i]);
        CFRelease(piped.writer);
        close(piped.ends[0]);
    }
}

static bool pipe_signal_is_pending(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE);
}

TEST(a_pipe_that_nobody_reads_any_more_is_an_error_without_a_signal, "327")
{
    sigset_t pipe_signal;
    sigset_t mask;

    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    for (int was_pending = 0; was_pending < 2; was_pending++) {
        struct piped piped;

        if (was_pending) { /* what the program waits for stays its own */
            pthread_sigmask(SIG_BLOCK, &pipe_signal, NULL);
            raise(SIGPIPE);
        }
        open_pipe(&piped, 0, false, true);
        EXPECT(CFWriteStreamOpen(piped.writer));
        EXPECT_EQ(write_text(piped.writer, "a"), 1);
        close(piped.ends[0]);
        EXPECT_EQ(write_text(piped.writer, "b"), -1);
        EXPECT_ERRNO(CFWriteStreamGetError(piped.writer), EPIPE);
        EXPECT_EQ(pipe_signal_is_pending(), was_pending);
        pthread_sigmask(SIG_BLOCK, NULL, &mask);
        EXPECT_EQ(sigismember(&mask, SIGPIPE), was_pending);
        CFRelease(piped.writer);
    }
}

TEST(a_terminal_has_streams_for_both_directions, "325 313")
{
    struct stream_recorder reading = {.reads = 100};
    struct stream_recorder writing = {.writes = "yes\n"};
    struct termios raw;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    int other = terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0 ? open(ptsname(terminal), O_RDWR | O_NOCTTY) : -1;
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    char bytes[8];

    if (other < 0) {
        SKIP("there are no terminals");
    }
    REQUIRE(tcgetattr(other, &raw) == 0);
    cfmakeraw(&raw);
    REQUIRE(tcsetattr(other, TCSANOW, &raw) == 0);
    reader = CRLReadStreamCreateWithDescriptor(NULL, terminal, false);
    writer = CRLWriteStreamCreateWithDescriptor(NULL, terminal, true);
    recorder_add_reader(&reading, reader);
    recorder_add_writer(&writing, writer);
    EXPECT(CFReadStreamOpen(reader) && CFWriteStreamOpen(writer));
    run_until_count(&writing.calls, 2);
    EXPECT_EQ(read(other, bytes, sizeof bytes), 4);
    EXPECT_EQ(write(other, "no", 2), 2);
    run_until_count(&reading.calls, 2);
    EXPECT_TRACE(&reading.trace, "open bytes 2\"no\"");
    close(other);
    run_until_count(&reading.ends, 1);
    CFReadStreamClose(reader);
    EXPECT(descriptor_is_open(terminal));
    CFRelease(writer);
    EXPECT(!descriptor_is_open(terminal));
    CFRelease(reader);
}

TEST(a_descriptor_of_a_file_is_read_from_its_place, "307 308 325")
{
    struct stream_recorder recorder = {.reads = 100};
    char path[] = "/tmp/crl-descriptor-XXXXXX";
    int file = mkstemp(path);
    CFReadStreamRef stream;

    REQUIRE(file >= 0 && unlink(path) == 0);
    EXPECT_EQ(write(file, "abcdef", 6), 6);
    EXPECT_EQ(lseek(file, 2, SEEK_SET), 2);
    stream = CRLReadStreamCreateWithDescriptor(NULL, file, true);
    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes 4\"cdef\" bytes 0 end");
    CFRelease(stream);
    stream = CRLReadStreamCreateWithDescriptor(NULL, open("/dev/null", O_RDONLY | O_CLOEXEC), true);
    recorder = (struct stream_recorder){.reads = 100};
    recorder_add_reader(&recorder, stream);
    EXPECT(CFReadStreamOpen(stream));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "open bytes 0 end");
    CFRelease(stream);
}
