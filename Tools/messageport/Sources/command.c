/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs have in common; see command.h. */
#include "command.h"

#include <stdarg.h>
#include <stdio.h>

#include "CRLRunLoop.h"
#include "CoreFoundation/CoreFoundation.h"

int fail(int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)fprintf(stderr, "%s: ", command_name);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
    return status;
}

/* The length of the UTF-8 character at `bytes`, 0 if it is none. */
static size_t character_length(const unsigned char *bytes, size_t left)
{
    size_t length = bytes[0] < 0x80 ? 1 : bytes[0] < 0xC2 ? 0 : bytes[0] < 0xE0 ? 2 : bytes[0] < 0xF0 ? 3 : bytes[0] < 0xF5 ? 4 : 0;

    if (length == 0 || length > left) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        if ((bytes[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return length;
}

void print_json_string(const char *bytes, size_t length)
{
    const unsigned char *next = (const unsigned char *)bytes;

    (void)putchar('"');
    while (length > 0) {
        size_t size = character_length(next, length);

        if (size == 0) {
            (void)fputs("\\ufffd", stdout);
            size = 1;
        } else if (size == 1 && (next[0] < 0x20 || next[0] == '"' || next[0] == '\\' || next[0] == 0x7F)) {
            (void)printf("\\u%04x", next[0]);
        } else {
            (void)fwrite(next, 1, size, stdout);
        }
        next += size;
        length -= size;
    }
    (void)putchar('"');
}

static void stop(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info)
{
    (void)source;
    (void)signal;
    CFRunLoopStop(info);
}

void stop_on(int signal)
{
    CRLSourceContext context = {0, CFRunLoopGetCurrent(), NULL, NULL, NULL};
    CFRunLoopSourceRef source = CRLSignalSourceCreate(NULL, signal, 0, stop, &context);

    if (source) {
        CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
        CFRelease(source);
    }
}
