/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks at random moments while eight threads use values, loops, timers, ports and streams without a pause; the child uses all of
 * these. A child that hangs is told by what it was doing. `make soak-stress` forks 1,000 times.
 */
#define _GNU_SOURCE
#include <bsd/stdlib.h>
#include <libintl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "CFNetwork/CFHost.h"
#include "CRLRunLoop.h"
#include "Loop/loop_probe.h"
#include "Port/port_probe.h"

/* ---- what is used ---- */

static bool text_is(CFStringRef text, CFStringRef expected)
{
    bool is_equal = text && CFEqual(text, expected);

    if (text) {
        CFRelease(text);
    }
    return is_equal;
}

static bool described(CFTypeRef object)
{
    CFStringRef words = CFCopyDescription(object);
    bool has_words = words && CFStringGetLength(words) > 0;

    if (words) {
        CFRelease(words);
    }
    CFRelease(object);
    return has_words;
}

static bool formats(void)
{
    return text_is(CFStringCreateWithFormat(NULL, NULL, CFSTR("%d %g %x %p"), 5, 2.5, 255, NULL), CFSTR("5 2.5 ff 0x0"));
}

static bool parses(void)
{
    return CFStringGetDoubleValue(CFSTR(" 2.5e3")) == 2500 && CFStringGetIntValue(CFSTR("17")) == 17;
}

static bool folds(void)
{
    const UniChar capital = 0xC9;
    const UniChar small = 0xE9;
    CFStringRef one = CFStringCreateWithCharacters(NULL, &capital, 1);
    CFStringRef other = CFStringCreateWithCharacters(NULL, &small, 1);
    bool is_same = CFStringCompare(one, other, kCFCompareCaseInsensitive) == kCFCompareEqualTo;

    CFRelease(one);
    CFRelease(other);
    return is_same;
}

static bool dates(void)
{
    return described(CFDateCreate(NULL, CFAbsoluteTimeGetCurrent()));
}

static bool errors(void)
{
    CFErrorRef error = CFErrorCreate(NULL, kCFErrorDomainPOSIX, 2, NULL);
    bool has_text = text_is(CFErrorCopyFailureReason(error), CFSTR("No such file or directory"));

    return described(error) && has_text;
}

static bool identifiers(void)
{
    return described(CFUUIDCreate(NULL));
}

static bool urls(void)
{
    return described(CFURLCreateWithBytes(NULL, (const UInt8 *)"http://h/a b", 12, kCFStringEncodingUTF8, NULL));
}

static bool collections(void)
{
    double value = 0.5;
    CFNumberRef number = CFNumberCreate(NULL, kCFNumberDoubleType, &value);
    CFMutableDictionaryRef pairs = CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);

    CFDictionarySetValue(pairs, CFSTR("key"), number);
    CFRelease(number);
    return described(pairs);
}

static void count(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    ++*(int *)info;
}

static bool timers(void)
{
    int calls = 0;
    CFRunLoopTimerContext context = {.info = &calls};
    CFRunLoopTimerRef timer = CFRunLoopTimerCreate(NULL, 0, 0, 0, 0, count, &context);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, CFSTR("fork"));
    CFRunLoopRunInMode(CFSTR("fork"), 0.0005, false);
    CFRelease(timer);
    return calls == 1;
}

static bool loops(void)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();

    CFRunLoopWakeUp(loop);
    CFRelease(CFRunLoopCopyAllModes(loop));
    CFRetain(loop);
    return described(loop);
}

static CFDataRef echo(CFMessagePortRef local, SInt32 message, CFDataRef data, void *info)
{
    (void)local, (void)message, (void)info;
    return data ? CFRetain(data) : NULL;
}

/* A port of a name of its own, asked by the same thread. */
static bool ports(void)
{
    CFUUIDRef uuid = CFUUIDCreate(NULL);
    CFStringRef name = CFUUIDCreateString(NULL, uuid);
    CFMessagePortRef local = CFMessagePortCreateLocal(NULL, name, echo, NULL, NULL);
    CFMessagePortRef remote = local ? CFMessagePortCreateRemote(NULL, name) : NULL;
    bool is_answered = false;

    if (remote) {
        CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, local, 0);
        CFDataRef sent = CFDataCreate(NULL, (const UInt8 *)"hello", 5);
        CFDataRef reply = NULL;

        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, CFSTR("fork"));
        is_answered = CFMessagePortSendRequest(remote, 1, sent, 10, 10, CFSTR("fork"), &reply) == kCFMessagePortSuccess && reply &&
                      CFEqual(reply, sent);
        if (reply) {
            CFRelease(reply);
        }
        CFRelease(sent);
        CFRelease(source);
        CFRelease(remote);
    }
    if (local) {
        CFMessagePortInvalidate(local);
        CFRelease(local);
    }
    CFRelease(name);
    CFRelease(uuid);
    return is_answered;
}

static bool streams(void)
{
    CFReadStreamRef reader;
    CFWriteStreamRef writer;
    UInt8 bytes[8];

    CFStreamCreateBoundPair(NULL, &reader, &writer, 16);
    bool is_carried = CFReadStreamOpen(reader) && CFWriteStreamOpen(writer) && CFWriteStreamWrite(writer, (const UInt8 *)"hello", 5) == 5 &&
                      CFReadStreamRead(reader, bytes, sizeof bytes) == 5;
    CFReadStreamClose(reader);
    CFWriteStreamClose(writer);
    CFRelease(writer);
    return described(reader) && is_carried;
}

static void take_socket(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    (void)socket, (void)type, (void)address;
    *(bool *)info = CFDataGetLength(data) == 5;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static bool sockets(void)
{
    int pair[2];
    bool is_heard = false;
    CFSocketContext context = {.info = &is_heard};

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return false;
    }
    CFSocketRef socket = CFSocketCreateWithNative(NULL, pair[0], kCFSocketDataCallBack, take_socket, &context);
    CFRunLoopSourceRef source = CFSocketCreateRunLoopSource(NULL, socket, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, CFSTR("fork"));
    (void)!write(pair[1], "hello", 5);
    CFRunLoopRunInMode(CFSTR("fork"), 10, false);
    CFSocketInvalidate(socket);
    close(pair[1]);
    CFRelease(source);
    return described(socket) && is_heard;
}

static void take_descriptor(CFFileDescriptorRef descriptor, CFOptionFlags types, void *info)
{
    (void)descriptor;
    *(bool *)info = types == kCFFileDescriptorReadCallBack;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static bool descriptors(void)
{
    bool is_heard = false;
    CFFileDescriptorContext context = {.info = &is_heard};
    CFFileDescriptorRef descriptor = CFFileDescriptorCreate(NULL, probe_event(), true, take_descriptor, &context);
    CFRunLoopSourceRef source = CFFileDescriptorCreateRunLoopSource(NULL, descriptor, 0);

    CFFileDescriptorEnableCallBacks(descriptor, kCFFileDescriptorReadCallBack);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, CFSTR("fork"));
    probe_event_post(CFFileDescriptorGetNativeDescriptor(descriptor));
    CFRunLoopRunInMode(CFSTR("fork"), 10, false);
    CFFileDescriptorInvalidate(descriptor);
    CFRelease(source);
    return described(descriptor) && is_heard;
}

static bool hosts(void)
{
    CFHostRef host = CFHostCreateWithName(NULL, CFSTR("127.0.0.1"));
    bool is_found = CFHostStartInfoResolution(host, kCFHostAddresses, NULL);

    return described(host) && is_found;
}

/* A file of the system's, through a stream of a URL. */
static bool files(void)
{
    CFURLRef url = CFURLCreateWithFileSystemPath(NULL, CFSTR("/proc/self/stat"), kCFURLPOSIXPathStyle, false);
    CFReadStreamRef reader = CFReadStreamCreateWithFile(NULL, url);
    UInt8 bytes[8];
    bool is_read = CFReadStreamOpen(reader) && CFReadStreamRead(reader, bytes, sizeof bytes) > 0;

    CFReadStreamClose(reader);
    CFRelease(reader);
    CFRelease(url);
    return is_read;
}

static const struct use {
    const char *name;
    bool (*function)(void);
} uses[] = {
    {"formats a number", formats},
    {"parses one", parses},
    {"compares letters", folds},
    {"describes a date", dates},
    {"describes an error", errors},
    {"makes a UUID", identifiers},
    {"makes a URL", urls},
    {"describes a dictionary", collections},
    {"runs a timer", timers},
    {"describes its loop", loops},
    {"asks a port", ports},
    {"writes into a stream", streams},
    {"reads a file", files},
    {"hears of a socket", sockets},
    {"hears of a descriptor", descriptors},
    {"asks for a host", hosts},
};
enum { use_count = sizeof uses / sizeof uses[0] };

/* ---- the threads and the children ---- */

/* In memory that the child shares. */
struct progress {
    _Atomic int use; /* the number of the last one that was begun, use_count when all have ended */
    _Atomic int failed; /* the number of one that did not work, or -1 */
};

static _Atomic bool threads_end;

/* Takes the locks of the C library that a program may hold, and uses everything. */
static void *use_everything(void *context)
{
    unsigned next = (unsigned)(uintptr_t)context;

    while (!threads_end) {
        time_t now = 0;
        struct tm parts;
        UInt8 bytes[16];

        EXPECT(uses[next++ % use_count].function());
        freelocale(newlocale(LC_ALL_MASK, "C.UTF-8", (locale_t)0));
        (void)localtime_r(&now, &parts);
        (void)textdomain("fork");
        arc4random_buf(bytes, sizeof bytes);
    }
    return NULL;
}

static void use_in_child(struct progress *progress)
{
    for (int i = 0; i < use_count; i++) {
        progress->use = i;
        if (!uses[i].function()) {
            progress->failed = i;
        }
    }
    progress->use = use_count;
}

static bool has_ended(pid_t child, double patience_s)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (double waited_s = 0; waited_s < patience_s; waited_s += 0.001) {
        if (waitpid(child, NULL, WNOHANG) == child) {
            return true;
        }
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Says what the child was doing if it does not end, or has not worked. */
static void expect_child_works(struct progress *progress)
{
    *progress = (struct progress){.failed = -1};
    pid_t child = fork();
    if (child == 0) {
        use_in_child(progress);
        _exit(0);
    }
    if (!has_ended(child, 4 * test_patience_s())) {
        test_failed(__FILE__, __LINE__, "the child of a fork hangs where it %s", uses[progress->use].name);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    } else if (progress->use < use_count) {
        test_failed(__FILE__, __LINE__, "the child of a fork has died where it %s", uses[progress->use].name);
    } else if (progress->failed >= 0) {
        test_failed(__FILE__, __LINE__, "in the child of a fork it does not work that it %s", uses[progress->failed].name);
    }
}

PORT_TEST_LIMIT(stress_fork_out_of_eight_threads_that_use_everything, "176 P2", 600)
{
    struct progress *progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rounds = test_is_soak() ? 1000 : 50;
    pthread_t threads[8];

    REQUIRE(progress != MAP_FAILED);
    if (test_is_instrumented()) {
        test_skip("the locks of a sanitizer stay taken in a child, too");
    }
    for (uintptr_t i = 0; i < 8; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, use_everything, (void *)i) == 0);
    }
    for (int i = 0; i < rounds; i++) {
        const struct timespec moment = {.tv_nsec = 1 + arc4random_uniform(3000000)};

        nanosleep(&moment, NULL);
        expect_child_works(progress);
    }
    threads_end = true;
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    munmap(progress, sizeof *progress);
}
