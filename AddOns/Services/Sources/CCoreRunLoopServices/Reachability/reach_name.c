/* SPDX-License-Identifier: Apache-2.0 */
/* Asking for a name: see reach_target.h. On loops its host asks and calls back; for a queue a thread of libdispatch waits. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>

#include "Reachability/reach_target.h"

static const int64_t after_lack_ns = 1000000000;
static const int64_t after_silence_ns = 10000000000; /* servers did not answer */

/* ---- answers ---- */

static bool is_of_system(CFStreamError error)
{
    return error.domain == kCFStreamErrorDomainPOSIX && error.error != EADDRNOTAVAIL; /* which is a name without an address */
}

static bool is_silence(CFStreamError error)
{
    return error.domain == kCFStreamErrorDomainNetDB && error.error == EAI_AGAIN;
}

/* Whoever has no answer now asks later, unless nobody can be asked at all. */
REQUIRES(the_service_lock) static void note_failure(reach_target_ref target, CFStreamError error)
{
    if (is_silence(error)) {
        reach_ask_later(target, after_silence_ns);
    } else if (is_of_system(error) && error.error != ENOSYS) {
        reach_ask_later(target, after_lack_ns);
    }
}

/* Notes the answer to the question of a turn; `addresses` is a reference that this takes over, or NULL. */
EXCLUDES(the_service_lock) static void note_answer(reach_target_ref target, uint64_t turn, CFArrayRef addresses, CFStreamError error)
{
    service_lock_take(&target->lock);
    if (target->turn == turn) {
        if (addresses || !is_of_system(error)) {
            CFArrayRef before = target->addresses;

            target->addresses = addresses;
            target->has_answer = true;
            addresses = before;
        }
        note_failure(target, error);
        if (target->asks_again) {
            reach_ask_later(target, 0);
        }
        reach_look_later(target, 0);
        target->is_asking = target->asks_again = false;
    }
    service_lock_drop(&target->lock);
    if (addresses) {
        CFRelease(addresses);
    }
}

/* ---- waiting ---- */

bool reach_ask_and_wait(CFStringRef name, CFArrayRef *ret_addresses, CFStreamError *ret_error)
{
    CFHostRef host = CFHostCreateWithName(NULL, name);
    CFArrayRef found = NULL;

    *ret_error = (CFStreamError){kCFStreamErrorDomainPOSIX, ENOMEM};
    if (host && CFHostStartInfoResolution(host, kCFHostAddresses, ret_error)) {
        found = CFHostGetAddressing(host, NULL);
    }
    *ret_addresses = found ? CFRetain(found) : NULL;
    if (host) {
        CFRelease(host);
    }
    return found || !is_of_system(*ret_error);
}

/* ---- loops ---- */

static void host_called(CFHostRef host, CFHostInfoType info, const CFStreamError *error, void *context)
{
    reach_target_ref target = context;
    CFArrayRef found = error->error == 0 ? CFHostGetAddressing(host, NULL) : NULL;
    uint64_t turn;
    bool is_of_target;

    (void)info;
    service_lock_take(&target->lock);
    turn = target->turn;
    is_of_target = target->host == host;
    service_lock_drop(&target->lock);
    if (is_of_target) {
        note_answer(target, turn, found ? CFRetain(found) : NULL, *error);
    }
}

static const void *retain(const void *info)
{
    return CFRetain(info);
}

static void release(const void *info)
{
    CFRelease(info);
}

CFHostRef reach_host_create(reach_target_ref target)
{
    CFHostClientContext context = {0, target, retain, release, NULL};
    CFHostRef host = CFHostCreateWithName(NULL, target->name);

    if (host && !CFHostSetClient(host, host_called, &context)) {
        CFRelease(host);
        host = NULL;
    }
    return host;
}

void reach_host_go_on(CFHostRef host)
{
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    CFStringRef mode = CFRunLoopCopyCurrentMode(loop);

    if (mode) {
        CFHostScheduleWithRunLoop(host, loop, mode);
        CFRelease(mode);
    }
}

void reach_host_end(CFHostRef host)
{
    (void)CFHostSetClient(host, NULL, NULL);
    CFHostCancelInfoResolution(host, kCFHostAddresses);
    CFRelease(host);
}

/* ---- a queue ---- */

struct reach_question {
    reach_target_ref target; /* a reference */
    uint64_t turn;
};

static void ask_away(void *info)
{
    struct reach_question *question = info;
    CFArrayRef addresses;
    CFStreamError error;

    (void)reach_ask_and_wait(question->target->name, &addresses, &error);
    note_answer(question->target, question->turn, addresses, error);
    CFRelease(question->target);
    free(question);
}

/* Returns 0 or an errno. */
static int ask_for_queue(reach_target_ref target, uint64_t turn)
{
    struct reach_question *question = malloc(sizeof *question);

    if (!question) {
        return ENOMEM;
    }
    *question = (struct reach_question){(reach_target_ref)(uintptr_t)CFRetain(target), turn};
    reach_queue_perform_away(question, ask_away);
    return 0;
}

/* ---- asking ---- */

/* A question that begins. */
struct reach_turn {
    CFHostRef host; /* that asks; a reference, or NULL */
    bool is_for_queue;
    uint64_t turn;
};

REQUIRES(the_service_lock) static struct reach_turn begin_turn(reach_target_ref target)
{
    struct reach_turn begun = {NULL, false, target->turn};

    if (target->is_asking) {
        target->asks_again = true;
        return begun;
    }
    if (target->host) {
        begun.host = (CFHostRef)(uintptr_t)CFRetain(target->host);
        reach_look_later(target, after_lack_ns); /* whether it goes on */
    }
    begun.is_for_queue = target->queue_source != NULL;
    target->is_asking = begun.host || begun.is_for_queue;
    return begun;
}

void reach_ask(reach_target_ref target)
{
    CFStreamError error = {0, 0};
    struct reach_turn begun;

    service_lock_take(&target->lock);
    begun = begin_turn(target);
    service_lock_drop(&target->lock);
    if (begun.host) {
        (void)CFHostStartInfoResolution(begun.host, kCFHostAddresses, &error);
        CFRelease(begun.host);
    } else if (begun.is_for_queue) {
        error = (CFStreamError){kCFStreamErrorDomainPOSIX, ask_for_queue(target, begun.turn)};
    }
    if (error.error != 0) {
        note_answer(target, begun.turn, NULL, error);
    }
}
