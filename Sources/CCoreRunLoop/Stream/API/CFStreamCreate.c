/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls that create streams. No state, no locks. */
#include "CRLRunLoop.h"
#include "CoreFoundation/CFStream.h"

#include <limits.h>
#include <sys/socket.h>

#include "Stream/Connection/host_address.h"
#include "Stream/Connection/stream_connection.h"
#include "Stream/Kind/bound_pair.h"
#include "Stream/Kind/stream_file.h"
#include "Stream/Kind/stream_memory.h"

/* ---- memory ---- */

CFReadStreamRef CFReadStreamCreateWithBytesNoCopy(CFAllocatorRef alloc, const UInt8 *bytes, CFIndex length, CFAllocatorRef bytesDeallocator)
{
    if (length < 0 || (!bytes && length > 0)) {
        return NULL;
    }
    return (CFReadStreamRef)stream_memory_create_reader(alloc, bytes, length, bytesDeallocator);
}

CFWriteStreamRef CFWriteStreamCreateWithBuffer(CFAllocatorRef alloc, UInt8 *buffer, CFIndex bufferCapacity)
{
    if (bufferCapacity < 0 || (!buffer && bufferCapacity > 0)) {
        return NULL;
    }
    return (CFWriteStreamRef)stream_memory_create_writer(alloc, buffer, bufferCapacity, NULL);
}

CFWriteStreamRef CFWriteStreamCreateWithAllocatedBuffers(CFAllocatorRef alloc, CFAllocatorRef bufferAllocator)
{
    if (bufferAllocator == kCFAllocatorNull) {
        return NULL;
    }
    return (CFWriteStreamRef)stream_memory_create_writer(alloc, NULL, 0, bufferAllocator ? bufferAllocator : CFAllocatorGetDefault());
}

/* ---- files ---- */

static bool is_of_file(CFURLRef url)
{
    CFStringRef scheme = CFURLCopyScheme(url);
    bool answer = scheme && CFStringCompare(scheme, CFSTR("file"), kCFCompareCaseInsensitive) == kCFCompareEqualTo;

    object_release_if_any(scheme);
    return answer;
}

static struct stream *create_of_file(CFAllocatorRef allocator, CFURLRef url, bool is_reader)
{
    char path[PATH_MAX];

    if (!url || !is_of_file(url) || !CFURLGetFileSystemRepresentation(url, true, (UInt8 *)path, sizeof path)) {
        return NULL;
    }
    return stream_file_create(allocator, path, is_reader);
}

CFReadStreamRef CFReadStreamCreateWithFile(CFAllocatorRef alloc, CFURLRef fileURL)
{
    return (CFReadStreamRef)create_of_file(alloc, fileURL, true);
}

CFWriteStreamRef CFWriteStreamCreateWithFile(CFAllocatorRef alloc, CFURLRef fileURL)
{
    return (CFWriteStreamRef)create_of_file(alloc, fileURL, false);
}

CFReadStreamRef CRLReadStreamCreateWithDescriptor(CFAllocatorRef allocator, int descriptor, Boolean closesDescriptor)
{
    return (CFReadStreamRef)stream_file_create_with_descriptor(allocator, descriptor, closesDescriptor, true);
}

CFWriteStreamRef CRLWriteStreamCreateWithDescriptor(CFAllocatorRef allocator, int descriptor, Boolean closesDescriptor)
{
    return (CFWriteStreamRef)stream_file_create_with_descriptor(allocator, descriptor, closesDescriptor, false);
}

/* ---- pairs ---- */

/* Hands the streams of a pair, or NULL, to those pointers that are not NULL. */
static void give_pair(struct stream *reader, struct stream *writer, CFReadStreamRef *readStream, CFWriteStreamRef *writeStream)
{
    if (readStream) {
        *readStream = (CFReadStreamRef)reader;
    }
    if (writeStream) {
        *writeStream = (CFWriteStreamRef)writer;
    }
}

void CFStreamCreateBoundPair(CFAllocatorRef alloc, CFReadStreamRef *readStream, CFWriteStreamRef *writeStream, CFIndex transferBufferSize)
{
    struct stream *reader = NULL;
    struct stream *writer = NULL;

    (void)bound_pair_create(alloc, transferBufferSize, readStream ? &reader : NULL, writeStream ? &writer : NULL);
    give_pair(reader, writer, readStream, writeStream);
}

static void create_pair(CFAllocatorRef allocator, const struct connection_terms *terms, CFReadStreamRef *readStream,
                        CFWriteStreamRef *writeStream)
{
    struct stream *reader = NULL;
    struct stream *writer = NULL;

    (void)connection_create_streams(allocator, terms, readStream ? &reader : NULL, writeStream ? &writer : NULL);
    give_pair(reader, writer, readStream, writeStream);
}

void CFStreamCreatePairWithSocket(CFAllocatorRef alloc, CFSocketNativeHandle sock, CFReadStreamRef *readStream,
                                  CFWriteStreamRef *writeStream)
{
    const struct connection_terms terms = {.descriptor = sock < 0 ? INT32_MAX : sock}; /* no descriptor has that number: EBADF */

    create_pair(alloc, &terms, readStream, writeStream);
}

void CFStreamCreatePairWithSocketToHost(CFAllocatorRef alloc, CFStringRef host, UInt32 port, CFReadStreamRef *readStream,
                                        CFWriteStreamRef *writeStream)
{
    struct connection_terms terms = {.descriptor = -1, .type = SOCK_STREAM, .host = host, .port = (UInt16)port};

    give_pair(NULL, NULL, readStream, writeStream);
    if (!host || !host_address_create(host, terms.port, &terms.addresses)) {
        return;
    }
    terms.host = CFStringCreateCopy(NULL, host);
    if (terms.host) {
        create_pair(alloc, &terms, readStream, writeStream);
        CFRelease(terms.host);
    }
    object_release_if_any(terms.addresses);
}

void CFStreamCreatePairWithPeerSocketSignature(CFAllocatorRef alloc, const CFSocketSignature *signature, CFReadStreamRef *readStream,
                                               CFWriteStreamRef *writeStream)
{
    struct connection_terms terms = {.descriptor = -1};
    CFDataRef address;

    give_pair(NULL, NULL, readStream, writeStream);
    if (!signature || !signature->address) {
        return;
    }
    terms.type = signature->socketType;
    terms.protocol = signature->protocol;
    address = CFDataCreateCopy(NULL, signature->address);
    terms.addresses = address ? CFArrayCreate(NULL, (const void **)&address, 1, &kCFTypeArrayCallBacks) : NULL;
    if (terms.addresses) {
        create_pair(alloc, &terms, readStream, writeStream);
        CFRelease(terms.addresses);
    }
    object_release_if_any(address);
}
