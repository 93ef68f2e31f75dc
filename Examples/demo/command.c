/* SPDX-License-Identifier: Apache-2.0 */
/* See command.h. The lock guards the buffer; it is not held while a command is obeyed. */
#include "command.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { command_size = 64, command_room = 16 };

struct command_source {
    CFRunLoopRef loop; /* retained; constant */
    CFRunLoopSourceRef source; /* constant */
    void (*obey)(const char *command, void *info);
    void *info;
    pthread_mutex_t lock;
    unsigned count; /* lock */
    char commands[command_room][command_size]; /* lock */
};

/* The loop's turn: everything that has been sent until now. */
static void perform(void *info)
{
    struct command_source *commands = info;
    char taken[command_room][command_size];
    unsigned count;

    (void)pthread_mutex_lock(&commands->lock);
    count = commands->count;
    memcpy(taken, commands->commands, sizeof taken);
    commands->count = 0;
    (void)pthread_mutex_unlock(&commands->lock);
    for (unsigned i = 0; i < count; i++) {
        commands->obey(taken[i], commands->info);
    }
}

struct command_source *command_source_create(CFRunLoopRef loop, CFStringRef mode, void (*obey)(const char *command, void *info), void *info)
{
    struct command_source *commands = calloc(1, sizeof *commands);
    CFRunLoopSourceContext context = {.info = commands, .perform = perform};

    if (!commands) {
        abort();
    }
    commands->loop = (CFRunLoopRef)(uintptr_t)CFRetain(loop);
    commands->obey = obey;
    commands->info = info;
    (void)pthread_mutex_init(&commands->lock, NULL);
    commands->source = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(loop, commands->source, mode);
    return commands;
}

void command_source_send(struct command_source *commands, const char *command)
{
    (void)pthread_mutex_lock(&commands->lock);
    if (commands->count < command_room) {
        (void)strncpy(commands->commands[commands->count], command, command_size - 1);
        commands->commands[commands->count++][command_size - 1] = '\0';
    }
    (void)pthread_mutex_unlock(&commands->lock);
    CFRunLoopSourceSignal(commands->source); /* marks it; a sleeping loop sleeps on ... */
    CFRunLoopWakeUp(commands->loop); /* ... until it is woken */
}

void command_source_free(struct command_source *commands)
{
    CFRunLoopSourceInvalidate(commands->source);
    CFRelease(commands->source);
    CFRelease(commands->loop);
    (void)pthread_mutex_destroy(&commands->lock);
    free(commands);
}
