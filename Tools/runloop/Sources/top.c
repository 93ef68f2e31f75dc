/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runloop top: samples the statistics of the user's processes again and again (sample.c), and shows what their loops did in between. On a
 * terminal keys choose the order and a loop, whose callouts are then shown.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "json_string.h"
#include "runloop.h"
#include "sample.h"

/* ---- the terminal ---- */

static struct termios terminal_before;
static bool has_keys; /* the terminal passes on each key */

static void give_terminal_back(void)
{
    if (has_keys) {
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
    }
}

static void end_by_signal(int signal)
{
    give_terminal_back();
    _exit(128 + signal);
}

static void take_terminal(void)
{
    struct termios own;

    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &terminal_before) == 0) {
        own = terminal_before;
        own.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
        (void)signal(SIGINT, end_by_signal);
        (void)signal(SIGTERM, end_by_signal);
        (void)signal(SIGHUP, end_by_signal);
        has_keys = tcsetattr(STDIN_FILENO, TCSANOW, &own) == 0;
        (void)atexit(give_terminal_back);
    }
}

static size_t columns(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40 ? size.ws_col : 80;
}

static size_t lines(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row >= 5 ? size.ws_row : SIZE_MAX;
}

/* ---- what is shown ---- */

struct view {
    char order; /* the key that chose it */
    size_t chosen; /* the line whose loop is chosen */
    bool is_open; /* its callouts are shown */
    bool shows_help;
};

static const char help[] = "q ends     h this help     up, down (or k, j) choose a loop     Enter opens it, and closes it\n"
                           "order: b busy  c calls/s  p passes/s  l latest timer  w wait for a reply  n process\n";

struct line {
    const struct seen *seen;
    struct figures figures;
};

static char line_order;

static double rank_of(const struct line *line)
{
    switch (line_order) {
    case 'b':
        return line->figures.busy;
    case 'c':
        return line->figures.callouts;
    case 'p':
        return line->figures.passes;
    case 'l':
        return (double)line->seen->latest_ns;
    case 'w':
        return line->seen->asked_ns > 0 ? -(double)line->seen->asked_ns : -1e30;
    default:
        return 0;
    }
}

static int by_rank(const void *one, const void *other)
{
    const struct line *a = one;
    const struct line *b = other;

    return rank_of(a) != rank_of(b) ? (rank_of(a) > rank_of(b) ? -1 : 1) : a->seen < b->seen ? -1 : a->seen > b->seen;
}

/* A number in seven columns. */
static const char *short_number(double number, char ret_text[8])
{
    (void)snprintf(ret_text, 8,
                   number < 99999.5 ? "%7.1f"
                   : number < 1e7   ? "%6.0fk"
                                    : "%6.0fM",
                   number < 99999.5 ? number
                   : number < 1e7   ? number / 1e3
                   : number < 1e12  ? number / 1e6
                                    : 999999);
    return ret_text;
}

/* What a loop does, in the last column. */
static void describe_state(const struct sample *sample, const struct line *line, char *ret_text, size_t size)
{
    const struct seen *seen = line->seen;
    const char *name;

    if (seen->asked_ns > 0) {
        (void)describe_wait(sample, seen, ret_text, size);
    } else {
        name = function_name(seen, seen->longest_function);
        copy_plain(ret_text, size, name ? name : "");
    }
}

static void write_line(const struct sample *sample, const struct line *line, bool is_chosen, size_t width)
{
    const struct seen *seen = line->seen;
    char passes[8], calls[8], late[8];
    char state[1024];
    char text[2048];

    describe_state(sample, line, state, sizeof state);
    (void)snprintf(text, sizeof text, "%8d %-11.11s %s %s %5.1f%% %5.1f%% %s %s", (int)seen->thread, seen->name,
                   short_number(line->figures.passes, passes), short_number(line->figures.callouts, calls), line->figures.busy * 100,
                   line->figures.processor * 100, short_number((double)seen->latest_ns / 1e6, late), state);
    (void)printf("%s%.*s%s\n", is_chosen ? "\033[7m" : "", (int)width, text, is_chosen ? "\033[0m" : "");
}

static void write_callouts(const struct sample *sample, const struct seen *seen, size_t width)
{
    char text[2048];
    char name[512];

    (void)printf("\n%.*s\n", (int)width, "   CALLS   IN ALL s LONGEST ms  CALLOUT");
    for (uint32_t i = 0; i < seen->function_count; i++) {
        const struct seen_function *function = &seen->functions[i];
        const char *found = function_name(seen, function->function);

        copy_plain(name, sizeof name, found ? found : function->function == 0 ? "others" : "?");
        (void)snprintf(text, sizeof text, "%8" PRIu64 " %10.3f %10.3f  %s, %s", function->count, (double)function->total_ns / 1e9,
                       (double)function->longest_ns / 1e6, name,
                       function->kind < trace_callout_count ? span_kind_name((int)span_of_callout((enum trace_callout)function->kind))
                                                            : "?");
        if (function->descriptor >= 0) {
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), " %d", (int)function->descriptor);
        }
        (void)printf("%.*s\n", (int)width, text);
    }
    if (seen->asked_ns > 0) {
        (void)describe_wait(sample, seen, name, sizeof name);
        (void)printf("it %s\n", name);
    }
}

static void write_table(const struct sample *before, const struct sample *after, double seconds, struct view *view)
{
    struct line *shown = make_room(after->count, sizeof *shown);
    size_t width = isatty(STDOUT_FILENO) ? columns() : 2000;
    size_t room = has_keys ? lines() - (view->shows_help ? 5 : 3) : SIZE_MAX;
    size_t count = 0;

    if (isatty(STDOUT_FILENO)) {
        (void)fputs("\033[H\033[J", stdout);
    }
    for (size_t i = 0; i < after->count; i++) {
        const struct seen *earlier = find_before(before, &after->loops[i]);

        if (earlier) { /* the rates of a new loop come with the next sample */
            shown[count++] = (struct line){&after->loops[i], figures_of(earlier, &after->loops[i], seconds)};
        }
    }
    line_order = view->order;
    qsort(shown, count, sizeof *shown, by_rank);
    view->chosen = count > 0 && view->chosen >= count ? count - 1 : view->chosen;
    if (view->shows_help) {
        (void)fputs(help, stdout);
    }
    (void)printf("%.*s\n", (int)width, "  THREAD NAME        PASSES/s CALLS/s   BUSY   PROC LATE ms LONGEST CALLOUT, OR WAITS FOR");
    for (size_t i = view->is_open ? view->chosen : 0; i < (view->is_open ? view->chosen + 1 : count) && i < count && i < room; i++) {
        write_line(after, &shown[i], has_keys && i == view->chosen, width);
        if (view->is_open) {
            write_callouts(after, shown[i].seen, width);
        }
    }
    if (after->count == 0) {
        (void)puts("no process of this user runs loops with CORERUNLOOP_STATISTICS=1 in its environment");
    }
    free(shown);
}

static void write_text(const char *name, const char *text)
{
    size_t size = strlen(text) + 1;
    char *plain = make_room(size, 1);

    copy_plain(plain, size, text);
    (void)printf("\"%s\": ", name);
    write_json_string(stdout, plain, strlen(plain), "");
    (void)fputs(", ", stdout);
    free(plain);
}

static void write_functions(const struct seen *seen)
{
    (void)fputs("\"functions\": [", stdout);
    for (uint32_t i = 0; i < seen->function_count; i++) {
        const struct seen_function *function = &seen->functions[i];
        const char *name = function_name(seen, function->function);

        (void)fputs(i > 0 ? ", {" : "{", stdout);
        write_text("name", name ? name : "");
        write_text("kind",
                   function->kind < trace_callout_count ? span_kind_name((int)span_of_callout((enum trace_callout)function->kind)) : "");
        (void)printf("\"descriptor\": %d, \"calls\": %" PRIu64 ", \"total_us\": %.3f, \"longest_us\": %.3f}", (int)function->descriptor,
                     function->count, (double)function->total_ns / 1e3, (double)function->longest_ns / 1e3);
    }
    (void)fputs("], ", stdout);
}

static void write_json(const struct sample *before, const struct sample *after, double seconds)
{
    bool is_first = true;

    (void)printf("{\"interval_s\": %.6f, \"loops\": [", seconds);
    for (size_t i = 0; i < after->count; i++) {
        const struct seen *seen = &after->loops[i];
        const struct seen *earlier = find_before(before, seen);
        const char *name = function_name(seen, seen->longest_function);
        struct figures figures;
        char waits[1024];

        if (!earlier) {
            continue;
        }
        figures = figures_of(earlier, seen, seconds);
        (void)printf("%s\n  {\"process\": %d, \"thread\": %d, ", is_first ? "" : ",", (int)seen->process, (int)seen->thread);
        is_first = false;
        write_text("program", seen->program);
        write_text("name", seen->name);
        write_text("longest_callout", name ? name : "");
        (void)printf("\"passes\": %" PRIu64 ", \"sleeps\": %" PRIu64 ", \"callouts\": %" PRIu64 ", \"timers\": %" PRIu64 ", ", seen->passes,
                     seen->sleeps, seen->callouts, seen->timers);
        (void)printf("\"passes_per_s\": %.3f, \"sleeps_per_s\": %.3f, \"callouts_per_s\": %.3f, \"timers_per_s\": %.3f, \"busy\": %.6f, "
                     "\"processor\": %.6f, ",
                     figures.passes, figures.sleeps, figures.callouts, figures.timers, figures.busy, figures.processor);
        write_functions(seen);
        if (seen->asked_ns > 0) {
            (void)describe_wait(after, seen, waits, sizeof waits);
            write_text("waits", waits);
        }
        (void)printf("\"late_us\": %.3f, \"latest_us\": %.3f, \"longest_us\": %.3f, \"queued\": %" PRIu32 "}", figures.late_us,
                     (double)seen->latest_ns / 1e3, (double)seen->longest_ns / 1e3, seen->queued);
    }
    (void)printf("%s]}\n", is_first ? "" : "\n");
}

/* ---- the command ---- */

/* Takes the keys that are there. Returns false if one of them ends the command. */
static bool take_keys(struct view *view, bool *ret_is_changed)
{
    char keys[32];
    ssize_t count = read(STDIN_FILENO, keys, sizeof keys);

    for (ssize_t i = 0; i < count; i++) {
        char key = keys[i];

        if (key == '\033' && i + 2 < count && keys[i + 1] == '[') { /* an arrow */
            key = keys[i + 2] == 'A' ? 'k' : keys[i + 2] == 'B' ? 'j' : ' ';
            i += 2;
        }
        if (key == 'q' || key == 'Q') {
            return false;
        }
        *ret_is_changed = true;
        if (key == 'h' || key == '?') {
            view->shows_help = !view->shows_help;
        } else if (key == 'j') {
            view->chosen++;
        } else if (key == 'k') {
            view->chosen -= view->chosen > 0;
        } else if (key == '\n' || key == '\r') {
            view->is_open = !view->is_open;
        } else if (strchr("bcplwn", key)) {
            view->order = key;
        }
    }
    return count != 0;
}

/* Waits for the end of the interval, or for a key. Returns false if the command is to end. */
static bool wait_for_next(double seconds, struct view *view)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    struct timespec end, now;
    bool is_changed = false;
    double left = seconds;

    if (!has_keys) {
        pause_for(seconds);
        return true;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    while (left > 0 && !is_changed) {
        if (poll(&input, 1, (int)(left * 1e3) + 1) == 1 && !take_keys(view, &is_changed)) {
            return false;
        }
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        left = seconds - (double)(now.tv_sec - end.tv_sec) - (double)(now.tv_nsec - end.tv_nsec) / 1e9;
    }
    return true;
}

int show_top(double interval_s, long count, bool is_json)
{
    struct view view = {.order = 'n'};
    struct sample before;
    struct sample after;
    int status = take_sample(&before);

    if (!is_json) {
        take_terminal();
    }
    for (long i = 0; status == exit_success && (count == 0 || i < count) && wait_for_next(interval_s, &view); i++) {
        status = take_sample(&after);
        if (status == exit_success) {
            double seconds = (double)(after.time_ns - before.time_ns) / 1e9;

            if (is_json) {
                write_json(&before, &after, seconds);
            } else {
                write_table(&before, &after, seconds, &view);
            }
            free(before.loops);
            before = after;
            if (fflush(stdout) != 0) {
                status = fail(exit_error, "standard output cannot be written: %s", strerror(errno));
            }
        }
    }
    return status;
}
