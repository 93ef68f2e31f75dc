/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dates as XML has them (date_text.h). Days are counted from the first of March of the year 0, in years that begin in March, as the leap
 * day is the last one then, and in rounds of 400 years, which all have as many days.
 */
#include "Text/date_text.h"

#include <math.h>
#include <stdio.h>

enum { seconds_of_day = 86400, days_of_round = 146097, years_of_round = 400, days_to_2001 = 730791 };

static int64_t divide_down(int64_t number, int64_t divisor)
{
    return number / divisor - (number % divisor < 0);
}

/* Days of whole years from the beginning of a round, without the leap days that a round lacks at the end of a century. */
static int64_t days_of_years(int64_t years)
{
    return years * 365 + years / 4 - years / 100 + years / years_of_round;
}

/* Days of whole months from the first of March: 31, 30, 31, 30, 31 and again. */
static int64_t days_of_months(int64_t months)
{
    return (months * 153 + 2) / 5;
}

static int64_t days_of_date(int64_t year, int64_t month, int64_t day)
{
    int64_t march_year = month < 3 ? year - 1 : year;
    int64_t round = divide_down(march_year, years_of_round);

    return round * days_of_round + days_of_years(march_year - round * years_of_round) + days_of_months((month + 9) % 12) + day - 1;
}

/* Two digits; -1 if they are none. */
static int64_t two_digits(const uint8_t *text)
{
    return text[0] >= '0' && text[0] <= '9' && text[1] >= '0' && text[1] <= '9' ? (text[0] - '0') * 10 + text[1] - '0' : -1;
}

static bool is_within(int64_t number, int64_t least, int64_t most)
{
    return number >= least && number <= most;
}

/* Reads the year and returns what is behind it, or NULL. */
static const uint8_t *read_year(const uint8_t *text, const uint8_t *end, int64_t *ret_year)
{
    bool is_negative = text < end && *text == '-';
    const uint8_t *at = text + is_negative;
    const uint8_t *first = at;
    int64_t year = 0;

    while (at < end && *at >= '0' && *at <= '9' && year <= INT32_MAX) {
        year = year * 10 + (*at++ - '0');
    }
    *ret_year = is_negative ? -year : year;
    return at > first && year <= INT32_MAX ? at : NULL;
}

bool date_read(const uint8_t *text, size_t length, double *ret_seconds)
{
    int64_t year;
    const uint8_t *at = read_year(text, text + length, &year);
    int64_t month, day, hour, minute, second;

    if (!at || text + length - at != 16 || at[0] != '-' || at[3] != '-' || at[6] != 'T' || at[9] != ':' || at[12] != ':' || at[15] != 'Z') {
        return false;
    }
    month = two_digits(at + 1);
    day = two_digits(at + 4);
    hour = two_digits(at + 7);
    minute = two_digits(at + 10);
    second = two_digits(at + 13);
    if (!is_within(month, 1, 12) || !is_within(day, 1, 31) || !is_within(hour, 0, 24) || !is_within(minute, 0, 59) ||
        !is_within(second, 0, 60)) {
        return false;
    }
    *ret_seconds = (double)((days_of_date(year, month, day) - days_to_2001) * seconds_of_day + hour * 3600 + minute * 60 + second);
    return true;
}

static char *write_part(char *at, char before, int64_t number)
{
    *at++ = before;
    *at++ = (char)('0' + number / 10);
    *at++ = (char)('0' + number % 10);
    return at;
}

/* At least four characters. */
static char *write_year(char *at, int64_t year)
{
    if (!is_within(year, 0, 9999)) {
        return at + sprintf(at, "%04lld", (long long)year);
    }
    *at++ = (char)('0' + year / 1000);
    *at++ = (char)('0' + year / 100 % 10);
    *at++ = (char)('0' + year / 10 % 10);
    *at++ = (char)('0' + year % 10);
    return at;
}

size_t date_write(char text[date_text_size], double seconds)
{
    static const double most = 6.8e16; /* a little more than 2^31 years */
    int64_t whole, days, round, day, year, month, second;
    char *at;

    if (!(fabs(seconds) < most)) {
        return 0;
    }
    whole = (int64_t)seconds;
    whole -= (double)whole > seconds;
    days = divide_down(whole, seconds_of_day) + days_to_2001;
    second = whole - (days - days_to_2001) * seconds_of_day;
    round = divide_down(days, days_of_round);
    day = days - round * days_of_round;
    year = day * years_of_round / days_of_round;
    if (days_of_years(year + 1) <= day && year < years_of_round - 1) {
        year++; /* the guess is a year too low at most */
    } else if (days_of_years(year) > day) {
        year--;
    }
    day -= days_of_years(year);
    month = (day * 5 + 2) / 153;
    day -= days_of_months(month);
    year += round * years_of_round + (month >= 10);
    if (!is_within(year, -INT32_MAX, INT32_MAX)) {
        return 0;
    }
    at = write_year(text, year);
    at = write_part(at, '-', month >= 10 ? month - 9 : month + 3);
    at = write_part(at, '-', day + 1);
    at = write_part(at, 'T', second / 3600);
    at = write_part(at, ':', second / 60 % 60);
    at = write_part(at, ':', second % 60);
    *at++ = 'Z';
    return (size_t)(at - text);
}
