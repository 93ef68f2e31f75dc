/* SPDX-License-Identifier: Apache-2.0 */
/* libuv as the host. */
#include "host.h"

#include <CRLHostLibuv.h>

const bool host_can_nest = false;
static uv_poll_t *attached;
static uv_check_t counter;
static uv_timer_t timers[4];
static void (*functions[4])(void);
static unsigned timer_count;
static unsigned long turns;

static void count_turn(uv_check_t *check)
{
    (void)check;
    turns++;
}

void host_make(void)
{
    (void)uv_check_init(uv_default_loop(), &counter);
    (void)uv_check_start(&counter, count_turn);
}

bool host_attach(void (*stopped)(void *info), void *info)
{
    uv_poll_t *poll = CRLHostLibuvAttach(uv_default_loop(), stopped, info);

    attached = poll ? poll : attached;
    return poll != NULL;
}

void host_detach(void)
{
    CRLHostLibuvDetach(attached);
}

void host_run(void)
{
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

void host_quit(void)
{
    uv_stop(uv_default_loop());
}

void host_run_nested(void)
{
}

static void tick(uv_timer_t *timer)
{
    functions[timer - timers]();
}

void host_every(unsigned interval_ms, void (*function)(void))
{
    uv_timer_t *timer = &timers[timer_count];

    functions[timer_count++] = function;
    (void)uv_timer_init(uv_default_loop(), timer);
    (void)uv_timer_start(timer, tick, interval_ms, interval_ms);
}

unsigned long host_turns(void)
{
    return turns;
}
