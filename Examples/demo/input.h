/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the demonstration's lines come from: standard input, or a file that is being appended to. Either is watched
 * through a CFFileDescriptor:
 * standard input itself, or the inotify descriptor that tells of the file.
 */
#ifndef DEMO_INPUT_H
#define DEMO_INPUT_H

#include <CoreFoundation/CoreFoundation.h>
#include <CoreFoundation/CFFileDescriptor.h>

struct input;

/* `on_end` is called when there will be no more. NULL path: standard input. NULL with errno set when it cannot be watched. */
struct input *input_open(CFRunLoopRef loop, CFStringRef mode, const char *path, void (*on_end)(void));
void input_close(struct input *input);

#endif
