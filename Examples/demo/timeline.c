/* SPDX-License-Identifier: Apache-2.0 */
/* See timeline.h. The state is that of the one time line there is. */
#include "timeline.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* How a kind of event looks. */
struct look {
    const char *sign; /* on a terminal */
    const char *plain_sign;
    const char *colour;
    const char *plural; /* for the last lines */
};

static const struct look looks[event_kinds] = {
    [event_timer] = {"●", "*", "\033[33m", "timer beats"},
    [event_input] = {"▲", "^", "\033[32m", "notices of input"},
    [event_command] = {"■", "#", "\033[35m", "commands"},
    [event_note] = {"·", "-", "\033[36m", "notes"},
};

static const char *const dim = "\033[2m";
static const char *const bold = "\033[1m";
static const char *const blue = "\033[34m";

static bool is_coloured;
static int columns; /* of the terminal; 0: no limit */
static int column; /* printed on this line so far */
static int event_column = 54; /* where the first event stands that comes after a sleep */
static double began;
static double slept_since;
static double slept;
static unsigned passes;
static unsigned sleeps;
static unsigned counts[event_kinds];

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

double timeline_seconds(void)
{
    return now() - began;
}

/* ---- pieces of a line ---- */

static int width_of(const char *text)
{
    int width = 0;

    for (; *text; text++) {
        width += (*text & 0xc0) != 0x80; /* not the inside of a UTF-8 character */
    }
    return width;
}

static void put(const char *colour, const char *text)
{
    if (is_coloured && colour) {
        (void)printf("%s%s\033[0m", colour, text);
    } else {
        (void)fputs(text, stdout);
    }
    column += width_of(text);
}

static void putf(const char *colour, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void putf(const char *colour, const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    put(colour, text);
}

static void end_line(void)
{
    if (column > 0) {
        (void)putchar('\n');
        column = 0;
    }
}

static void pad_to(int target)
{
    while (column < target) {
        (void)putchar(' ');
        column++;
    }
}

static void step(const char *name)
{
    put(dim, is_coloured ? " › " : " > ");
    put(blue, name);
}

static void begin_pass(void)
{
    end_line();
    passes++;
    putf(dim, "%9.4f s", timeline_seconds());
    putf(bold, "%6u  ", passes);
    put(blue, "timers");
}

/* ---- the observer ---- */

static void observe(CFRunLoopObserverRef observer, CFRunLoopActivity activity, void *info)
{
    (void)observer, (void)info;
    switch (activity) {
    case kCFRunLoopEntry:
        putf(dim, "%9.4f s        the run begins\n", timeline_seconds());
        column = 0;
        break;
    case kCFRunLoopBeforeTimers:
        begin_pass();
        break;
    case kCFRunLoopBeforeSources:
        step("sources");
        break;
    case kCFRunLoopBeforeWaiting:
        sleeps++;
        slept_since = now();
        step("asleep");
        break;
    case kCFRunLoopAfterWaiting:
        slept += now() - slept_since;
        putf(dim, "%8.1f ms", (now() - slept_since) * 1e3);
        step("awake");
        pad_to(event_column);
        break;
    case kCFRunLoopExit:
        end_line();
        putf(dim, "%9.4f s        the run ends\n", timeline_seconds());
        column = 0;
        break;
    default:
        break;
    }
    (void)fflush(stdout); /* the reader sees the loop fall asleep */
}

/* ---- events ---- */

static void begin_event(enum event_kind kind)
{
    const struct look *look = &looks[kind];

    counts[kind]++;
    if (column == 0) {
        pad_to(event_column);
    }
    put(NULL, "  ");
    put(look->colour, is_coloured ? look->sign : look->plain_sign);
    put(NULL, " ");
}

/* What fits on the terminal's line. */
static void put_fitting(const char *colour, char *text)
{
    int left = columns > 0 ? columns - column - 1 : 1000;
    char *end = text;

    for (; *end && left > 0; end++) {
        left -= (end[1] & 0xc0) != 0x80;
    }
    if (*end) {
        *end = '\0';
    }
    put(colour, text);
}

void timeline_event(enum event_kind kind, const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    begin_event(kind);
    put_fitting(looks[kind].colour, text);
    (void)fflush(stdout);
}

void timeline_text(enum event_kind kind, const char *label, const char *text, size_t length)
{
    enum { longest = 60 };
    char shown[longest + 1];
    size_t count = 0;
    bool is_cut = length > longest;

    for (size_t i = 0; i < length && count < longest; i++) {
        unsigned char byte = (unsigned char)text[i];

        shown[count++] = (char)(byte < 0x20 || byte >= 0x7f ? '.' : byte);
    }
    shown[count] = '\0';
    timeline_event(kind, "%s \"%s%s\"", label, shown, is_cut ? "..." : "");
}

/* ---- beginning and end ---- */

static void explain(enum event_kind kind, const char *what)
{
    begin_event(kind);
    put(looks[kind].colour, what);
    counts[kind] = 0;
}

static void heading(const char *input, const char *ending)
{
    put(bold, "One run loop, and what it does\n");
    column = 0;
    (void)printf("  input     %s\n", input);
    (void)printf("  ends      %s\n\n", ending);
    (void)printf("  Each line is one pass. An observer writes it as it hears of the steps: before ");
    put(blue, "timers");
    (void)printf(", before\n  ");
    put(blue, "sources");
    (void)printf(", falls ");
    put(blue, "asleep");
    (void)printf(", ");
    put(blue, "awake");
    (void)printf(" again. What the loop calls stands where it calls it:\n  ");
    explain(event_timer, "two timers");
    explain(event_input, "input is ready");
    explain(event_command, "a command from a second thread");
    explain(event_note, "anything else");
    (void)printf("\n\n");
    put(dim, "       time  pass\n");
    column = 0;
}

void timeline_begin(CFRunLoopRef loop, CFStringRef mode, const char *input, const char *ending)
{
    CFRunLoopObserverRef observer = CFRunLoopObserverCreate(NULL, kCFRunLoopAllActivities, true, 0, observe, NULL);
    struct winsize size;

    is_coloured = isatty(STDOUT_FILENO) != 0;
    columns = is_coloured && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    began = now();
    heading(input, ending);
    CFRunLoopAddObserver(loop, observer, mode);
    CFRelease(observer);
}

static const char *reason(CFRunLoopRunResult result)
{
    switch (result) {
    case kCFRunLoopRunFinished:
        return "the mode was empty (kCFRunLoopRunFinished)";
    case kCFRunLoopRunStopped:
        return "CFRunLoopStop was called (kCFRunLoopRunStopped)";
    case kCFRunLoopRunTimedOut:
        return "the time was up (kCFRunLoopRunTimedOut)";
    default:
        return "a source was handled (kCFRunLoopRunHandledSource)";
    }
}

void timeline_end(CFRunLoopRunResult result)
{
    double whole = timeline_seconds();
    struct timespec used;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    end_line();
    (void)printf("\n%u passes and %u sleeps in %.2f s", passes, sleeps, whole);
    for (int kind = 0; kind < event_note; kind++) {
        (void)printf(", %u %s", counts[kind], looks[kind].plural);
    }
    (void)printf(".\nAsleep for %.1f %% of the time; %.1f ms of processor time in all.\n", 100 * slept / whole,
                 (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6);
    (void)printf("The run has ended because %s.\n", reason(result));
}
