/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of Redis in a run loop, with the adapter that hiredis itself brings for Core Foundation.
 *
 * usage: redis PATH | redis HOST PORT
 * Sets a value and gets it, counts to a thousand without waiting for answers, disconnects, and ends with 0 if every answer was right.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The adapter is written for a system whose C library has this. */
#if !defined(__unused)
#define __unused __attribute__((unused))
#endif
#include <hiredis/adapters/macosx.h>

enum { increments = 1000 };

static const char *const key = "corerunloop:example";
static const char *const counter = "corerunloop:counter";
static long counted;
static bool has_value;
static bool has_ended_well;

static bool is_error(const redisReply *reply, const char *command)
{
    if (reply && reply->type == REDIS_REPLY_ERROR) {
        (void)fprintf(stderr, "redis: %s: %s\n", command, reply->str);
    }
    return !reply || reply->type == REDIS_REPLY_ERROR; /* none: the connection is lost, which is told once */
}

static void got(redisAsyncContext *context, void *reply, void *data)
{
    const redisReply *value = reply;

    (void)context, (void)data;
    if (!is_error(value, "GET")) {
        (void)printf("GET: %s\n", value->str ? value->str : "(nothing)");
        has_value = value->str && strcmp(value->str, "from a run loop") == 0;
    }
}

/* Answers come in the order of the commands: the last one ends the conversation. */
static void incremented(redisAsyncContext *context, void *reply, void *data)
{
    const redisReply *value = reply;

    (void)data;
    if (is_error(value, "INCR") || value->integer != ++counted) {
        redisAsyncDisconnect(context);
    } else if (counted == increments) {
        (void)printf("INCR: %ld\n", counted);
        (void)redisAsyncCommand(context, NULL, NULL, "DEL %s %s", key, counter);
        redisAsyncDisconnect(context);
    }
}

static void connected(const redisAsyncContext *context, int status)
{
    if (status != REDIS_OK) {
        (void)fprintf(stderr, "redis: %s\n", context->errstr);
        CFRunLoopStop(CFRunLoopGetCurrent());
        return;
    }
    (void)printf("connected\n");
}

static void disconnected(const redisAsyncContext *context, int status)
{
    if (status != REDIS_OK) {
        (void)fprintf(stderr, "redis: %s\n", context->errstr);
    }
    has_ended_well = status == REDIS_OK;
    CFRunLoopStop(CFRunLoopGetCurrent());
}

static void ask(redisAsyncContext *context)
{
    (void)redisAsyncCommand(context, NULL, NULL, "SET %s %s", key, "from a run loop");
    (void)redisAsyncCommand(context, got, NULL, "GET %s", key);
    (void)redisAsyncCommand(context, NULL, NULL, "DEL %s", counter);
    for (int i = 0; i < increments; i++) {
        (void)redisAsyncCommand(context, incremented, NULL, "INCR %s", counter);
    }
}

int main(int count, char **arguments)
{
    redisAsyncContext *context;

    if (count != 2 && count != 3) {
        (void)fprintf(stderr, "usage: redis PATH | redis HOST PORT\n");
        return EXIT_FAILURE;
    }
    context = count == 2 ? redisAsyncConnectUnix(arguments[1]) : redisAsyncConnect(arguments[1], atoi(arguments[2]));
    if (!context || context->err) {
        (void)fprintf(stderr, "redis: %s\n", context ? context->errstr : "no memory");
        return EXIT_FAILURE;
    }
    if (redisMacOSAttach(context, CFRunLoopGetCurrent()) != REDIS_OK) {
        (void)fprintf(stderr, "redis: cannot attach to the run loop\n");
        return EXIT_FAILURE;
    }
    redisAsyncSetConnectCallback(context, connected);
    redisAsyncSetDisconnectCallback(context, disconnected);
    ask(context);
    CFRunLoopRun();
    return has_value && counted == increments && has_ended_well ? EXIT_SUCCESS : EXIT_FAILURE;
}
