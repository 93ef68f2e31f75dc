/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Core Foundation as a peer: this library, or the Swift toolchain's (PEER_TOOLCHAIN); see peer.h. Counters are version-1 sources, which
 * both have. Sockets are CFFileDescriptor here, and CFSocket in the toolchain, which has no CFFileDescriptor, or with PEER_CFSOCKET.
 */
#include <CoreFoundation/CoreFoundation.h>

#if !defined(PEER_TOOLCHAIN)
#include <CRLRunLoop.h>
#define PEER_STAYS_AWAKE 1
#define PEER_TIMERS_MOST 0
#define PEER_SOCKETS_MOST 0
#else
#define PEER_TIMERS_MOST 100000
#define PEER_SOCKETS_MOST 1000
#endif

#define PEER_LOOKS 1
#if defined(__BLOCKS__)
#define PEER_POSTS_BLOCKS 1
#endif
#define PEER_IS_CORE_FOUNDATION 1
#define PEER_SOURCES_MOST 0
#define PEER_EVENTS_MOST 0
#define PEER_READS_EVENTS 1
#define PEER_SIGNAL_BYTES 0

struct peer_loop {
    CFRunLoopRef handle;
    CFRunLoopSourceRef idle; /* keeps the mode from being empty */
};

struct peer_callback {
    peer_function function;
    void *info;
};

struct peer_signal {
    CFRunLoopSourceRef handle;
    CFRunLoopRef loop;
    struct peer_callback callback;
};

struct peer_timer {
    CFRunLoopTimerRef handle;
    CFRunLoopRef loop;
    struct peer_callback callback;
};

struct peer_watch {
    CFRunLoopSourceRef handle;
    int descriptor;
    struct peer_callback callback;
};

#define peer_mode kCFRunLoopDefaultMode

static void cf_call(void *info)
{
    struct peer_callback *callback = info;

    callback->function(callback->info);
}

static void cf_nothing(void *info)
{
    (void)info;
}

static void peer_loop_begin(struct peer_loop *loop)
{
    CFRunLoopSourceContext context = {.info = loop, .perform = cf_nothing};

    loop->handle = CFRunLoopGetCurrent();
    loop->idle = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(loop->handle, loop->idle, peer_mode);
}

#if defined(PEER_STAYS_AWAKE)
static void peer_stay_awake(struct peer_loop *loop)
{
    CRLRunLoopSetBusyWait(loop->handle, 0.00005);
}
#endif

static void peer_look(struct peer_loop *loop)
{
    (void)loop;
    (void)CFRunLoopRunInMode(peer_mode, 0, true);
}

static void peer_run(struct peer_loop *loop)
{
    (void)loop;
    (void)CFRunLoopRunInMode(peer_mode, 1e10, false);
}

static void peer_stop(struct peer_loop *loop)
{
    CFRunLoopStop(loop->handle);
}

static void peer_signal_add(struct peer_loop *loop, struct peer_signal *signal, peer_function function, void *info)
{
    CFRunLoopSourceContext context = {.info = &signal->callback, .perform = cf_call};

    signal->callback = (struct peer_callback){function, info};
    signal->loop = loop->handle;
    signal->handle = CFRunLoopSourceCreate(NULL, 0, &context);
    CFRunLoopAddSource(loop->handle, signal->handle, peer_mode);
}

static void peer_signal_send(struct peer_signal *signal)
{
    CFRunLoopSourceSignal(signal->handle);
    CFRunLoopWakeUp(signal->loop);
}

/* A block that captures nothing, as a function captures nothing: the cases post one function at a time. */
static void peer_post(struct peer_loop *loop, peer_function function, void *info)
{
#if defined(__BLOCKS__)
    static peer_function posted;

    (void)info;
    posted = function;
    CFRunLoopPerformBlock(loop->handle, peer_mode, ^{
        posted(NULL);
    });
#else
    CRLRunLoopPerformFunction(loop->handle, peer_mode, function, info, NULL);
#endif
}

#if defined(PEER_POSTS_BLOCKS)
/* The usual kind of block: one that has to be copied. */
static void peer_post_block(struct peer_loop *loop, peer_function function, void *info)
{
    CFRunLoopPerformBlock(loop->handle, peer_mode, ^{
        function(info);
    });
}
#endif

/* A post does not wake here; the posts of the others do. */
static void peer_wake(struct peer_loop *loop)
{
    CFRunLoopWakeUp(loop->handle);
}

static void cf_fired(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    cf_call(info);
}

static void peer_timer_make(struct peer_loop *loop, struct peer_timer *timer, double seconds, double interval, peer_function function,
                            void *info)
{
    CFRunLoopTimerContext context = {.info = &timer->callback};

    timer->callback = (struct peer_callback){function, info};
    timer->loop = loop->handle;
    timer->handle = CFRunLoopTimerCreate(NULL, CFAbsoluteTimeGetCurrent() + seconds, interval, 0, 0, cf_fired, &context);
}

static void peer_timer_add(struct peer_timer *timer)
{
    CFRunLoopAddTimer(timer->loop, timer->handle, peer_mode);
}

static void peer_timer_move(struct peer_timer *timer, double seconds)
{
    CFRunLoopTimerSetNextFireDate(timer->handle, CFAbsoluteTimeGetCurrent() + seconds);
}

static void peer_timer_cancel(struct peer_timer *timer)
{
    CFRunLoopTimerInvalidate(timer->handle);
    CFRelease(timer->handle);
}

static int cf_port(void *info)
{
    return ((struct peer_watch *)info)->descriptor;
}

static void cf_port_performed(void *info)
{
    cf_call(&((struct peer_watch *)info)->callback);
}

static void peer_event_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    CFRunLoopSourceContext1 context = {.version = 1, .info = watch};

    context.getPort = (void *)cf_port;
    context.perform = (void *)cf_port_performed;
    watch->descriptor = descriptor;
    watch->callback = (struct peer_callback){function, info};
    watch->handle = CFRunLoopSourceCreate(NULL, 0, (CFRunLoopSourceContext *)(void *)&context);
    CFRunLoopAddSource(loop->handle, watch->handle, peer_mode);
}

#if defined(PEER_TOOLCHAIN) || defined(PEER_CFSOCKET)

static void cf_socket_readable(CFSocketRef socket, CFSocketCallBackType type, CFDataRef address, const void *data, void *info)
{
    (void)socket, (void)type, (void)address, (void)data;
    cf_call(info);
}

static void peer_socket_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    CFSocketContext context = {.info = &watch->callback};
    CFSocketRef socket = CFSocketCreateWithNative(NULL, descriptor, kCFSocketReadCallBack, cf_socket_readable, &context);

    watch->callback = (struct peer_callback){function, info};
    watch->handle = CFSocketCreateRunLoopSource(NULL, socket, 0);
    CFRunLoopAddSource(loop->handle, watch->handle, peer_mode);
}

#else

static void cf_descriptor_readable(CFFileDescriptorRef object, CFOptionFlags types, void *info)
{
    cf_call(info);
    CFFileDescriptorEnableCallBacks(object, types);
}

static void peer_socket_add(struct peer_loop *loop, struct peer_watch *watch, int descriptor, peer_function function, void *info)
{
    CFFileDescriptorContext context = {.info = &watch->callback};
    CFFileDescriptorRef object = CFFileDescriptorCreate(NULL, descriptor, false, cf_descriptor_readable, &context);

    watch->callback = (struct peer_callback){function, info};
    watch->handle = CFFileDescriptorCreateRunLoopSource(NULL, object, 0);
    CFFileDescriptorEnableCallBacks(object, kCFFileDescriptorReadCallBack);
    CFRunLoopAddSource(loop->handle, watch->handle, peer_mode);
}

#endif
