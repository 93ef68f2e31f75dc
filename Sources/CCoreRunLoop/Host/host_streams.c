/* SPDX-License-Identifier: Apache-2.0 */
/* The pair of streams to a host: the public call. No state of its own, and no lock is held over calls of streams. */
#include <netdb.h>
#include <sys/socket.h>

#include "CFNetwork/CFSocketStream.h"
#include "Host/host.h"
#include "Stream/Connection/host_address.h"
#include "Stream/Connection/stream_connection.h"

/* Returns the addresses that the host knows, with a reference, or NULL. */
static CFArrayRef retain_addresses(CFHostRef host)
{
    CFArrayRef addresses;

    host_lock(host);
    addresses = host->known[kCFHostAddresses];
    if (addresses && CFArrayGetCount(addresses) > 0) {
        (void)CFRetain(addresses);
    } else {
        addresses = NULL;
    }
    host_unlock(host);
    return addresses;
}

/* The name of a host, or its numeric address. NULL without memory. */
static CFStringRef copy_name(CFHostRef host, CFArrayRef addresses)
{
    CFDataRef first;
    char text[NI_MAXHOST];

    if (host->name) {
        return CFStringCreateCopy(NULL, host->name);
    }
    first = CFArrayGetValueAtIndex(addresses, 0); /* a host without a name has an address */
    if (getnameinfo((const struct sockaddr *)(const void *)CFDataGetBytePtr(first), (socklen_t)CFDataGetLength(first), text, sizeof text,
                    NULL, 0, NI_NUMERICHOST) != 0) {
        return NULL;
    }
    return CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);
}

void CFStreamCreatePairWithSocketToCFHost(CFAllocatorRef alloc, CFHostRef host, SInt32 port, CFReadStreamRef *readStream,
                                          CFWriteStreamRef *writeStream)
{
    struct connection_terms terms = {.descriptor = -1, .type = SOCK_STREAM, .port = (UInt16)port};
    struct stream *reader = NULL;
    struct stream *writer = NULL;

    object_check(host, &host_class, "CFStreamCreatePairWithSocketToCFHost", "host");
    terms.addresses = retain_addresses(host);
    terms.sets_port = terms.addresses;
    terms.host = copy_name(host, terms.addresses);
    if (terms.host && (terms.addresses || host_address_create(terms.host, terms.port, &terms.addresses))) {
        (void)connection_create_streams(alloc, &terms, readStream ? &reader : NULL, writeStream ? &writer : NULL);
    }
    if (readStream) {
        *readStream = (CFReadStreamRef)reader;
    }
    if (writeStream) {
        *writeStream = (CFWriteStreamRef)writer;
    }
    object_release_if_any(terms.host);
    object_release_if_any(terms.addresses);
}
