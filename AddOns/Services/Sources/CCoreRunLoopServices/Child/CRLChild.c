/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls on children but those on loops (child_schedule.c), and the object: see child.h. Any thread. */
#include "CRLChild.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "Child/child.h"
#include "Child/child_kernel.h"
#include "Child/child_plan.h"
#include "Support/invariant.h"
#include "service_object.h"

static _Atomic CFTypeID child_type;

/* ---- the object ---- */

/* Nobody else has the child any more (NOT_CHECKED). */
NOT_CHECKED static void finalize(CFTypeRef object)
{
    CRLChildRef child = (CRLChildRef)(uintptr_t)object;

    invariant(!child->watch.descriptor && !child->watch.timer);
    for (size_t i = 0; i < child->end_count; i++) {
        if (child->ends[i].stream) {
            CFRelease(child->ends[i].stream);
        }
        if (child->ends[i].descriptor >= 0) {
            child_kernel.close(child->ends[i].descriptor);
        }
    }
    free(child->ends);
    if (child->process.pid > 0) {
        child_process_leave(&child->process);
    }
    if (child->context.release) {
        child->context.release(child->context.info);
    }
}

static CFStringRef copy_description(CFTypeRef object)
{
    CRLChildRef child = (CRLChildRef)(uintptr_t)object;
    CFStringRef context = child->context.copyDescription ? child->context.copyDescription(child->context.info) : NULL;
    CRLChildEnd end = {.waitStatus = 0};
    bool has_ended = child_process_look(&child->process, &end);
    CFStringRef text =
        CFStringCreateWithFormat(NULL, NULL, CFSTR("<CRLChild %p>{pid = %d, ended = %s, status = %d, context = %@}"), object,
                                 (int)child->process.pid, has_ended ? "true" : "false", end.waitStatus, context ? context : CFSTR("none"));

    if (context) {
        CFRelease(context);
    }
    return text;
}

CFTypeID CRLChildGetTypeID(void)
{
    static const CRLTypeFunctions functions = {.name = "CRLChild", .finalize = finalize, .copyDescription = copy_description};

    return service_type(&child_type, &functions);
}

void child_require(CFTypeRef child, const char *function)
{
    service_require(child, CRLChildGetTypeID(), function, "child");
}

/* Takes the program's ends of the pipes out of the plan. Returns false if there is no memory. Nobody else has the child (NOT_CHECKED). */
NOT_CHECKED static bool take_ends(CRLChildRef child, struct child_plan *plan)
{
    child->ends = calloc(plan->slot_count, sizeof *child->ends);
    for (size_t i = 0; child->ends && i < plan->slot_count; i++) {
        struct child_slot *slot = &plan->slots[i];

        if (slot->program_end >= 0) {
            child->ends[child->end_count++] = (struct child_end){slot->number, slot->kind == kCRLChildWrites, slot->program_end, NULL};
            slot->program_end = -1;
        }
    }
    return child->ends != NULL;
}

static CRLChildError start(CRLChildRef child, struct child_plan *plan)
{
    CRLChildError error = {kCRLChildStepProcess, ENOMEM};
    int result = child_plan_open(plan);

    if (result < 0) {
        error.error = -result;
    } else if (take_ends(child, plan) && !child_process_start(&child->process, plan, &error)) {
        child->process.pid = 0;
        invariant(error.error != 0);
    }
    return error;
}

CRLChildRef CRLChildCreate(CFAllocatorRef allocator, const CRLChildSpecification *specification, CRLChildEndCallBack callout,
                           const CRLSourceContext *context, CRLChildError *error)
{
    CRLChildError failure = {kCRLChildStepProcess, ENOMEM};
    struct child_plan plan;
    int made = context && context->version != 0 ? -EINVAL : child_plan_make(&plan, specification);
    CRLChildRef child = made == 0 ? CRLTypeCreateObject(allocator, CRLChildGetTypeID(), sizeof *child) : NULL;

    if (made == -EINVAL) {
        failure = (CRLChildError){kCRLChildStepSpecification, EINVAL};
    }
    if (child) {
        failure = start(child, &plan);
        if (failure.error != 0) {
            CFRelease(child);
            child = NULL;
        }
    }
    if (made == 0) {
        child_plan_free(&plan);
    }
    if (child) {
        child->callout = callout;
    }
    if (child && context) {
        child->context = *context;
        child->context.info = context->retain ? (void *)(uintptr_t)context->retain(context->info) : context->info;
    }
    if (error) {
        *error = failure;
    }
    return child;
}

pid_t CRLChildGetProcessIdentifier(CRLChildRef child)
{
    child_require(child, "CRLChildGetProcessIdentifier");
    return child->process.pid;
}

/* ---- pipes ---- */

static struct child_end *end_of(CRLChildRef child, int number, bool is_read)
{
    for (size_t i = 0; i < child->end_count; i++) {
        if (child->ends[i].number == number && child->ends[i].is_read == is_read) {
            return &child->ends[i];
        }
    }
    return NULL;
}

static CFTypeRef copy_stream(CRLChildRef child, int number, bool is_read)
{
    struct child_end *end = end_of(child, number, is_read);
    CFTypeRef stream = NULL;

    service_lock_take(&child_lock);
    if (end && end->descriptor >= 0) {
        end->stream = is_read ? (CFTypeRef)CRLReadStreamCreateWithDescriptor(NULL, end->descriptor, true)
                              : (CFTypeRef)CRLWriteStreamCreateWithDescriptor(NULL, end->descriptor, true);
        end->descriptor = end->stream ? -1 : end->descriptor;
    }
    stream = end && end->stream ? CFRetain(end->stream) : NULL;
    service_lock_drop(&child_lock);
    return stream;
}

CFReadStreamRef CRLChildCopyReadStream(CRLChildRef child, int number)
{
    child_require(child, "CRLChildCopyReadStream");
    return (CFReadStreamRef)(uintptr_t)copy_stream(child, number, true);
}

CFWriteStreamRef CRLChildCopyWriteStream(CRLChildRef child, int number)
{
    child_require(child, "CRLChildCopyWriteStream");
    return (CFWriteStreamRef)(uintptr_t)copy_stream(child, number, false);
}

int CRLChildTakeDescriptor(CRLChildRef child, int number)
{
    struct child_end *end;
    int taken = -1;

    child_require(child, "CRLChildTakeDescriptor");
    end = end_of(child, number, true);
    end = end ? end : end_of(child, number, false);
    service_lock_take(&child_lock);
    if (end) {
        taken = end->descriptor;
        end->descriptor = -1;
    }
    service_lock_drop(&child_lock);
    return taken;
}

/* ---- the process ---- */

Boolean CRLChildGetEnd(CRLChildRef child, CRLChildEnd *end)
{
    CRLChildEnd ignored;

    child_require(child, "CRLChildGetEnd");
    return child_process_look(&child->process, end ? end : &ignored);
}

Boolean CRLChildKill(CRLChildRef child, int signalNumber, Boolean wholeGroup)
{
    child_require(child, "CRLChildKill");
    return child_process_signal(&child->process, signalNumber, wholeGroup);
}

Boolean CRLChildTerminate(CRLChildRef child, CFTimeInterval grace, Boolean wholeGroup)
{
    bool waits = grace > 0;

    child_require(child, "CRLChildTerminate");
    if (!child_process_signal(&child->process, waits ? SIGTERM : SIGKILL, wholeGroup)) {
        return false;
    }
    if (wholeGroup) {
        child_process_kill_group_at_end(&child->process);
    }
    if (waits) {
        child_schedule_kill(child, CFAbsoluteTimeGetCurrent() + grace, wholeGroup);
    }
    return true;
}
