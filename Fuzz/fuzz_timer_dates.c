/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timers with arbitrary doubles as dates and intervals, under the fake clocks, against naive arithmetic in long doubles.
 *
 * A double of today is exact to 120 ns only, and the library keeps its distance between the clocks while it jitters by up to a microsecond:
 * so a timer must not fire before its date, and must have fired two microseconds after it.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "fake_kernel.h"

static const long double latest_date = 4039289856.0L; /* 113 */
static const long double longest_s = 504911232.0L;
static const long double slack_s = 2e-6L;

struct input {
    const uint8_t *bytes;
    size_t left;
};

static uint8_t next_byte(struct input *input)
{
    if (input->left == 0) {
        return 0;
    }
    input->left--;
    return *input->bytes++;
}

static double next_double(struct input *input)
{
    static const double usual[] = {0,    0.001, 1,     0.1,    3600,     1e-9,      1e-10, -1,
                                   1e10, 5e8,   1e300, -1e300, INFINITY, -INFINITY, NAN,   4039289856.0};
    uint8_t choice = next_byte(input);
    uint8_t raw[8];
    double value;

    if (choice < 128) {
        return usual[choice % 16];
    }
    for (int i = 0; i < 8; i++) {
        raw[i] = next_byte(input);
    }
    memcpy(&value, raw, sizeof value);
    return value;
}

/* Near now, as dates usually are, or anything. */
static CFAbsoluteTime next_date(struct input *input)
{
    uint8_t choice = next_byte(input);
    double value = next_double(input);

    return choice < 160 ? CFAbsoluteTimeGetCurrent() + value : value;
}

/* The naive timer. Times are seconds since the start of the fake clock. */
struct naive {
    bool valid;
    long double due; /* INFINITY: never */
    long double date; /* as reported until it fires */
    bool has_fired;
    long double interval;
};

static int fired;

static void count_firing(CFRunLoopTimerRef timer, void *info)
{
    (void)timer;
    (void)info;
    fired++;
}

static long double seconds_now(void)
{
    return (long double)fake_kernel_elapsed_ns() / 1e9L;
}

static void set_date(struct naive *naive, double date)
{
    long double distance = (long double)date - (long double)CFAbsoluteTimeGetCurrent();

    naive->has_fired = false;
    naive->date = date > (double)latest_date ? latest_date : (long double)date;
    if (isnan(date)) {
        naive->due = INFINITY; /* T2 */
        return;
    }
    distance = naive->date - (long double)CFAbsoluteTimeGetCurrent();
    distance = distance > longest_s ? longest_s : distance;
    naive->due = seconds_now() + (distance < 0 ? 0 : distance); /* 112 */
}

static long double checked_interval(double interval)
{
    if (isnan(interval) || interval <= 0) {
        return 0; /* 109 */
    }
    return interval < 1e-9 ? 1e-9L : (long double)interval; /* 121 */
}

static void check_report(const struct naive *naive, CFRunLoopTimerRef timer)
{
    CFAbsoluteTime date = CFRunLoopTimerGetNextFireDate(timer);

    CHECK(CFRunLoopTimerIsValid(timer) == naive->valid);
    if (!naive->valid) {
        CHECK(date == 0.0); /* 130 */
    } else if (isnan(naive->date)) {
        CHECK(isnan(date));
    } else if (!naive->has_fired) {
        CHECK((long double)date == naive->date); /* 111 */
    }
}

/* Runs once without time and says whether that was right. */
static void run(struct naive *naive, CFRunLoopTimerRef timer)
{
    long double now = seconds_now();
    bool may = naive->valid && now >= naive->due - 2e-7L; /* the precision of a date */
    bool must = naive->valid && now >= naive->due + slack_s;

    fired = 0;
    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    CHECK(fired <= (may ? 1 : 0));
    CHECK(fired >= (must ? 1 : 0));
    if (fired == 0) {
        return;
    }
    if (naive->interval == 0) {
        naive->valid = false; /* 124 */
    } else {
        /* 118, 120: the first of the series that is later than now. What the library says is checked, and then taken as the truth. */
        CFAbsoluteTime date = CFRunLoopTimerGetNextFireDate(timer);
        long double interval = naive->interval > longest_s ? longest_s : naive->interval;
        long double distance = (long double)date - (long double)CFAbsoluteTimeGetCurrent();

        CHECK(distance > -slack_s);
        CHECK(distance <= interval + slack_s);
        if (interval > 1e-3L) {
            long double steps = (now + distance - naive->due) / interval;

            CHECK(fabsl(steps - roundl(steps)) * interval < 1e-5L + fabsl(steps) * 1e-8L);
        }
        naive->has_fired = true;
        naive->due = now + distance;
        naive->date = date;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input input = {bytes, size};
    CFAbsoluteTime date;
    double interval;
    CFRunLoopTimerRef timer;
    struct naive naive = {.valid = true};

    fake_kernel_install();
    date = next_date(&input);
    interval = next_double(&input);
    naive.interval = checked_interval(interval);
    set_date(&naive, date);
    timer = CFRunLoopTimerCreate(NULL, date, interval, 0, 0, count_firing, NULL);
    CHECK(timer);
    CHECK(CFRunLoopTimerGetInterval(timer) == (double)naive.interval);
    CHECK(CFRunLoopTimerDoesRepeat(timer) == (naive.interval > 0));
    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, kCFRunLoopDefaultMode);
    for (int step = 0; step < 16 && input.left > 0; step++) {
        check_report(&naive, timer);
        switch (next_byte(&input) % 4) {
        case 0:
            run(&naive, timer);
            break;
        case 1:
            date = next_date(&input);
            if (naive.valid) {
                set_date(&naive, date);
            }
            CFRunLoopTimerSetNextFireDate(timer, date);
            break;
        case 2: {
            double wait = fabs(next_double(&input));

            fake_kernel_advance(wait < 1e8 ? (int64_t)(wait * 1e9) : 1);
            break;
        }
        default:
            CFRunLoopTimerSetTolerance(timer, next_double(&input));
            CHECK(CFRunLoopTimerGetTolerance(timer) >= 0);
            CHECK(naive.interval == 0 || CFRunLoopTimerGetTolerance(timer) <= (double)naive.interval / 2);
            CFRunLoopTimerSetTolerance(timer, 0);
            break;
        }
    }
    CFRunLoopTimerInvalidate(timer);
    CFRelease(timer);
    return 0;
}
