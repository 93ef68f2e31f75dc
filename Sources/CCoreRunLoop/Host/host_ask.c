/* SPDX-License-Identifier: Apache-2.0 */
/* See host_ask.h. */
#include "Host/host_ask.h"

#include <errno.h>

#include "Host/host_schedule.h"
#include "Host/question.h"
#include "Host/reachability.h"
#include "Stream/Connection/host_address.h"
#include "Stream/Connection/stream_connection.h"
#include "Support/fault.h"

/* ---- the answer ---- */

/* What an answer says of the host: references, or NULL where it says nothing. */
struct host_result {
    CFTypeRef known[host_info_count];
};

static void release_result(struct host_result *result)
{
    for (int info = 0; info < host_info_count; info++) {
        object_release_if_any(result->known[info]);
    }
}

/* Stores the answer, unless the question was given up. What the host knew before goes to `result`. */
REQUIRES(the_item_lock) static bool store(CFHostRef host, struct question *question, struct host_result *result, CFStreamError error)
{
    if (host->question != question || question->is_answered) {
        return false;
    }
    invariant_held(item_lock(host));
    invariant(question->info == question->asked || question->info == kCFHostReachability);
    question->is_answered = true;
    question->error = error;
    for (int info = 0; info < host_info_count; info++) {
        if (result->known[info]) {
            CFTypeRef old = host->known[info];

            host->known[info] = result->known[info];
            result->known[info] = old;
        }
    }
    return true;
}

/* `found` is what was asked for, or NULL with the error. */
EXCLUDES(the_item_lock)
static void answer(CFHostRef host, struct question *question, CFTypeRef found, CFStreamError error)
{
    struct host_result result = {{NULL}};
    bool is_stored;

    if (found) {
        result.known[question->asked] = CFRetain(found);
        error = (CFStreamError){0, 0};
    }
    if (found && question->info == kCFHostReachability) {
        result.known[kCFHostReachability] = reachability_create(found);
        if (!result.known[kCFHostReachability]) {
            error = (CFStreamError){kCFStreamErrorDomainPOSIX, ENOMEM};
        }
    }
    host_lock(host);
    is_stored = store(host, question, &result, error);
    invariant(!is_stored || host->question == question);
    host_unlock(host);
    release_result(&result);
    if (is_stored) {
        host_schedule_signal(host);
    }
}

/* The add-on library calls this with the answer. The last reference to the host may go here, and the question with it. */
static void query_answered(void *context, CFArrayRef found, CFStreamError error)
{
    struct question *question = context;
    CFHostRef host = host_link_retain(&question->link);
    bool is_empty = !found || CFArrayGetCount(found) == 0;

    if (host) {
        answer(host, question, is_empty ? NULL : found, error.domain ? error : (CFStreamError){kCFStreamErrorDomainPOSIX, EADDRNOTAVAIL});
        object_release(host);
    }
}

/* ---- asking ---- */

EXCLUDES(the_item_lock) static CFTypeRef retain_known(CFHostRef host, CFHostInfoType info)
{
    CFTypeRef known;

    host_lock(host);
    known = host->known[info] ? CFRetain(host->known[info]) : NULL;
    host_unlock(host);
    return known;
}

/* Finds what is known without asking anybody; `*ret_found` is a reference or NULL. Returns false if there is no memory. */
EXCLUDES(the_item_lock) static bool find_known(CFHostRef host, CFHostInfoType asked, bool is_any, CFTypeRef *ret_found)
{
    CFArrayRef addresses = NULL;

    *ret_found = NULL;
    if (is_any || (asked == kCFHostNames) == (host->name != NULL)) { /* what the host was made of; `is_any`: also what it has learned */
        *ret_found = retain_known(host, asked);
    }
    if (!*ret_found && asked == kCFHostAddresses) {
        if (!host_address_create(host->name, 0, &addresses)) {
            return false;
        }
        *ret_found = addresses;
    }
    return true;
}

/* Asks the add-on library. Returns 0 or an errno. */
EXCLUDES(the_item_lock) static int query(CFHostRef host, struct question *question)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;
    const CRLStreamNetwork *network = connection_network();
    bool is_of_name = question->asked == kCFHostAddresses;
    CFArrayRef addresses;
    void *made;

    if (!network || (is_of_name ? !network->resolve : !network->resolveAddress)) {
        fault_log_once(&logged, "a host is asked for what only servers know: link libcorerunloop-net (pkg-config corerunloop-net)");
        return ENOSYS;
    }
    if (is_of_name) {
        made = network->resolve(host->name, 0, query_answered, question);
    } else {
        addresses = retain_known(host, kCFHostAddresses);
        invariant(addresses && CFArrayGetCount(addresses) > 0); /* a host has a name or an address */
        made = network->resolveAddress(CFArrayGetValueAtIndex(addresses, 0), query_answered, question);
        CFRelease(addresses);
    }
    if (!made) {
        return ENOMEM;
    }
    invariant(!atomic_load_explicit(&question->query, memory_order_relaxed)); /* it asks once */
    atomic_store_explicit(&question->query, made, memory_order_release);
    scheduled_modes_each(host, &host->modes, network->scheduleQuery, made);
    return 0;
}

/* Answers the question at once, or begins a query. Returns 0 or an errno. */
EXCLUDES(the_item_lock) static int begin(CFHostRef host, struct question *question)
{
    CFTypeRef found;

    if (!find_known(host, question->asked, question->info == kCFHostReachability, &found)) {
        return ENOMEM;
    }
    if (!found) {
        return query(host, question);
    }
    answer(host, question, found, (CFStreamError){0, 0});
    CFRelease(found);
    return 0;
}

/* Makes the question the host's, unless that has one. */
EXCLUDES(the_item_lock) static bool take_turn(CFHostRef host, struct question *question)
{
    bool is_idle;

    host_lock(host);
    is_idle = !host->question;
    if (is_idle) {
        invariant(!question->is_answered);
        host->question = question;
    }
    host_unlock(host);
    return is_idle;
}

/* Takes the question from the host. Returns false if it was given up already. */
EXCLUDES(the_item_lock) static bool take_back(CFHostRef host, struct question *question)
{
    bool is_mine;

    host_lock(host);
    is_mine = host->question == question;
    if (is_mine) {
        host->question = NULL;
    }
    host_unlock(host);
    return is_mine;
}

/* Returns the question with a reference, or NULL with the error. */
EXCLUDES(the_item_lock) static struct question *ask(CFHostRef host, CFHostInfoType info, CFStreamError *ret_error)
{
    struct question *question = question_create(host, info, info == kCFHostReachability ? kCFHostAddresses : info);
    int error = ENOMEM;

    if (question && !take_turn(host, question)) {
        error = EBUSY;
        question_abandon(question);
    } else if (question) {
        error = begin(host, question);
        if (error == 0) {
            return question;
        }
        if (take_back(host, question)) {
            question_abandon(question);
        }
    }
    if (question) {
        question_release(question);
    }
    *ret_error = (CFStreamError){kCFStreamErrorDomainPOSIX, error};
    return NULL;
}

bool host_ask(CFHostRef host, CFHostInfoType info, CFStreamError *ret_error)
{
    struct question *question = ask(host, info, ret_error);

    if (question) {
        *ret_error = (CFStreamError){0, 0};
        question_release(question);
    }
    return question;
}

/* ---- waiting and cancelling ---- */

EXCLUDES(the_item_lock) static bool is_asking(CFHostRef host, const struct question *question)
{
    bool is_mine;

    host_lock(host);
    is_mine = host->question == question;
    host_unlock(host);
    return is_mine;
}

/* Runs the mode until the question is over. If the run finishes at once, there was no memory to add the host's source to the mode. */
EXCLUDES(the_item_lock) static bool await(CFHostRef host, struct question *question, CFStringRef mode, CFStreamError *ret_error)
{
    static const CFTimeInterval for_long = 1e9;
    int reason = ECANCELED;

    while (is_asking(host, question)) {
        if (CFRunLoopRunInMode(mode, for_long, true) == kCFRunLoopRunFinished && take_back(host, question)) {
            question_abandon(question);
            reason = ENOMEM;
        }
    }
    host_lock(host);
    *ret_error = question->is_answered && reason != ENOMEM ? question->error : (CFStreamError){kCFStreamErrorDomainPOSIX, reason};
    host_unlock(host);
    return ret_error->domain == 0;
}

bool host_ask_and_wait(CFHostRef host, CFHostInfoType info, CFStreamError *ret_error)
{
    CFStringRef mode = CFSTR("a host that is waited for");
    CFRunLoopRef loop = CFRunLoopGetCurrent();
    struct question *question;
    bool is_known = false;

    if (!host_schedule_add(host, loop, mode)) {
        *ret_error = (CFStreamError){kCFStreamErrorDomainPOSIX, ENOMEM};
        return false;
    }
    question = ask(host, info, ret_error);
    if (question) {
        is_known = await(host, question, mode, ret_error);
        question_release(question);
    }
    host_schedule_remove(host, loop, mode);
    return is_known;
}

void host_cancel(CFHostRef host, CFHostInfoType info)
{
    struct question *question = question_retain_current(host);

    if (!question) {
        return;
    }
    if (question->info == info && take_back(host, question)) {
        host_schedule_signal(host); /* a thread that waits looks again */
        question_abandon(question);
    }
    question_release(question);
}
