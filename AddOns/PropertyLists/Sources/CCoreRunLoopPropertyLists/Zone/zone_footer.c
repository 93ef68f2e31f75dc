/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the rule of a zone, and says what it means for an instant (zone_footer.h). */
#include "Zone/zone_footer.h"

#include <string.h>

#include "Zone/calendar.h"

enum { shortest_abbreviation = 3, most_offset_hours = 24, most_moment_hours = 167, years_around = 2, most_changes = 4 * years_around + 2 };

/* ---- reading ---- */

struct footer_reader {
    const char *next;
    const char *end;
};

static char peek(const struct footer_reader *reader)
{
    return reader->next < reader->end ? *reader->next : '\0';
}

static bool take(struct footer_reader *reader, char wanted)
{
    if (reader->next == reader->end || *reader->next != wanted) {
        return false;
    }
    reader->next++;
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_abbreviation(struct footer_reader *reader, char *ret_abbreviation)
{
    bool is_quoted = take(reader, '<');
    size_t length = 0;

    for (;; length++) {
        char c = peek(reader);
        bool belongs = is_letter(c) || (is_quoted && (is_digit(c) || c == '+' || c == '-'));

        if (!belongs) {
            break;
        }
        if (length == longest_abbreviation) {
            return false;
        }
        ret_abbreviation[length] = c;
        reader->next++;
    }
    ret_abbreviation[length] = '\0';
    return length >= shortest_abbreviation && (!is_quoted || take(reader, '>'));
}

static bool take_number(struct footer_reader *reader, int least, int most, int *ret_number)
{
    int number = 0;

    if (!is_digit(peek(reader))) {
        return false;
    }
    for (; is_digit(peek(reader)); reader->next++) {
        number = number * 10 + (*reader->next - '0');
        if (number > most) {
            return false;
        }
    }
    *ret_number = number;
    return number >= least;
}

/* [+-]hh[:mm[:ss]] */
static bool take_time(struct footer_reader *reader, int most_hours, int32_t *ret_s)
{
    bool is_negative = take(reader, '-');
    int hours;
    int minutes = 0;
    int seconds = 0;

    if (!is_negative) {
        (void)take(reader, '+');
    }
    if (!take_number(reader, 0, most_hours, &hours)) {
        return false;
    }
    if (take(reader, ':') && (!take_number(reader, 0, 59, &minutes) || (take(reader, ':') && !take_number(reader, 0, 59, &seconds)))) {
        return false;
    }
    *ret_s = (is_negative ? -1 : 1) * (hours * 3600 + minutes * 60 + seconds);
    return true;
}

static bool take_moment(struct footer_reader *reader, struct zone_moment *ret_moment)
{
    bool is_day;

    *ret_moment = (struct zone_moment){.time_s = 7200};
    if (!take(reader, ',')) {
        return false;
    }
    if (take(reader, 'M')) {
        ret_moment->kind = zone_day_of_week;
        is_day = take_number(reader, 1, 12, &ret_moment->month) && take(reader, '.') && take_number(reader, 1, 5, &ret_moment->week) &&
                 take(reader, '.') && take_number(reader, 0, 6, &ret_moment->day);
    } else if (take(reader, 'J')) {
        ret_moment->kind = zone_day_without_leap_day;
        is_day = take_number(reader, 1, 365, &ret_moment->day);
    } else {
        ret_moment->kind = zone_day_of_year;
        is_day = take_number(reader, 0, 365, &ret_moment->day);
    }
    return is_day && (!take(reader, '/') || take_time(reader, most_moment_hours, &ret_moment->time_s));
}

bool zone_footer_parse(const char *text, size_t length, struct zone_footer *ret_footer)
{
    static const char usual_rule[] = ",M3.2.0,M11.1.0"; /* where TZ has none, as in the C library */
    struct footer_reader reader = {text, text + length};
    int32_t west_s;

    *ret_footer = (struct zone_footer){.has_daylight = false};
    if (!take_abbreviation(&reader, ret_footer->standard.abbreviation) || !take_time(&reader, most_offset_hours, &west_s)) {
        return false;
    }
    ret_footer->standard.offset_s = -west_s;
    if (reader.next == reader.end) {
        return true;
    }
    ret_footer->has_daylight = true;
    if (!take_abbreviation(&reader, ret_footer->daylight.abbreviation)) {
        return false;
    }
    west_s -= 3600;
    if (reader.next != reader.end && peek(&reader) != ',' && !take_time(&reader, most_offset_hours, &west_s)) {
        return false;
    }
    ret_footer->daylight.offset_s = -west_s;
    if (reader.next == reader.end) {
        reader = (struct footer_reader){usual_rule, usual_rule + sizeof usual_rule - 1};
    }
    return take_moment(&reader, &ret_footer->daylight_begins) && take_moment(&reader, &ret_footer->daylight_ends) &&
           reader.next == reader.end;
}

/* ---- what it means ---- */

static int64_t day_of_moment(const struct zone_moment *moment, int64_t year)
{
    int64_t first = calendar_first_day(year);

    if (moment->kind == zone_day_of_year) {
        return first + moment->day;
    }
    if (moment->kind == zone_day_without_leap_day) {
        return first + moment->day - 1 + (moment->day > 59 && calendar_is_leap(year));
    }
    int64_t first_of_month = first + calendar_days_before(moment->month, year);
    int64_t weekday = first_of_month + 4 - 7 * floor_quotient(first_of_month + 4, 7); /* 1970 began on a Thursday */
    int64_t day = (moment->day - weekday + 7) % 7 + 7 * (moment->week - 1);
    return first_of_month + (day < calendar_days_in(moment->month, year) ? day : day - 7);
}

struct zone_change {
    int64_t instant;
    bool is_daylight; /* from then on */
};

/* By their instants. Of two at the same one, that to daylight saving time comes last and counts: it may last all year. */
static bool comes_before(const struct zone_change *one, const struct zone_change *other)
{
    return one->instant < other->instant || (one->instant == other->instant && !one->is_daylight && other->is_daylight);
}

/* The changes of the years around a year, in their order and without those that change nothing. */
static int list_changes(const struct zone_footer *footer, int64_t middle, struct zone_change ret_changes[most_changes])
{
    struct zone_change all[most_changes];
    int count = 0;
    int kept = 0;

    for (int64_t year = middle - years_around; year <= middle + years_around; year++) {
        for (int i = 0; i < 2; i++) {
            const struct zone_moment *moment = i == 0 ? &footer->daylight_begins : &footer->daylight_ends;
            int32_t offset_s = i == 0 ? footer->standard.offset_s : footer->daylight.offset_s;
            struct zone_change change = {day_of_moment(moment, year) * seconds_of_day + moment->time_s - offset_s, i == 0};
            int place = count++;

            for (; place > 0 && comes_before(&change, &all[place - 1]); place--) {
                all[place] = all[place - 1];
            }
            all[place] = change;
        }
    }
    /* The last one only shows what is at the instant of the one before: one of the next year may be at its own. */
    for (int i = 0; i + 1 < count; i++) {
        bool is_last = all[i + 1].instant != all[i].instant;

        if (is_last && (kept == 0 || ret_changes[kept - 1].is_daylight != all[i].is_daylight)) {
            ret_changes[kept++] = all[i];
        }
    }
    return kept;
}

struct zone_period zone_footer_period(const struct zone_footer *footer, int64_t instant)
{
    struct zone_period period = {.start = INT64_MIN, .end = INT64_MAX};

    if (footer->has_daylight) {
        struct zone_change changes[most_changes];
        int count = list_changes(footer, calendar_date_of(floor_quotient(instant, seconds_of_day)).year, changes);

        for (int i = 0; i < count && period.end == INT64_MAX; i++) {
            if (changes[i].instant <= instant) {
                period.start = i > 0 ? changes[i].instant : INT64_MIN;
                period.is_daylight = changes[i].is_daylight;
            } else {
                period.end = changes[i].instant;
            }
        }
    }
    const struct zone_phase *phase = period.is_daylight ? &footer->daylight : &footer->standard;
    period.offset_s = phase->offset_s;
    period.abbreviation = phase->abbreviation;
    return period;
}
