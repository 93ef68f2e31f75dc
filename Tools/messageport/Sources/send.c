/* SPDX-License-Identifier: Apache-2.0 */
/* messageport send and messageport serve. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "CRLRunLoop.h"
#include "json_string.h"
#include "messageport.h"
#include "regular_file.h"
#include "stop_signal.h"

static CFStringRef name_of(const struct options *options)
{
    return CFStringCreateWithCString(NULL, options->name, kCFStringEncodingUTF8);
}

/* ---- send ---- */

/* Returns the message, empty if none is given; NULL after an error. */
static CFDataRef message_of(const struct options *options)
{
    struct stat status;
    const char *reason;
    CFDataRef data;
    int descriptor;

    if (options->data || !options->file) {
        const char *text = options->data ? options->data : "";

        return CFDataCreate(NULL, (const UInt8 *)text, (CFIndex)strlen(text));
    }
    if (strcmp(options->file, "-") == 0) {
        return read_all(STDIN_FILENO, "standard input");
    }
    descriptor = regular_file_open(options->file, &status, &reason);
    if (descriptor < 0) {
        (void)fail(exit_error, "%s cannot be opened: %s", options->file, reason);
        return NULL;
    }
    data = read_all(descriptor, options->file);
    (void)close(descriptor);
    return data;
}

static int status_of(SInt32 result, const struct options *options)
{
    switch (result) {
    case kCFMessagePortSuccess:
        return exit_success;
    case kCFMessagePortSendTimeout:
        return fail(exit_timeout, "%s: timed out: its queue is full", options->name);
    case kCFMessagePortReceiveTimeout:
        return fail(exit_timeout, "%s: timed out: no reply came in %g seconds", options->name, options->timeout);
    case kCFMessagePortIsInvalid:
    case kCFMessagePortBecameInvalidError:
        return fail(exit_died, "%s: died before it answered", options->name);
    default:
        return fail(exit_error, "%s: the message was not taken", options->name);
    }
}

static int print_reply(CFDataRef reply, const struct options *options)
{
    if (!options->is_json) {
        return write_all(STDOUT_FILENO, reply) ? exit_success : fail(exit_error, "the reply cannot be written: %s", strerror(errno));
    }
    (void)printf("{\"status\":0,\"length\":%ld,\"reply\":", CFDataGetLength(reply));
    write_json_string(stdout, (const char *)CFDataGetBytePtr(reply), (size_t)CFDataGetLength(reply), "");
    (void)puts("}");
    return exit_success;
}

int send_message(const struct options *options)
{
    CFStringRef name = name_of(options);
    CFMessagePortRef remote = NULL;
    CFDataRef data = message_of(options);
    CFDataRef reply = NULL;
    SInt32 result;
    int status;

    if (!data) {
        return exit_error;
    }
    remote = name ? CFMessagePortCreateRemote(NULL, name) : NULL;
    if (!remote) {
        return fail(exit_no_port, "%s: no such port", options->name);
    }
    result = CFMessagePortSendRequest(remote, options->id, data, options->timeout, options->timeout,
                                      options->is_one_way ? NULL : kCFRunLoopDefaultMode, &reply);
    status = status_of(result, options);
    if (reply) {
        status = print_reply(reply, options);
        CFRelease(reply);
    } else if (status == exit_success && options->is_json) {
        (void)puts("{\"status\":0}");
    }
    CFRelease(data);
    CFRelease(remote);
    CFRelease(name);
    return status;
}

/* ---- serve ---- */

static void run_command(const struct options *options, SInt32 id, int input, int output)
{
    char number[16];
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)snprintf(number, sizeof number, "%d", (int)id);
    (void)setenv("MESSAGEPORT_ID", number, 1);
    (void)dup2(input, STDIN_FILENO);
    (void)dup2(output, STDOUT_FILENO);
    (void)execl("/bin/sh", "sh", "-c", options->command, (char *)NULL);
    _exit(127);
}

/* Returns a file with the message: a command that does not read a pipe would block this process. -1 after an error. */
static int put_aside(CFDataRef data)
{
    char path[] = "/tmp/messageport-XXXXXX";
    int file = mkostemp(path, O_CLOEXEC);

    if (file >= 0) {
        (void)unlink(path);
        if (!write_all(file, data) || lseek(file, 0, SEEK_SET) != 0) {
            (void)close(file);
            file = -1;
        }
    }
    return file;
}

static CFDataRef answer_message(CFMessagePortRef port, SInt32 id, CFDataRef data, void *info)
{
    const struct options *options = info;
    int input = put_aside(data);
    int output[2] = {-1, -1};
    CFDataRef reply = NULL;
    int status = 0;
    pid_t pid = -1;

    (void)port;
    if (input >= 0 && pipe2(output, O_CLOEXEC) == 0) {
        pid = fork();
        if (pid == 0) {
            run_command(options, id, input, output[1]);
        }
        (void)close(output[1]);
        reply = pid > 0 ? read_all(output[0], "the command's output") : NULL;
        (void)close(output[0]); /* a command that says more than that does not wait for a reader */
        if (pid > 0) {
            (void)waitpid(pid, &status, 0);
        }
    }
    if (input >= 0) {
        (void)close(input);
    }
    if (pid < 0) {
        (void)fail(exit_error, "the command cannot be run: %s", strerror(errno));
    } else if (status != 0) {
        (void)fail(exit_error, "the command ended with status %d", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    if (options->is_json) {
        (void)printf("{\"id\":%d,\"length\":%ld,\"reply_length\":%ld}\n", (int)id, CFDataGetLength(data),
                     reply ? CFDataGetLength(reply) : 0L);
        (void)fflush(stdout);
    }
    return reply;
}

int serve_port(const struct options *options)
{
    CFMessagePortContext context = {0, (void *)(uintptr_t)options, NULL, NULL, NULL};
    CFStringRef name = name_of(options);
    CFMessagePortRef port = name ? CFMessagePortCreateLocal(NULL, name, answer_message, &context, NULL) : NULL;
    CFRunLoopSourceRef source;

    if (!port) {
        return fail(exit_no_port, "%s: the name is taken or cannot be used", options->name);
    }
    stop_on(SIGINT);
    stop_on(SIGTERM);
    source = CFMessagePortCreateRunLoopSource(NULL, port, 0);
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    CFRelease(source);
    CFRunLoopRun();
    CFMessagePortInvalidate(port);
    CFRelease(port);
    CFRelease(name);
    return exit_success;
}
