/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of hosts for the programs with pairs of streams. A name has up to three addresses, at whose ports some actor listens or nobody, or
 * none. The answer comes at a random call of those that may bring it.
 */
#include "names.h"

#include <netinet/in.h>
#include <stdlib.h>

#include "CRLStreamNetwork.h"
#include "Kernel/kernel.h"
#include "scheduler.h"

enum { most_addresses = 3 };

static struct names_terms terms;

struct question {
    CRLStreamResolved completion;
    void *context;
    int event; /* readable from the beginning */
    bool is_told;
};

static CFArrayRef make_addresses(void)
{
    int count = (int)scheduler_random(random_work, most_addresses + 1);
    CFMutableArrayRef addresses = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);

    for (int i = 0; i < count; i++) {
        UInt32 port = terms.first_port + (UInt32)scheduler_random(random_work, (uint64_t)terms.port_count + 1);
        struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        CFDataRef data = CFDataCreate(NULL, (const UInt8 *)&address, sizeof address);

        CFArrayAppendValue(addresses, data);
        CFRelease(data);
    }
    return addresses;
}

static void *begin(CFStringRef host, UInt32 port, CRLStreamResolved completion, void *context)
{
    struct question *question = calloc(1, sizeof *question);

    (void)host, (void)port;
    *question = (struct question){completion, context, kernel.event_create(), false};
    if (question->event < 0) {
        free(question);
        return NULL;
    }
    (void)kernel.event_post(question->event);
    return question;
}

static void advance(void *query)
{
    struct question *question = query;
    CFArrayRef addresses;

    if (question->is_told || scheduler_random(random_work, 3) == 0) {
        return;
    }
    question->is_told = true;
    addresses = make_addresses();
    question->completion(question->context, addresses, (CFStreamError){kCFStreamErrorDomainNetDB, -2});
    CFRelease(addresses);
}

static int descriptor_of(void *query)
{
    return ((struct question *)query)->event;
}

static void end(void *query)
{
    struct question *question = query;

    (void)kernel.close(question->event);
    free(question);
}

void names_install(struct names_terms installed)
{
    static const CRLStreamNetwork network = {
        .version = 1, .resolve = begin, .freeQuery = end, .advanceQuery = advance, .queryDescriptor = descriptor_of};

    terms = installed;
    CRLStreamSetNetwork(&network);
}
