/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations fail, one at a time: those of this library and the core (the n-th failure), and those of OpenSSL. A question is answered, or
 * not asked; a session is made, or refused with an error.
 */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <CFNetwork/CFNetwork.h>

#include "CRLNetwork.h"
#include "Failure/nth_failure.h"
#include "Stream/stream_recorder.h"
#include "query.h"
#include "session.h"
#include "tls_peer.h"

/* ---- queries ---- */

struct told {
    int times;
    bool has_addresses;
};

static void tell(void *context, CFArrayRef addresses, CFStreamError error)
{
    struct told *told = context;

    told->times++;
    told->has_addresses = addresses;
    EXPECT(addresses || error.domain != 0);
}

/* Asks the hosts file. Returns false if there is no answer for want of memory. */
static bool ask_for_localhost(void)
{
    struct told told = {0, false};
    void *query = query_resolve(CFSTR("localhost"), 80, tell, &told);

    if (!query) {
        return false;
    }
    query_schedule(query, CFRunLoopGetCurrent(), CFSTR("a mode"));
    query_wait(query);
    EXPECT_EQ(told.times, 1);
    query_unschedule(query, CFRunLoopGetCurrent(), CFSTR("a mode"));
    query_free(query);
    return told.has_addresses;
}

NTH_FAILURE(a_question_for_a_name, "1005")
{
    return ask_for_localhost();
}

/* ---- sessions ---- */

static struct credentials own;
static CFDictionaryRef settings;

static void make_settings(void)
{
    CFTypeRef protocol = CFSTR("h2");
    CFTypeRef keys[] = {kCFStreamSSLCertificates, kCRLStreamSSLAnchorCertificates, kCRLStreamSSLProtocols, kCFStreamSSLPeerName};
    CFTypeRef values[4];

    own = credentials_create("host.test", NULL, -day_s, day_s);
    values[0] = credentials_copy_pem(&own, true);
    values[1] = credentials_copy_pem(&own, false);
    values[2] = CFArrayCreate(NULL, &protocol, 1, &kCFTypeArrayCallBacks);
    values[3] = CFRetain(CFSTR("host.test"));
    settings = CFDictionaryCreate(NULL, keys, values, 4, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    for (int i = 0; i < 4; i++) {
        CFRelease(values[i]);
    }
}

static void free_settings(void)
{
    CFRelease(settings);
    credentials_free(&own);
}

/* Returns false if the session is refused, with an error. */
static bool make_session(int socket)
{
    CFStreamError error = {0, 0};
    UInt32 waits;
    void *session = session_create(socket, NULL, settings, &error);
    int result;

    if (!session) {
        EXPECT(error.domain == kCFStreamErrorDomainPOSIX || error.domain == kCFStreamErrorDomainSSL);
        return false;
    }
    result = session_handshake(session, &waits, &error);
    EXPECT(result == -EAGAIN || (result == -EPROTO && error.domain != 0));
    session_free(session);
    return result == -EAGAIN;
}

/* ---- the allocators of the others ---- */

static _Atomic long left = -1; /* allocations until one fails; below 0: none does */

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

static void *allocate(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return fails() ? NULL : malloc(size);
}

static void *reallocate(void *block, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return fails() ? NULL : realloc(block, size);
}

static void deallocate(void *block, const char *file, int line)
{
    (void)file;
    (void)line;
    free(block);
}

TEST(a_session_is_made_or_refused_whichever_allocation_of_openssl_fails, "1013")
{
    const long step = test_is_soak() ? 1 : test_is_instrumented() ? 97 : 7; /* there are thousands */
    int refusals = 0;
    int attempts = 0;
    int ends[2];

    if (!CRYPTO_set_mem_functions(allocate, reallocate, deallocate)) {
        SKIP("OpenSSL has allocated already");
    }
    CRLNetworkInstall();
    make_settings();
    socket_pair_open(ends);
    EXPECT(make_session(ends[0])); /* OpenSSL makes here what it makes only once */
    for (long n = 0; left < 0 && n < 100000; n += step) {
        left = n;
        refusals += !make_session(ends[0]);
        attempts++;
        if (left >= 0) {
            break; /* the session needs fewer allocations */
        }
    }
    left = -1;
    EXPECT(refusals > attempts / 20); /* OpenSSL goes on without most of the memory that it asks for */
    EXPECT(make_session(ends[0]));
    free_settings();
    close(ends[0]);
    close(ends[1]);
}
