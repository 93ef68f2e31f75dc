/* SPDX-License-Identifier: Apache-2.0 */
/* Streams by the functions of an add-on library: what it tells of their state is what their clients hear. */
#include <errno.h>
#include <string.h>

#include "CRLAddOn.h"
#include "Stream/stream_recorder.h"

/* An add-on's stream that does as the test says. */
struct told_stream {
    CFTypeRef stream; /* no reference; NULL: it is freed */
    int opened; /* what `open` returns */
    CFIndex moves; /* what `read` and `write` return */
    CFIndex next; /* the state after that */
    CFTypeRef value; /* of the one property */
    int waits;
    int closes;
    int stage; /* 1: the last reference is gone */
};

static int go_on_opening(void *info, Boolean waits)
{
    struct told_stream *told = info;

    told->waits += waits;
    return waits ? 0 : told->opened;
}

static CFIndex move(struct told_stream *told)
{
    CRLStreamSetState(told->stream, told->next); /* the stream looks by itself afterwards */
    return told->moves;
}

static CFIndex read_bytes(void *info, UInt8 *bytes, CFIndex size)
{
    struct told_stream *told = info;

    memset(bytes, 'x', (size_t)(told->moves > 0 && told->moves < size ? told->moves : 0));
    return move(told);
}

static CFIndex write_bytes(void *info, const UInt8 *bytes, CFIndex size)
{
    (void)bytes;
    (void)size;
    return move(info);
}

static void close_it(void *info)
{
    ((struct told_stream *)info)->closes++;
}

/* The last moment at which the stream is told of anything, which nobody hears. */
static void forget(void *info)
{
    struct told_stream *told = info;

    CRLStreamSetState(told->stream, -EIO);
    CRLStreamTellState(told->stream);
    EXPECT_EQ(told->stage++, 0);
}

static void finalize(void *info)
{
    struct told_stream *told = info;

    EXPECT_EQ(told->stage, 1);
    told->stream = NULL;
}

static CFTypeRef copy_property(void *info, CFStringRef name)
{
    struct told_stream *told = info;

    return CFEqual(name, CFSTR("value")) ? CFRetain(told->value) : NULL;
}

static Boolean set_property(void *info, CFStringRef name, CFTypeRef value)
{
    struct told_stream *told = info;

    told->value = value;
    return CFEqual(name, CFSTR("value"));
}

static const CRLStreamFunctions reading = {
    .open = go_on_opening,
    .read = read_bytes,
    .forget = forget,
    .close = close_it,
    .finalize = finalize,
    .copyProperty = copy_property,
    .setProperty = set_property,
};

static const CRLStreamFunctions writing = {
    .open = go_on_opening,
    .write = write_bytes,
    .forget = forget,
    .close = close_it,
    .finalize = finalize,
    .copyProperty = copy_property,
    .setProperty = set_property,
};

static void tell(struct told_stream *told, CFIndex state)
{
    CRLStreamSetState(told->stream, state);
    CRLStreamTellState(told->stream);
    run_what_is_ready();
}

static CFReadStreamRef make_reader(struct told_stream *told)
{
    CFReadStreamRef reader = (CFReadStreamRef)(uintptr_t)CRLStreamCreate(NULL, &reading, told);

    REQUIRE(reader);
    EXPECT_EQ(CFGetTypeID(reader), CFReadStreamGetTypeID());
    told->stream = reader;
    return reader;
}

static CFWriteStreamRef make_writer(struct told_stream *told)
{
    CFWriteStreamRef writer = (CFWriteStreamRef)(uintptr_t)CRLStreamCreate(NULL, &writing, told);

    REQUIRE(writer);
    EXPECT_EQ(CFGetTypeID(writer), CFWriteStreamGetTypeID());
    told->stream = writer;
    return writer;
}

TEST(an_add_on_tells_when_its_stream_is_open_has_bytes_and_ends, "2226")
{
    struct stream_recorder recorder = {.reads = 10};
    struct told_stream told = {.opened = -EINPROGRESS};
    CFReadStreamRef reader = make_reader(&told);

    recorder_add_reader(&recorder, reader);
    EXPECT(CFReadStreamOpen(reader));
    run_what_is_ready();
    EXPECT_TRACE(&recorder.trace, "");
    told.opened = 0;
    tell(&told, 0);
    EXPECT_TRACE(&recorder.trace, "open");
    told.moves = 3;
    tell(&told, kCFStreamEventHasBytesAvailable);
    EXPECT_TRACE(&recorder.trace, "open bytes 3\"xxx\"");
    tell(&told, 0); /* nothing new */
    EXPECT(!CFReadStreamHasBytesAvailable(reader));
    tell(&told, kCFStreamEventEndEncountered);
    EXPECT_TRACE(&recorder.trace, "open bytes 3\"xxx\" end");
    CFReadStreamClose(reader);
    EXPECT_EQ(told.closes, 1);
    CFRelease(reader);
    EXPECT(!told.stream);
}

TEST(a_call_waits_until_the_stream_of_an_add_on_is_open, "2226")
{
    struct told_stream told = {.opened = -EINPROGRESS};
    CFReadStreamRef reader = make_reader(&told);

    EXPECT(CFReadStreamOpen(reader));
    EXPECT_EQ(CFReadStreamRead(reader, (UInt8[1]){0}, 1), 0); /* the end */
    EXPECT_EQ(told.waits, 1);
    EXPECT_EQ(CFReadStreamGetStatus(reader), kCFStreamStatusAtEnd);
    CFRelease(reader);
    EXPECT_EQ(told.closes, 1);
}

TEST(the_end_and_the_failure_of_a_writer_are_told_although_room_was, "2226")
{
    static const CFIndex states[] = {kCFStreamEventEndEncountered, -EIO};

    for (int i = 0; i < 2; i++) {
        struct stream_recorder recorder = {0};
        struct told_stream told = {.moves = 1, .next = kCFStreamEventCanAcceptBytes};
        CFWriteStreamRef writer = make_writer(&told);

        recorder_add_writer(&recorder, writer);
        EXPECT(CFWriteStreamOpen(writer));
        tell(&told, kCFStreamEventCanAcceptBytes);
        tell(&told, kCFStreamEventCanAcceptBytes);
        EXPECT_TRACE(&recorder.trace, "open room"); /* once, as nothing was written */
        EXPECT_EQ(write_text(writer, "x"), 1);
        run_what_is_ready();
        EXPECT_TRACE(&recorder.trace, "open room room");
        tell(&told, states[i]);
        EXPECT_TRACE(&recorder.trace, i == 0 ? "open room room end" : "open room room error");
        EXPECT_EQ(CFWriteStreamGetError(writer).error, i == 0 ? 0 : EIO);
        CFRelease(writer);
        EXPECT(told.closes == 1 && !told.stream);
    }
}

TEST(the_properties_of_an_add_ons_stream_are_its_own, "2226")
{
    struct told_stream told = {0};
    CFReadStreamRef reader = make_reader(&told);
    CFTypeRef value;

    EXPECT(CFReadStreamSetProperty(reader, CFSTR("value"), kCFBooleanTrue));
    EXPECT(!CFReadStreamSetProperty(reader, CFSTR("other"), kCFBooleanTrue));
    value = CFReadStreamCopyProperty(reader, CFSTR("value"));
    EXPECT_EQ(value, kCFBooleanTrue);
    CFRelease(value);
    EXPECT(!CFReadStreamCopyProperty(reader, CFSTR("other")));
    CFRelease(reader);
    EXPECT_EQ(told.closes, 0); /* it was never open */
}
