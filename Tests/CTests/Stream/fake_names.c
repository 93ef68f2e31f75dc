/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_names.h. */
#define _GNU_SOURCE
#include "Stream/fake_names.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "CRLStreamNetwork.h"
#include "harness.h"

/* ---- the names ---- */

/*
 * The answer is written before `is_answered`, and not after. The stream's queue may look at any time, and end the question as soon as it is
 * answered: `event_lock` keeps the descriptor open until the one who answers has written to it.
 */
static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    CRLStreamResolved completion;
    void *context;
    CFArrayRef answer; /* NULL: there is none */
    int event; /* readable once there is an answer; -1: nobody asks */
    atomic_bool is_answered;
    atomic_flag is_told;
    _Atomic int frees;
} names = {.event = -1, .is_told = ATOMIC_FLAG_INIT};

static void *begin(CFStringRef host, UInt32 port, CRLStreamResolved completion, void *context)
{
    (void)host, (void)port;
    names.completion = completion;
    names.context = context;
    names.event = eventfd(names.is_answered, EFD_CLOEXEC | EFD_NONBLOCK);
    atomic_flag_clear(&names.is_told);
    return &names;
}

static void advance(void *query)
{
    CFStreamError error = {kCFStreamErrorDomainNetDB, -2};

    (void)query;
    if (names.is_answered && !atomic_flag_test_and_set(&names.is_told)) {
        names.completion(names.context, names.answer, names.answer ? (CFStreamError){0, 0} : error);
    }
}

static int descriptor(void *query)
{
    (void)query;
    return names.event;
}

static void end(void *query)
{
    (void)query;
    REQUIRE(pthread_mutex_lock(&event_lock) == 0);
    close(names.event);
    names.event = -1;
    names.is_answered = false;
    REQUIRE(pthread_mutex_unlock(&event_lock) == 0);
    if (names.answer) {
        CFRelease(names.answer);
        names.answer = NULL;
    }
    names.frees++;
}

static const CRLStreamNetwork table = {
    .version = 1, .resolve = begin, .freeQuery = end, .advanceQuery = advance, .queryDescriptor = descriptor};

void fake_names_install(void)
{
    CRLStreamSetNetwork(&table);
}

/* The addresses of the ports, as in the header; the caller releases the array. */
static CFArrayRef addresses_of(const int *ports, int count)
{
    CFMutableArrayRef addresses = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);

    for (int i = 0; addresses && i < count; i++) {
        struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)-ports[i]), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)ports[i]), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        CFDataRef data =
            ports[i] < 0 ? CFDataCreate(NULL, (const UInt8 *)&ipv6, sizeof ipv6) : CFDataCreate(NULL, (const UInt8 *)&ipv4, sizeof ipv4);

        if (data) {
            CFArrayAppendValue(addresses, data);
            CFRelease(data);
        }
    }
    return addresses;
}

void fake_names_answer(const int *ports, int count)
{
    names.answer = count > 0 ? addresses_of(ports, count) : NULL;
    REQUIRE(pthread_mutex_lock(&event_lock) == 0);
    names.is_answered = true;
    REQUIRE(eventfd_write(names.event, 1) == 0);
    REQUIRE(pthread_mutex_unlock(&event_lock) == 0);
}

void fake_names_answer_at_once(const int *ports, int count)
{
    REQUIRE(names.event < 0);
    names.answer = addresses_of(ports, count);
    names.is_answered = true;
}

int fake_names_frees(void)
{
    return names.frees;
}

/* ---- the swallower ---- */

void swallower_open(struct swallower *swallower)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    struct pollfd filler = {.events = POLLOUT, .revents = POLLOUT};

    *swallower = (struct swallower){.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    REQUIRE(bind(swallower->listener, (struct sockaddr *)&address, length) == 0 && listen(swallower->listener, 0) == 0);
    REQUIRE(getsockname(swallower->listener, (struct sockaddr *)&address, &length) == 0);
    swallower->port = ntohs(address.sin_port);
    while (filler.revents) { /* on loopback a connection is made at once, or not */
        REQUIRE(swallower->count < 8);
        filler.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        swallower->fillers[swallower->count++] = filler.fd;
        (void)connect(filler.fd, (struct sockaddr *)&address, length);
        (void)poll(&filler, 1, 0);
    }
}

void swallower_close(struct swallower *swallower)
{
    while (swallower->count > 0) {
        close(swallower->fillers[--swallower->count]);
    }
    close(swallower->listener);
}
