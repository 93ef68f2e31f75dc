/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A custom input source with a command buffer, as the guide's chapter on run loops describes one: any thread puts a command in, signals
 * the source and wakes the loop; the loop's thread takes them out.
 */
#ifndef DEMO_COMMAND_H
#define DEMO_COMMAND_H

#include <CoreFoundation/CoreFoundation.h>

struct command_source;

/* `obey` is called on the loop's thread with each command, which it must not keep. */
struct command_source *command_source_create(CFRunLoopRef loop, CFStringRef mode, void (*obey)(const char *command, void *info),
                                             void *info);

/* Any thread. `command` is copied. */
void command_source_send(struct command_source *commands, const char *command);

/* Nobody may send any more. */
void command_source_free(struct command_source *commands);

#endif
