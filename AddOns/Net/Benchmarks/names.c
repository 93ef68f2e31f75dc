/* SPDX-License-Identifier: Apache-2.0 */
/* How long a name takes: prints what getaddrinfo and CFHost return, each with its seconds. */
#define _GNU_SOURCE
#include <CoreServices/CoreServices.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

static double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int count, char **arguments)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    CFStreamError error = {0, 0};
    struct addrinfo *found;
    CFStringRef name;
    CFHostRef host;
    double begin_s;
    int status;

    if (count != 2) {
        return 2;
    }
    begin_s = now_s();
    status = getaddrinfo(arguments[1], NULL, &hints, &found);
    printf("%d %.3f ", status, now_s() - begin_s);
    name = CFStringCreateWithCString(NULL, arguments[1], kCFStringEncodingUTF8);
    host = CFHostCreateWithName(NULL, name);
    begin_s = now_s();
    (void)CFHostStartInfoResolution(host, kCFHostAddresses, &error);
    printf("%d %.3f\n", (int)error.error, now_s() - begin_s);
    CFRelease(host);
    CFRelease(name);
    return 0;
}
