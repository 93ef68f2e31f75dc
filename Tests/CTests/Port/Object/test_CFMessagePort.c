/* SPDX-License-Identifier: Apache-2.0 */
/* Naming and lifetime of message ports: rules 189 to 210. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "Kernel/kernel.h"
#include "Kernel/Ports/kernel_ports.h"
#include "Port/Message/port_receive.h"
#include "Port/Core/message_port.h"
#include "Port/port_probe.h"

static struct trace events;

static const void *note_retain(const void *info)
{
    trace_add(&events, "retain");
    return info;
}

static void note_release(const void *info)
{
    (void)info;
    trace_add(&events, "release");
}

static void note_invalid(CFMessagePortRef port, void *info)
{
    trace_addf(&events, "invalid(%s,%s)", CFMessagePortIsValid(port) ? "valid" : "not valid", info ? "info" : "null");
}

static CFMessagePortRef local(CFStringRef name)
{
    return CFMessagePortCreateLocal(NULL, name, port_echo, NULL, NULL);
}

PORT_TEST_BOTH_WAYS(a_local_port_retains_its_info_once, "189 194")
{
    CFMessagePortContext context = {0, &events, note_retain, note_release, NULL};
    CFMessagePortContext found = {0, NULL, NULL, NULL, NULL};
    Boolean should_free = true;
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_echo, &context, &should_free);

    REQUIRE(port != NULL);
    context.info = NULL; /* copied */
    EXPECT(!should_free);
    EXPECT_TRACE(&events, "retain");
    CFMessagePortGetContext(port, &found);
    EXPECT_EQ(found.info, &events);
    EXPECT(CFMessagePortIsValid(port));
    EXPECT_EQ(CFGetTypeID(port), CFMessagePortGetTypeID());
    CFMessagePortInvalidate(port);
    EXPECT_TRACE(&events, "retain release");
    CFMessagePortGetContext(port, &found);
    EXPECT_EQ(found.info, NULL);
    CFRelease(port);
}

/* Finds the port that another thread is making, and makes it invalid. */
static void *ends_what_is_being_made(void *unused)
{
    CFMessagePortRef port = local(NAME);

    (void)unused;
    CFMessagePortInvalidate(port);
    EXPECT(!CFMessagePortIsValid(port));
    CFRelease(port);
    return NULL;
}

static const void *retain_while_another_thread_ends_the_port(const void *info)
{
    pthread_t thread;

    REQUIRE(pthread_create(&thread, NULL, ends_what_is_being_made, NULL) == 0);
    (void)pthread_join(thread, NULL);
    return note_retain(info);
}

PORT_TEST_BOTH_WAYS(the_info_of_a_port_that_ends_while_it_is_retained_is_released_after_that, "189 194 203")
{
    CFMessagePortContext context = {0, &events, retain_while_another_thread_ends_the_port, note_release, NULL};
    Boolean should_free = true;
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_echo, &context, &should_free);

    REQUIRE(port != NULL);
    EXPECT(!should_free);
    EXPECT(!CFMessagePortIsValid(port));
    EXPECT_TRACE(&events, "retain release");
    CFRelease(port);
    EXPECT_TRACE(&events, "retain release");
}

static atomic_int references;

static const void *take_reference(const void *info)
{
    atomic_fetch_add(&references, 1);
    return info;
}

static void give_reference(const void *info)
{
    (void)info;
    EXPECT(atomic_fetch_sub(&references, 1) > 0);
}

static void *makes_and_ends(void *barrier)
{
    CFMessagePortContext context = {0, &references, take_reference, give_reference, NULL};

    for (int i = 0; i < 200; i++) {
        CFMessagePortRef port;

        (void)pthread_barrier_wait(barrier);
        port = CFMessagePortCreateLocal(NULL, NAME, port_echo, &context, NULL);
        if (port) { /* the name of one that is ending may not be free yet */
            port_drop(port);
        }
    }
    return NULL;
}

PORT_TEST(threads_that_make_and_end_one_port_give_back_what_was_taken, "189 194 203")
{
    pthread_barrier_t barrier;
    pthread_t thread;

    (void)pthread_barrier_init(&barrier, NULL, 2);
    REQUIRE(pthread_create(&thread, NULL, makes_and_ends, &barrier) == 0);
    makes_and_ends(&barrier);
    (void)pthread_join(thread, NULL);
    (void)pthread_barrier_destroy(&barrier);
    EXPECT_EQ(references, 0);
}

PORT_TEST_BOTH_WAYS(a_port_without_a_name_cannot_be_reached_until_it_is_named, "190 198 199")
{
    struct trace seen = {0};
    CFMessagePortRef port = port_open(NULL, port_note, &seen, MODE);
    CFMessagePortRef remote;
    CFDataRef data = port_data("x");

    EXPECT_EQ(CFMessagePortGetName(port), NULL);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunTimedOut);
    EXPECT(CFMessagePortSetName(port, NAME));
    EXPECT(CFEqual(CFMessagePortGetName(port), NAME));
    remote = CFMessagePortCreateRemote(NULL, NAME);
    REQUIRE(remote != NULL);
    EXPECT_EQ(port_tell(remote, 1, data), kCFMessagePortSuccess);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&seen, "1:x");
    CFRelease(data);
    CFRelease(remote);
    port_drop(port);
}

PORT_TEST_BOTH_WAYS(names_are_cut_at_128_bytes_and_a_zero_is_refused, "191 M18 M19")
{
    static const UniChar with_zero[] = {'a', 0, 'b'};
    static const UniChar half_a_pair[] = {'a', 0xD800};
    char longer[140];
    Boolean should_free = false;
    CFStringRef zero = CFStringCreateWithCharacters(NULL, with_zero, 3);
    CFStringRef broken = CFStringCreateWithCharacters(NULL, half_a_pair, 2);
    CFStringRef one, other;
    CFMessagePortRef port, same;

    EXPECT_EQ(CFMessagePortCreateLocal(NULL, zero, port_echo, NULL, &should_free), NULL);
    EXPECT(should_free);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, zero), NULL);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NULL), NULL);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, broken), NULL);
    EXPECT_EQ(local(CFSTR("")), NULL);
    /* 127 bytes and a character of two: cut before it. */
    memset(longer, 'n', 127);
    strcpy(longer + 127, "\xC3\xA9 and more");
    one = CFStringCreateWithCString(NULL, longer, kCFStringEncodingUTF8);
    longer[127] = '\0';
    other = CFStringCreateWithCString(NULL, longer, kCFStringEncodingUTF8);
    port = local(one);
    same = local(other);
    REQUIRE(port != NULL);
    EXPECT_EQ(port, same);
    EXPECT(CFEqual(CFMessagePortGetName(port), other));
    EXPECT(!CFMessagePortSetName(port, zero));
    CFRelease(same);
    port_drop(port);
    /* Composed and decomposed, small and large are different names. */
    port = local(CFSTR("caf\xC3\xA9"));
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, CFSTR("cafe\xCC\x81")), NULL);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, CFSTR("CAF\xC3\xA9")), NULL);
    port_drop(port);
    CFRelease(one);
    CFRelease(other);
    CFRelease(zero);
    CFRelease(broken);
}

PORT_TEST_BOTH_WAYS(names_may_have_slashes_and_dots, "191")
{
    static const char *const odd[] = {"/",
                                      "..",
                                      ".",
                                      "../../etc/passwd",
                                      "a/b",
                                      "%2F",
                                      "~",
                                      ".sweep",
                                      "a.lock",
                                      "a b\n",
                                      "\x01",
                                      "-",
                                      "com.example.a-quite-long-name-that-does-not-fit-into-the-leaf-of-a-file-because-of-its-length"};
    enum { count = sizeof odd / sizeof odd[0] };
    CFMessagePortRef ports[count];
    CFMessagePortRef remotes[count];

    for (int i = 0; i < count; i++) {
        CFStringRef name = CFStringCreateWithCString(NULL, odd[i], kCFStringEncodingUTF8);

        ports[i] = local(name);
        remotes[i] = CFMessagePortCreateRemote(NULL, name);
        EXPECT(ports[i] && remotes[i]);
        CFRelease(name);
    }
    EXPECT_EQ(port_probe_count_files(), 2 * count);
    for (int i = 0; i < count; i++) {
        CFRelease(remotes[i]);
        port_drop(ports[i]);
    }
    EXPECT_EQ(port_probe_count_files(), 0);
}

PORT_TEST_BOTH_WAYS(the_same_name_in_one_process_is_the_same_port, "192 194")
{
    CFMessagePortContext context = {0, &events, note_retain, note_release, NULL};
    Boolean should_free = false;
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, NULL);
    CFMessagePortRef same = CFMessagePortCreateLocal(NULL, NAME, port_note, &context, &should_free);

    EXPECT_EQ(port, same);
    EXPECT(should_free);
    EXPECT_TRACE(&events, "");
    CFRelease(same);
    CFMessagePortInvalidate(port);
    same = CFMessagePortCreateLocal(NULL, NAME, port_note, NULL, &should_free);
    EXPECT(same && same != port && !should_free);
    CFRelease(port);
    port_drop(same);
}

PORT_TEST_BOTH_WAYS(a_name_of_another_process_cannot_be_had, "193 H18")
{
    pid_t owner = port_process_start(NAME, port_silence, NULL, NULL);
    double took = 1;

    for (int attempt = 0; attempt < 4 && took >= 0.05; attempt++) { /* a machine that does other things too may be late */
        Boolean should_free = false;
        double begun = port_probe_own_time();

        EXPECT_EQ(CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, &should_free), NULL);
        EXPECT(should_free);
        took = port_probe_own_time() - begun;
    }
    EXPECT(took < 0.05 || test_is_instrumented());
    port_process_kill(owner);
}

PORT_TEST_BOTH_WAYS(a_name_is_free_when_its_port_is_invalid_freed_or_dead, "195 206 M3")
{
    CFMessagePortRef port = local(NAME);
    pid_t owner;

    port_drop(port);
    EXPECT_EQ(port_probe_count_files(), 0);
    port = local(NAME);
    REQUIRE(port != NULL);
    CFRelease(port);
    owner = port_process_start(NAME, port_silence, NULL, NULL);
    EXPECT_EQ(local(NAME), NULL);
    port_process_kill(owner);
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
    port = local(NAME);
    REQUIRE(port != NULL);
    port_drop(port);
    EXPECT_EQ(port_probe_count_files(), 0);
}

PORT_TEST_BOTH_WAYS(remotes_of_one_name_are_one_object, "196 208")
{
    CFMessagePortRef port, one, other;

    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
    port = local(NAME);
    one = CFMessagePortCreateRemote(NULL, NAME);
    other = CFMessagePortCreateRemote(NULL, NAME);
    REQUIRE(one != NULL);
    EXPECT_EQ(one, other);
    EXPECT(one != port);
    EXPECT(CFMessagePortIsRemote(one));
    EXPECT(!CFMessagePortIsRemote(port));
    CFRelease(other);
    port_drop(port);
    port = local(NAME);
    other = CFMessagePortCreateRemote(NULL, NAME);
    EXPECT(other && other != one && CFMessagePortIsValid(other));
    EXPECT(!CFMessagePortIsValid(one));
    CFRelease(one);
    CFRelease(other);
    port_drop(port);
}

PORT_TEST_BOTH_WAYS(a_thread_reaches_a_port_of_its_own_process, "197")
{
    struct port_thread server;
    CFDataRef data = port_data("hello");
    CFDataRef reply = NULL;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    remote = CFMessagePortCreateRemote(NULL, NAME);
    REQUIRE(remote != NULL);
    EXPECT_EQ(port_ask(remote, 7, data, &reply), kCFMessagePortSuccess);
    EXPECT(port_data_is(reply, "hello"));
    CFRelease(reply);
    CFRelease(data);
    CFRelease(remote);
    port_thread_stop(&server);
}

PORT_TEST_BOTH_WAYS(renaming_gives_up_the_old_name, "199 200 207")
{
    struct trace seen = {0};
    CFMessagePortRef port = port_open(NAME, port_note, &seen, MODE);
    CFMessagePortRef other = local(CFSTR("other"));
    CFMessagePortRef old = CFMessagePortCreateRemote(NULL, NAME);
    CFMessagePortRef remote;
    CFDataRef data = port_data("x");

    EXPECT(!CFMessagePortSetName(port, NAME));
    EXPECT(!CFMessagePortSetName(port, CFSTR("other")));
    EXPECT(!CFMessagePortSetName(port, NULL));
    EXPECT(!CFMessagePortSetName(old, CFSTR("new")));
    EXPECT(CFMessagePortSetName(port, CFSTR("new")));
    EXPECT(CFMessagePortIsValid(port));
    EXPECT(CFEqual(CFMessagePortGetName(port), CFSTR("new")));
    EXPECT_EQ(CFMessagePortCreateRemote(NULL, NAME), NULL);
    EXPECT(!CFMessagePortIsValid(old));
    remote = CFMessagePortCreateRemote(NULL, CFSTR("new"));
    REQUIRE(remote != NULL);
    EXPECT_EQ(port_tell(remote, 1, data), kCFMessagePortSuccess);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&seen, "1:x");
    CFRelease(data);
    CFRelease(old);
    CFRelease(remote);
    port_drop(other);
    port_drop(port);
    EXPECT(port_probe_count_files() == 0);
}

PORT_TEST_BOTH_WAYS(a_sleeping_loop_notices_that_its_port_was_renamed, "200 209")
{
    struct port_thread server;
    CFDataRef data = port_data("x");
    CFDataRef reply = NULL;
    CFMessagePortRef remote;

    port_thread_start(&server, NAME, port_echo, NULL);
    EXPECT(CFMessagePortSetName(server.port, CFSTR("new")));
    remote = CFMessagePortCreateRemote(NULL, CFSTR("new"));
    REQUIRE(remote != NULL);
    EXPECT_EQ(port_ask(remote, 7, data, &reply), kCFMessagePortSuccess);
    CFRelease(reply);
    CFRelease(data);
    CFRelease(remote);
    port_thread_stop(&server);
}

static CFMessagePortRef renamed_port;
static int to_client = -1;
static int from_client = -1;

/* What a loop on another thread does while the port's old name is being given up: it takes what a client of the new name has sent. */
static int receive_and_unlink(int directory, const char *leaf)
{
    struct pollfd answer = {.fd = from_client, .events = POLLIN};

    kernel_ports.file_unlink = kernel_ports_linux.file_unlink;
    REQUIRE(write(to_client, "g", 1) == 1);
    while (poll(&answer, 1, 1) == 0) {
        local_port_receive(renamed_port);
    }
    return kernel_ports_linux.file_unlink(directory, leaf);
}

static int replace_and_wait_for_unlink(int from, int number)
{
    kernel_ports.file_unlink = receive_and_unlink;
    return kernel_ports_linux.replace(from, number);
}

static pid_t start_client_of(CFStringRef name)
{
    int go[2];
    int result[2];
    pid_t pid;

    REQUIRE(pipe(go) == 0 && pipe(result) == 0);
    pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        CFMessagePortRef remote;
        char byte;

        (void)!read(go[0], &byte, 1);
        remote = CFMessagePortCreateRemote(NULL, name);
        byte = (char)(remote ? port_ask(remote, 1, NULL, NULL) : 1);
        (void)!write(result[1], &byte, 1);
        _exit(0);
    }
    (void)close(go[0]);
    (void)close(result[1]);
    to_client = go[1];
    from_client = result[0];
    return pid;
}

PORT_TEST(a_message_to_the_new_name_is_taken_as_soon_as_it_is_there, "199 200")
{
    char result = 1;
    pid_t client;

    renamed_port = local(NAME);
    client = start_client_of(CFSTR("new"));
    kernel_ports.replace = replace_and_wait_for_unlink;
    EXPECT(CFMessagePortSetName(renamed_port, CFSTR("new")));
    EXPECT(read(from_client, &result, 1) == 1);
    EXPECT_EQ(result, kCFMessagePortSuccess);
    waitpid(client, NULL, 0);
    (void)close(to_client);
    (void)close(from_client);
    port_drop(renamed_port);
}

/* Another thread ends the port while it gives up its old local queue. */
static int end_and_wake(_Atomic uint32_t *word)
{
    kernel.futex_wake = kernel_linux.futex_wake;
    CFMessagePortInvalidate(renamed_port);
    return kernel_linux.futex_wake(word);
}

static void end_while_it_is_renamed(void)
{
    renamed_port = local(NAME);
    kernel.futex_wake = end_and_wake;
    (void)CFMessagePortSetName(renamed_port, CFSTR("new"));
    EXPECT(!CFMessagePortIsValid(renamed_port));
    EXPECT(!link_is_linked(&renamed_port->table_link)); /* nobody finds it when it is freed */
    CFRelease(renamed_port);
    port_drop(local(CFSTR("new")));
    port_drop(local(NAME));
    EXPECT_EQ(port_probe_count_files(), 0);
}

PORT_TEST_WAY(a_port_that_ends_while_it_is_renamed_is_found_no_more, "195 199 203", test_default_limit_s, end_while_it_is_renamed, false)

PORT_TEST_BOTH_WAYS(a_port_has_one_source, "201")
{
    CFMessagePortRef port = local(NAME);
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, NAME);
    CFRunLoopSourceRef source = CFMessagePortCreateRunLoopSource(NULL, port, 5);
    CFRunLoopSourceRef same = CFMessagePortCreateRunLoopSource(NULL, port, 9);
    CFRunLoopSourceContext1 context = {.version = 1};

    REQUIRE(source != NULL);
    EXPECT_EQ(source, same);
    EXPECT_EQ(CFRunLoopSourceGetOrder(source), 5);
    CFRunLoopSourceGetContext(source, (CFRunLoopSourceContext *)(void *)&context);
    EXPECT_EQ(context.version, 1);
    EXPECT_EQ(CFMessagePortCreateRunLoopSource(NULL, remote, 0), NULL);
    CFRelease(same);
    CFRunLoopSourceInvalidate(source);
    same = CFMessagePortCreateRunLoopSource(NULL, port, 9);
    EXPECT(same && same != source);
    CFRelease(same);
    CFRelease(source);
    CFMessagePortInvalidate(port);
    EXPECT_EQ(CFMessagePortCreateRunLoopSource(NULL, port, 0), NULL);
    CFRelease(remote);
    CFRelease(port);
}

PORT_TEST_BOTH_WAYS(source_and_port_keep_each_other, "202")
{
    struct trace seen = {0};
    CFMessagePortRef port = port_open(NAME, port_note, &seen, MODE);
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, NAME);
    CFMessagePortRef again;

    CFRelease(port); /* the source has it */
    EXPECT_EQ(port_tell(remote, 3, NULL), kCFMessagePortSuccess);
    EXPECT_EQ(CFRunLoopRunInMode(MODE, 0, true), kCFRunLoopRunHandledSource);
    EXPECT_TRACE(&seen, "3:");
    again = local(NAME);
    EXPECT_EQ(again, port);
    port_drop(again);
    CFRelease(remote);
}

static CFRunLoopSourceRef ordered_source;

static void note_order(CFMessagePortRef port, void *info)
{
    CFMessagePortRef found = CFMessagePortCreateRemote(NULL, NAME);

    (void)info;
    trace_addf(&events, "%s %s %s", CFMessagePortIsValid(port) ? "valid" : "not-valid", found ? "found" : "gone",
               CFRunLoopSourceIsValid(ordered_source) ? "source-valid" : "source-not-valid");
    if (found) {
        CFRelease(found);
    }
}

static void note_release_order(const void *info)
{
    (void)info;
    trace_addf(&events, "release %s", CFRunLoopSourceIsValid(ordered_source) ? "source-valid" : "source-not-valid");
}

PORT_TEST_BOTH_WAYS(invalidation_goes_in_its_order, "203 204")
{
    CFMessagePortContext context = {0, &events, NULL, note_release_order, NULL};
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_echo, &context, NULL);

    ordered_source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    EXPECT_EQ(CFMessagePortGetInvalidationCallBack(port), NULL);
    CFMessagePortSetInvalidationCallBack(port, note_order);
    EXPECT_EQ(CFMessagePortGetInvalidationCallBack(port), note_order);
    CFMessagePortInvalidate(port);
    CFMessagePortInvalidate(port);
    EXPECT_TRACE(&events, "not-valid gone source-valid release source-valid");
    EXPECT(!CFRunLoopSourceIsValid(ordered_source));
    CFRelease(ordered_source);
    CFRelease(port);
}

PORT_TEST_BOTH_WAYS(the_invalidation_callback_has_the_local_ports_info_and_nothing_for_a_remote, "204 205")
{
    CFMessagePortContext context = {0, &events, NULL, NULL, NULL};
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_echo, &context, NULL);
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, NAME);

    CFMessagePortSetInvalidationCallBack(port, note_invalid);
    CFMessagePortSetInvalidationCallBack(remote, note_invalid);
    CFMessagePortInvalidate(remote);
    EXPECT_TRACE(&events, "invalid(not valid,null)");
    trace_clear(&events);
    CFMessagePortInvalidate(port);
    EXPECT_TRACE(&events, "invalid(not valid,info)");
    trace_clear(&events);
    CFMessagePortSetInvalidationCallBack(port, note_invalid);
    EXPECT_TRACE(&events, "invalid(not valid,null)");
    CFMessagePortSetInvalidationCallBack(port, NULL);
    EXPECT_EQ(CFMessagePortGetInvalidationCallBack(port), NULL);
    CFRelease(remote);
    CFRelease(port);
}

PORT_TEST_BOTH_WAYS(freeing_a_valid_port_invalidates_it, "206")
{
    CFMessagePortContext context = {0, &events, NULL, note_release, NULL};
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, NAME, port_echo, &context, NULL);

    CFMessagePortSetInvalidationCallBack(port, note_invalid);
    CFRelease(port);
    EXPECT_TRACE(&events, "invalid(not valid,info) release");
}

static void never(CFRunLoopTimerRef timer, void *info)
{
    (void)timer, (void)info;
}

/* Runs the loop until it has performed one source. */
static void await_event(void)
{
    CFRunLoopTimerRef keeper = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + 3e9, 0, 0, 0, never, NULL);

    CFRunLoopAddTimer(CFRunLoopGetCurrent(), keeper, kCFRunLoopDefaultMode);
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, test_patience_s(), true);
    CFRunLoopTimerInvalidate(keeper);
    CFRelease(keeper);
}

PORT_TEST_BOTH_WAYS(remotes_notice_that_their_receiver_is_gone, "207 M1")
{
    CFMessagePortRef port = local(NAME);
    CFMessagePortRef remote = CFMessagePortCreateRemote(NULL, NAME);
    pid_t owner;

    CFMessagePortSetInvalidationCallBack(remote, note_invalid);
    EXPECT(CFMessagePortIsValid(remote));
    CFMessagePortInvalidate(port);
    EXPECT(!CFMessagePortIsValid(remote));
    EXPECT(!CFMessagePortIsValid(remote));
    EXPECT_TRACE(&events, ""); /* the callback is left to a loop */
    await_event();
    EXPECT_TRACE(&events, "invalid(not valid,null)");
    EXPECT_EQ(port_tell(remote, 0, NULL), kCFMessagePortIsInvalid);
    CFRelease(remote);
    CFRelease(port);

    owner = port_process_start(NAME, port_silence, NULL, NULL);
    remote = CFMessagePortCreateRemote(NULL, NAME);
    EXPECT(CFMessagePortIsValid(remote));
    port_process_kill(owner);
    EXPECT(!CFMessagePortIsValid(remote));
    EXPECT_EQ(port_ask(remote, 0, NULL, NULL), kCFMessagePortIsInvalid);
    CFRelease(remote);
    /* Found out by sending. */
    owner = port_process_start(NAME, port_silence, NULL, NULL);
    remote = CFMessagePortCreateRemote(NULL, NAME);
    port_process_kill(owner);
    EXPECT_EQ(port_ask(remote, 0, NULL, NULL), kCFMessagePortIsInvalid);
    EXPECT(!CFMessagePortIsValid(remote));
    EXPECT_EQ(port_ask(remote, 0, NULL, NULL), kCFMessagePortIsInvalid);
    CFRelease(remote);
}

static void *create_and_end(void *info)
{
    *(CFMessagePortRef *)info = CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, NULL);
    return NULL;
}

PORT_TEST_BOTH_WAYS(a_local_port_outlives_its_thread, "209")
{
    CFMessagePortRef port = NULL;
    CFRunLoopSourceRef source;
    CFMessagePortRef remote;
    CFDataRef reply = NULL;
    pthread_t thread;

    pthread_create(&thread, NULL, create_and_end, &port);
    pthread_join(thread, NULL);
    REQUIRE(port != NULL);
    source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, MODE);
    CFRelease(source);
    remote = CFMessagePortCreateRemote(NULL, NAME);
    EXPECT_EQ(port_ask(remote, 1, NULL, &reply), kCFMessagePortSuccess);
    CFRelease(reply);
    CFRelease(remote);
    port_drop(port);
}

static atomic_int handled;

static CFDataRef count(CFMessagePortRef port, SInt32 message_id, CFDataRef data, void *info)
{
    (void)port;
    (void)data;
    (void)info;
    atomic_fetch_add(&handled, 1);
    return message_id < 0 ? NULL : CFRetain(data);
}

PORT_TEST_BOTH_WAYS(a_source_in_several_loops_handles_each_message_once, "209")
{
    enum { messages = 2000 };
    struct port_thread one, two;
    CFRunLoopSourceRef source;
    CFMessagePortRef remote;

    port_thread_start(&one, NAME, count, NULL);
    port_thread_start(&two, CFSTR("second"), count, NULL);
    source = CFMessagePortCreateRunLoopSource(NULL, one.port, 0);
    CFRunLoopAddSource(two.loop, source, kCFRunLoopDefaultMode);
    CFRelease(source);
    remote = CFMessagePortCreateRemote(NULL, NAME);
    for (int i = 0; i < messages; i++) {
        REQUIRE((i % 3 ? port_tell(remote, i, NULL) : port_ask(remote, i, NULL, NULL)) == kCFMessagePortSuccess);
    }
    REQUIRE(port_ask(remote, 0, NULL, NULL) == kCFMessagePortSuccess);
    CFRelease(remote);
    /* Its owner last, which invalidates the port: the other may still be about to handle the last message, which only a valid port does. */
    port_thread_stop(&two);
    port_thread_stop(&one);
    EXPECT_EQ(atomic_load(&handled), messages + 1);
}

/* In a child with another user's rights. */
static int try_as_other_user(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char planted[256];
    CFMessagePortRef port;

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/a%%20port.sock", port_probe_names());
    (void)snprintf(planted, sizeof planted, "%s/squatted.lock", port_probe_names());
    if (setgid(65534) != 0 || setuid(65534) != 0) {
        return 2;
    }
    if (connect(socket(AF_UNIX, SOCK_DGRAM, 0), (struct sockaddr *)&address, sizeof address) == 0 || errno != EACCES ||
        open(planted, O_CREAT | O_RDWR, 0600) >= 0 || errno != EACCES || opendir(port_probe_names())) {
        return 3;
    }
    port = CFMessagePortCreateRemote(NULL, NAME);
    if (port) {
        return 1;
    }
    port = CFMessagePortCreateLocal(NULL, NAME, port_echo, NULL, NULL);
    if (port) { /* a name of his own is another one, in another directory */
        CFMessagePortInvalidate(port);
    }
    return access(port_probe_names(), R_OK) == 0;
}

PORT_TEST_BOTH_WAYS(other_users_cannot_reach_a_port, "210 H14")
{
    CFMessagePortRef port;
    struct stat status;
    int result = 0;
    pid_t pid;

    if (geteuid() != 0) {
        SKIP("needs root, to become another user");
    }
    port = local(NAME);
    REQUIRE(stat(port_probe_names(), &status) == 0);
    EXPECT_EQ(status.st_mode & 0777, 0700);
    pid = fork();
    if (pid == 0) {
        _exit(try_as_other_user());
    }
    waitpid(pid, &result, 0);
    EXPECT_EQ(result, 0);
    port_drop(port);
}

PORT_TEST_BOTH_WAYS(descriptions_name_the_port, "184 185 M19")
{
    CFMessagePortRef port = local(NAME);
    CFStringRef text = CFCopyDescription(port);

    EXPECT(CFStringFind(text, NAME, 0).location != kCFNotFound);
    EXPECT(CFEqual(port, port));
    CFRelease(text);
    port_drop(port);
    EXPECT_STOPS("CFMessagePortIsValid: the port is NULL", { CFMessagePortIsValid(NULL); });
    EXPECT_STOPS("CFMessagePortInvalidate: the port is a CFString", { CFMessagePortInvalidate((CFMessagePortRef)(uintptr_t)CFSTR("x")); });
}

/* ---- names and descriptions beside other threads ---- */

static void *rename_to_new(void *info)
{
    EXPECT(CFMessagePortSetName(info, CFSTR("new")));
    return NULL;
}

static void run_in_thread(void *(*work)(void *info), void *info)
{
    pthread_t thread;

    REQUIRE(pthread_create(&thread, NULL, work, info) == 0);
    (void)pthread_join(thread, NULL);
}

/* Strings of the same size, in whose memory what was freed before is found again. */
static void fill_freed_memory(void)
{
    enum { strings = 64 };
    CFStringRef made[strings];

    for (int i = 0; i < strings; i++) {
        made[i] = CFStringCreateWithCString(NULL, "filler", kCFStringEncodingUTF8);
    }
    for (int i = 0; i < strings; i++) {
        CFRelease(made[i]);
    }
}

PORT_TEST_BOTH_WAYS(a_name_that_was_asked_for_lasts_as_long_as_the_port, "198 199")
{
    CFMessagePortRef port = local(NAME);
    CFStringRef name = CFMessagePortGetName(port);

    run_in_thread(rename_to_new, port); /* whose end gives back all that was lent there */
    fill_freed_memory();
    EXPECT(CFEqual(name, NAME));
    EXPECT(CFEqual(CFMessagePortGetName(port), CFSTR("new")));
    for (int i = 0; i < 4; i++) {
        EXPECT(CFMessagePortSetName(port, NAME));
        EXPECT_EQ(CFMessagePortGetName(port), name); /* kept once */
        run_in_thread(rename_to_new, port);
    }
    port_drop(port);
}

static CFMessagePortRef described;
static atomic_bool is_over;

static void *invalidate_described(void *info)
{
    (void)info;
    CFMessagePortInvalidate(described);
    return NULL;
}

static CFStringRef describe_and_invalidate(const void *info)
{
    run_in_thread(invalidate_described, NULL);
    trace_addf(&events, "described(%s)", (const char *)info);
    return CFSTR("text");
}

PORT_TEST_BOTH_WAYS(an_info_lasts_while_it_is_described, "203 185")
{
    CFMessagePortContext context = {0, "info", note_retain, note_release, describe_and_invalidate};
    CFStringRef text;

    described = CFMessagePortCreateLocal(NULL, NAME, port_echo, &context, NULL);
    text = CFCopyDescription(described);
    EXPECT(CFStringFind(text, CFSTR("text"), 0).length > 0);
    EXPECT_TRACE(&events, "retain described(info) release");
    CFRelease(text);
    text = CFCopyDescription(described); /* there is no info any more */
    EXPECT_TRACE(&events, "retain described(info) release");
    CFRelease(text);
    CFRelease(described);
}

static void *describe_until_over(void *info)
{
    while (!atomic_load(&is_over)) {
        CFStringRef text = CFCopyDescription(info);

        EXPECT(CFStringFind(text, CFSTR("name = "), 0).length > 0);
        CFRelease(text);
    }
    return NULL;
}

static void do_nothing(void *info)
{
    (void)info;
}

PORT_TEST_BOTH_WAYS(a_port_is_described_while_it_is_renamed, "185 199")
{
    enum { renames = 200 };
    CFMessagePortRef port = local(NAME);
    pthread_t thread;

    REQUIRE(pthread_create(&thread, NULL, describe_until_over, port) == 0);
    for (int i = 0; i < renames; i++) {
        CFStringRef name = CFStringCreateWithFormat(NULL, NULL, CFSTR("name %d"), i);

        EXPECT(CFMessagePortSetName(port, name));
        CFRelease(name);
        CRLRunLoopPerformFunction(CFRunLoopGetCurrent(), MODE, do_nothing, NULL, NULL);
        (void)CFRunLoopRunInMode(MODE, 0, true); /* which gives back what was lent */
    }
    atomic_store(&is_over, true);
    (void)pthread_join(thread, NULL);
    port_drop(port);
}

/* ---- one remote port for a name ---- */

static CFMessagePortRef made_meanwhile;

/* Another thread asks for the same name while the one that is there is found to be dead. */
static int connect_after_another(int socket, const char *path)
{
    kernel_ports.datagram_connect = kernel_ports_linux.datagram_connect;
    made_meanwhile = CFMessagePortCreateRemote(NULL, NAME);
    return kernel_ports_linux.datagram_connect(socket, path);
}

PORT_TEST_BOTH_WAYS(two_who_find_a_remote_port_dead_get_the_same_new_one, "196 208")
{
    CFMessagePortRef first = local(NAME);
    CFMessagePortRef dead = port_connect(NAME);
    CFMessagePortRef second;
    CFMessagePortRef remote;

    port_drop(first);
    second = local(NAME);
    kernel_ports.datagram_connect = connect_after_another;
    remote = CFMessagePortCreateRemote(NULL, NAME);
    EXPECT(made_meanwhile != NULL && made_meanwhile != dead);
    EXPECT_EQ(remote, made_meanwhile);
    CFRelease(remote);
    CFRelease(made_meanwhile);
    CFRelease(dead);
    port_drop(second);
}
