/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on work, and the object: see work.h. Any thread. */
#include "CRLWork.h"

#include "Support/invariant.h"
#include "Work/work.h"
#include "Work/work_kernel.h"
#include "service_object.h"

static _Atomic CFTypeID work_type;

static void finalize(CFTypeRef object)
{
    CRLWorkRef work = (CRLWorkRef)(uintptr_t)object;

    invariant(!work->port);
    if (work->context.release) {
        work->context.release(work->context.info);
    }
}

static CFStringRef copy_description(CFTypeRef object)
{
    static const char *const states[] = {"waiting", "running", "ended", "told"};
    CRLWorkRef work = (CRLWorkRef)(uintptr_t)object;
    CFStringRef context = work->context.copyDescription ? work->context.copyDescription(work->context.info) : NULL;
    CFStringRef text;
    enum work_state state;

    service_lock_take(&work_lock);
    state = work->state;
    service_lock_drop(&work_lock);
    text = CFStringCreateWithFormat(NULL, NULL, CFSTR("<CRLWork %p>{state = %s, context = %@}"), object, states[state],
                                    context ? context : CFSTR("none"));
    if (context) {
        CFRelease(context);
    }
    return text;
}

CFTypeID CRLWorkGetTypeID(void)
{
    static const CRLTypeFunctions functions = {.name = "CRLWork", .finalize = finalize, .copyDescription = copy_description};

    return service_type(&work_type, &functions);
}

/* Gives the work to the pool, which has a reference then. False: there is no memory, no thread or no loop. */
EXCLUDES(the_service_lock) static bool give(CRLWorkRef work, CFRunLoopRef loop, CFRunLoopMode mode)
{
    struct work_port_call call = {NULL, NULL, NULL};
    bool is_given = false;
    bool calls = false;

    service_lock_take(&work_lock);
    work->port = work_port_enter(loop, mode);
    if (work->port) {
        is_given = work_pool_add(work, &calls);
        if (is_given) {
            (void)CFRetain(work);
        } else {
            call = work_port_leave(work);
        }
    }
    service_lock_drop(&work_lock);
    if (calls) {
        work_kernel.idle_call();
    }
    work_port_call_make(call);
    return is_given;
}

bool work_give(CRLWorkRef work)
{
    bool calls = false;
    bool is_given;

    invariant(!work->port);
    (void)CFRetain(work);
    service_lock_take(&work_lock);
    is_given = work_pool_add(work, &calls);
    service_lock_drop(&work_lock);
    if (calls) {
        work_kernel.idle_call();
    }
    if (!is_given) {
        CFRelease(work);
    }
    return is_given;
}

bool work_take_back(CRLWorkRef work)
{
    bool is_back;

    service_lock_take(&work_lock);
    is_back = work->state == work_waiting;
    if (is_back) {
        work_pool_remove(work);
        work->state = work_told;
    }
    service_lock_drop(&work_lock);
    return is_back;
}

CRLWorkRef work_make(CRLWorkFunction function, CRLWorkCallBack done, const CRLSourceContext *context)
{
    CRLWorkRef made = CRLTypeCreateObject(NULL, CRLWorkGetTypeID(), sizeof *made);

    if (!made) {
        return NULL;
    }
    made->function = function;
    made->done = done;
    made->state = work_told;
    if (context) {
        made->context = *context;
        made->context.info = context->retain ? (void *)(uintptr_t)context->retain(context->info) : context->info;
    }
    return made;
}

CRLWorkRef CRLRunLoopPerformInBackground(CFRunLoopRef loop, CFRunLoopMode mode, CRLWorkFunction work, CRLWorkCallBack done,
                                         const CRLSourceContext *context)
{
    CRLWorkRef made;

    service_require(loop, CFRunLoopGetTypeID(), "CRLRunLoopPerformInBackground", "run loop");
    service_require(mode, CFStringGetTypeID(), "CRLRunLoopPerformInBackground", "mode");
    made = work && !(context && context->version != 0) ? work_make(work, done, context) : NULL;
    if (!made) {
        return NULL;
    }
    if (!give(made, loop, mode)) {
        if (!made->context.retain) {
            made->context.release = NULL; /* the info stays the caller's */
        }
        CFRelease(made);
        return NULL;
    }
    return made;
}

Boolean CRLWorkCancel(CRLWorkRef work)
{
    struct work_port_call call = {NULL, NULL, NULL};
    bool is_first;

    service_require(work, CRLWorkGetTypeID(), "CRLWorkCancel", "work");
    service_lock_take(&work_lock);
    is_first = work->state == work_waiting && work->port;
    if (is_first) {
        work_pool_remove(work);
        call = work_port_tell(work, kCRLWorkCancelled);
    }
    service_lock_drop(&work_lock);
    work_port_call_make(call);
    return is_first;
}
