/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones: their files, their rules, how they are found, and beside the C library's localtime_r. */
#define _GNU_SOURCE /* tm_gmtoff */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "Failure/nth_failure.h"
#include "Zone/zone.h"
#include "Zone/zone_footer.h"
#include "Zone/zone_rules.h"
#include "harness.h"

static CFTimeZoneRef zone_named(const char *name)
{
    CFStringRef string = CFStringCreateWithCString(NULL, name, kCFStringEncodingUTF8);
    CFTimeZoneRef zone = CFTimeZoneCreateWithName(NULL, string, false);

    CFRelease(string);
    return zone;
}

static bool is_named(CFTimeZoneRef zone, const char *name)
{
    char bytes[300];

    return zone && CFStringGetCString(CFTimeZoneGetName(zone), bytes, sizeof bytes, kCFStringEncodingUTF8) && strcmp(bytes, name) == 0;
}

/* ---- rules ---- */

/* The offset and the season at an instant, and the next change, as text. */
static const char *told_by(const char *rule, int64_t instant)
{
    static char words[128];
    struct zone_footer footer;

    if (!zone_footer_parse(rule, strlen(rule), &footer)) {
        return "no rule";
    }
    struct zone_period period = zone_footer_period(&footer, instant);
    (void)snprintf(words, sizeof words, "%s %d %d %lld", period.abbreviation, (int)period.offset_s, period.is_daylight,
                   period.end < INT64_MAX ? (long long)period.end : 0);
    return words;
}

TEST(the_rule_of_a_zone_says_what_its_clocks_show, "2207")
{
    static const struct {
        const char *rule;
        int64_t instant;
        const char *told;
    } rows[] = {
        {"UTC0", 0, "UTC 0 0 0"},
        {"<-05>5", 0, "-05 -18000 0 0"},
        {"<+0530>-5:30", 0, "+0530 19800 0 0"},
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1774745999, "CET 3600 0 1774746000"},
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1774746000, "CEST 7200 1 1792890000"},
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1792890000, "CET 3600 0 1806195600"},
        {"NZST-12NZDT,M9.5.0,M4.1.0/3", 1767225600, "NZDT 46800 1 1775311200"},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", 1767225600, "GMT 0 1 1774746000"},
        {"EST5EDT", 1767225600, "EST -18000 0 1772953200"},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1774745999, "-02 -7200 0 1774746000"},
        {"XXX3EDT4,0/0,J365/23", 1767225600, "EDT -14400 1 0"}, /* all year */
        {"AAA0BBB,J60,J61", 1709164800, "AAA 0 0 1709258400"}, /* the first of March in a leap year */
        {"AAA0BBB,59,60", 1709164800, "AAA 0 0 1709172000"}, /* and its 29th of February */
        {"AAA-24BBB-24,M1.1.0/167,M12.5.0/-167", 0, "AAA 86400 0 774000"},
        {"", 0, "no rule"},
        {"AB0", 0, "no rule"},
        {"CET", 0, "no rule"},
        {"CET-1CEST,", 0, "no rule"},
        {"CET-1CEST,M3.5.0", 0, "no rule"},
        {"CET-1CEST,M13.5.0,M10.5.0", 0, "no rule"},
        {"CET-1CEST,M3.6.0,M10.5.0", 0, "no rule"},
        {"CET-1CEST,M3.5.7,M10.5.0", 0, "no rule"},
        {"CET-1CEST,J0,J365", 0, "no rule"},
        {"CET-1CEST,M3.5.0,M10.5.0/168", 0, "no rule"},
        {"CET-1CEST,M3.5.0,M10.5.0 ", 0, "no rule"},
        {"CET-25", 0, "no rule"},
        {"CET-1:60", 0, "no rule"},
        {"<CET-1", 0, "no rule"},
        {"CET99999999999999999999", 0, "no rule"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ0", 0, "no rule"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        EXPECT_STR(told_by(rows[i].rule, rows[i].instant), rows[i].told);
    }
}

/* ---- files ---- */

/* A file of version 2 with one change, for a test to break: its header, its parts, its rule. */
static size_t make_file(uint8_t *bytes)
{
    static const uint8_t header[] = {'T', 'Z', 'i', 'f', '2', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                     0,   0,   0,   0,   0,   0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 8};
    static const uint8_t types[] = {0, 0, 0, 0, 0, 0, 14, 16, 0, 0, 0, 4}; /* the second one is of an hour, in bytes 4 and 5 */
    uint8_t *place = bytes;

    for (int part = 0; part < 2; part++) {
        size_t time_size = part == 0 ? 4 : 8;

        memcpy(place, header, sizeof header);
        place += sizeof header;
        memset(place, 0, time_size); /* at the instant 0 */
        place += time_size;
        *place++ = 1;
        memcpy(place, types, sizeof types);
        memcpy(place + 6, "\0\0\016\020\0\004", 6);
        place += sizeof types;
        memcpy(place, "GMT\0CET\0", 8);
        place += 8;
    }
    memcpy(place, "\nCET-1\n", 7);
    return (size_t)(place + 7 - bytes);
}

static const char *told_by_file(const uint8_t *bytes, size_t size, int64_t instant)
{
    static char words[64];
    struct zone_rules *rules = zone_rules_create(bytes, size);

    if (!rules) {
        return "refused";
    }
    struct zone_period period = zone_rules_period(rules, instant);
    (void)snprintf(words, sizeof words, "%s %d", period.abbreviation, (int)period.offset_s);
    free(rules);
    return words;
}

TEST(a_file_of_a_zone_is_read_and_a_broken_one_is_refused, "2207")
{
    uint8_t bytes[256];
    size_t size = make_file(bytes);
    size_t second = 44 + 4 + 1 + 12 + 8;
    static const struct {
        size_t offset; /* in the second part */
        uint8_t byte;
        const char *told;
    } rows[] = {
        {0, 'X', "refused"}, /* the mark */
        {32, 0xFF, "refused"}, /* more changes than bytes */
        {36, 0xFF, "refused"}, /* types */
        {39, 0, "refused"}, /* no type */
        {43, 0, "refused"}, /* no letters */
        {43, 4, "refused"}, /* an abbreviation beyond them */
        {40, 0x7F, "refused"}, {28, 0x10, "refused"}, /* leap seconds */
        {20, 0x10, "refused"}, /* flags */
        {24, 0xFF, "refused"}, {52, 2, "refused"}, /* a type that is not there */
        {53, 0x7F, "refused"}, /* an offset of years */
        {57, 2, "refused"}, /* neither summer nor winter */
        {58, 200, "refused"},
    };

    EXPECT_STR(told_by_file(bytes, size, -1), "GMT 0");
    EXPECT_STR(told_by_file(bytes, size, 0), "CET 3600");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)make_file(bytes);
        bytes[second + rows[i].offset] = rows[i].byte;
        EXPECT_STR(told_by_file(bytes, size, 0), rows[i].told);
    }
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *copy = malloc(cut + 1);

        (void)make_file(bytes);
        memcpy(copy, bytes, cut);
        EXPECT_STR(told_by_file(copy, cut, 0), cut < second + 44 + 8 + 1 + 12 + 8 ? "refused" : "CET 3600");
        free(copy);
    }
    bytes[4] = 0; /* an old file, whose first part is all */
    EXPECT_STR(told_by_file(bytes, second, 0), "CET 3600");
}

TEST(no_name_leads_out_of_the_database_and_nothing_but_a_regular_file_is_read, "2207")
{
    static const char *const names[] = {
        "",
        "/",
        "..",
        "../zoneinfo/UTC",
        "/usr/share/zoneinfo/UTC",
        "Europe/../UTC",
        "Europe//Berlin",
        "./UTC",
        "Europe/.",
        "Europe",
        "UTC/",
        "Europe/Berlin/x",
        "Nowhere/City",
        "zone.tab",
        "pipe",
        "device",
        "too\nmany",
        "GMT+1500",
        "GMT+0160",
        "GMT+1",
        "GMT+01:00",
        "large",
    };
    char folder[] = "/tmp/crl-zones-XXXXXX";
    char path[64];
    UniChar with_nul[] = {'U', 'T', 'C', 0};
    CFStringRef name = CFStringCreateWithCharacters(NULL, with_nul, 4);

    EXPECT(!CFTimeZoneCreateWithName(NULL, name, true));
    CFRelease(name);
    EXPECT(!CFTimeZoneCreateWithName(NULL, NULL, false));
    REQUIRE(mkdtemp(folder));
    REQUIRE(setenv("TZDIR", folder, 1) == 0);
    (void)snprintf(path, sizeof path, "%s/pipe", folder);
    REQUIRE(mkfifo(path, 0600) == 0);
    (void)snprintf(path, sizeof path, "%s/device", folder);
    REQUIRE(symlink("/dev/zero", path) == 0);
    (void)snprintf(path, sizeof path, "%s/large", folder);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    REQUIRE(file >= 0 && ftruncate(file, (1 << 20) + 1) == 0 && close(file) == 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CFTimeZoneRef zone = zone_named(names[i]);

        if (zone) {
            test_failed(__FILE__, __LINE__, "%s is a zone", names[i]);
        }
    }
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/device", folder);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/pipe", folder);
    (void)unlink(path);
    (void)rmdir(folder);
}

/* ---- offsets and names ---- */

TEST(a_zone_of_an_offset_has_the_name_of_its_minutes, "2207")
{
    static const struct {
        double interval;
        const char *name;
        int offset_s;
    } rows[] = {
        {0, "GMT", 0},
        {29, "GMT", 0},
        {-0.5, "GMT", 0},
        {30, "GMT+0001", 60},
        {3600, "GMT+0100", 3600},
        {-19800, "GMT-0530", -19800},
        {3661, "GMT+0101", 3660},
        {64800, "GMT+1800", 64800},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CFTimeZoneRef zone = CFTimeZoneCreateWithTimeIntervalFromGMT(NULL, rows[i].interval);

        REQUIRE(zone);
        EXPECT(is_named(zone, rows[i].name));
        EXPECT_EQ(CFTimeZoneGetSecondsFromGMT(zone, 1e9), rows[i].offset_s);
        EXPECT_EQ(CFTimeZoneGetNextDaylightSavingTimeTransition(zone, 0), 0);
        CFTimeZoneRef again = zone_named(rows[i].name);
        EXPECT(i == 7 || (again && CFEqual(zone, again) && CFHash(zone) == CFHash(again))); /* no name has more than 14 hours */
        CFRelease(zone);
        if (again) {
            CFRelease(again);
        }
    }
    EXPECT(!CFTimeZoneCreateWithTimeIntervalFromGMT(NULL, 64801));
    EXPECT(!CFTimeZoneCreateWithTimeIntervalFromGMT(NULL, (double)NAN));
    EXPECT(!CFTimeZoneCreateWithTimeIntervalFromGMT(NULL, (double)INFINITY));
}

TEST(zones_are_objects_with_a_type_words_and_data, "2207")
{
    CFTimeZoneRef zone = CFTimeZoneCreateWithTimeIntervalFromGMT(NULL, 3600);
    CFTimeZoneRef mine = CFTimeZoneCreate(NULL, CFSTR("Mine"), CFTimeZoneGetData(zone));
    CFStringRef type = CFCopyTypeIDDescription(CFTimeZoneGetTypeID());
    CFStringRef words = CFCopyDescription(zone);

    EXPECT_EQ(CFGetTypeID(zone), CFTimeZoneGetTypeID());
    EXPECT(type && CFEqual(type, CFSTR("CFTimeZone")));
    EXPECT(words && CFStringHasSuffix(words, CFSTR("{name = GMT+0100; abbreviation = GMT+0100; GMT offset = 3600; is DST = false}")));
    EXPECT(mine && !CFEqual(mine, zone) && CFTimeZoneGetSecondsFromGMT(mine, 0) == 3600);
    EXPECT(!CFTimeZoneCreate(NULL, CFSTR("Mine"), NULL));
    EXPECT(!CFTimeZoneCreate(NULL, NULL, NULL));
    EXPECT_STOPS("CFTimeZoneGetName: the time zone is NULL", { (void)CFTimeZoneGetName(NULL); });
    EXPECT_STOPS("CFTimeZoneGetData: the time zone is another object", { (void)CFTimeZoneGetData((CFTimeZoneRef)CFSTR("x")); });
    CFRelease(words);
    CFRelease(type);
    CFRelease(mine);
    CFRelease(zone);
}

TEST(the_systems_zone_is_that_of_the_environment_until_it_is_reset, "2207")
{
    static const struct {
        const char *variable;
        const char *name;
        int offset_s;
    } rows[] = {
        {"", "UTC", 0},
        {"GMT+0100", "GMT+0100", 3600},
        {":GMT+0100", "GMT+0100", 3600},
        {"CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST,M3.5.0,M10.5.0/3", 3600},
        {"<-05>5", "<-05>5", -18000},
        {"../../etc/passwd", "UTC", 0},
        {"/etc/passwd", "UTC", 0},
        {"Nowhere", "UTC", 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        REQUIRE(setenv("TZ", rows[i].variable, 1) == 0);
        CFTimeZoneResetSystem();
        CFTimeZoneRef zone = CFTimeZoneCopySystem();
        CFTimeZoneRef program = CFTimeZoneCopyDefault();

        EXPECT(is_named(zone, rows[i].name));
        EXPECT_EQ(CFTimeZoneGetSecondsFromGMT(zone, 0), rows[i].offset_s);
        EXPECT(program == zone);
        CFRelease(program);
        CFRelease(zone);
    }
    CFTimeZoneRef set = CFTimeZoneCreateWithTimeIntervalFromGMT(NULL, 7200);
    CFTimeZoneSetDefault(set);
    CFTimeZoneRef program = CFTimeZoneCopyDefault();
    EXPECT(program == set);
    CFRelease(program);
    CFTimeZoneSetDefault(NULL);
    program = CFTimeZoneCopyDefault();
    EXPECT(is_named(program, "UTC"));
    CFRelease(program);
    CFRelease(set);
    zones_give_back();
}

/* ---- beside the C library ---- */

static const char *const compared_zones[] = {"Europe/Berlin",     "America/New_York", "Europe/Dublin",     "Australia/Lord_Howe",
                                             "Africa/Casablanca", "Asia/Kolkata",     "America/Sao_Paulo", "Pacific/Apia",
                                             "Antarctica/Troll",  "Asia/Gaza",        "America/Nuuk",      "EST5EDT"};

static void compare_at(CFTimeZoneRef zone, const char *name, int64_t instant)
{
    struct tm date = {0};
    time_t time = (time_t)instant;
    CFAbsoluteTime at = (double)instant - kCFAbsoluteTimeIntervalSince1970;

    REQUIRE(localtime_r(&time, &date));
    CFGregorianDate ours = CFAbsoluteTimeGetGregorianDate(at, zone);
    if (ours.year != date.tm_year + 1900 || ours.month != date.tm_mon + 1 || ours.day != date.tm_mday || ours.hour != date.tm_hour ||
        ours.minute != date.tm_min || (int)ours.second != date.tm_sec || CFTimeZoneIsDaylightSavingTime(zone, at) != (date.tm_isdst > 0) ||
        CFAbsoluteTimeGetDayOfYear(at, zone) != date.tm_yday + 1 || CFAbsoluteTimeGetDayOfWeek(at, zone) % 7 != date.tm_wday) {
        test_failed(__FILE__, __LINE__, "%s at %lld: %d-%d-%d %d:%d:%g", name, (long long)instant, ours.year, ours.month, ours.day,
                    ours.hour, ours.minute, ours.second);
    }
}

TEST(dates_from_1900_to_3000_are_those_of_the_c_library, "2208")
{
    for (size_t i = 0; i < sizeof compared_zones / sizeof *compared_zones; i++) {
        CFTimeZoneRef zone = zone_named(compared_zones[i]);

        if (!zone) {
            SKIP("there is no tz database");
        }
        (void)setenv("TZ", compared_zones[i], 1);
        tzset();
        for (int64_t instant = -2208988800; instant < INT64_C(32503680000); instant += 86400 * 97 + 3571) {
            compare_at(zone, compared_zones[i], instant);
        }
        CFAbsoluteTime at = -3e9;
        for (int changes = 0; changes < 400; changes++) {
            at = CFTimeZoneGetNextDaylightSavingTimeTransition(zone, at);
            if (at == 0) {
                break;
            }
            for (int seconds = -1; seconds <= 1; seconds++) {
                compare_at(zone, compared_zones[i], (int64_t)(at + kCFAbsoluteTimeIntervalSince1970) + seconds);
            }
        }
        CFRelease(zone);
    }
}

TEST(the_known_names_are_zones, "2207")
{
    CFArrayRef names = CFTimeZoneCopyKnownNames();

    REQUIRE(names);
    for (CFIndex i = 0; i < CFArrayGetCount(names); i++) {
        CFTimeZoneRef zone = CFTimeZoneCreateWithName(NULL, CFArrayGetValueAtIndex(names, i), false);

        EXPECT(zone);
        if (zone) {
            CFRelease(zone);
        }
    }
    CFRelease(names);
}

TEST(an_abbreviation_stands_for_a_zone_if_it_is_asked_for, "2207")
{
    CFTimeZoneRef zone = CFTimeZoneCreateWithName(NULL, CFSTR("PST"), true);

    EXPECT(!zone || is_named(zone, "America/Los_Angeles"));
    EXPECT(!CFTimeZoneCreateWithName(NULL, CFSTR("PST"), false));
    EXPECT(!CFTimeZoneCreateWithName(NULL, CFSTR("XXT"), true));
    if (zone) {
        CFRelease(zone);
    }
}

/* ---- threads, forks, failures ---- */

static _Atomic bool is_over;

static void *ask_for_zones(void *unused)
{
    while (!is_over) {
        CFTimeZoneResetSystem();
        CFTimeZoneRef zone = CFTimeZoneCopyDefault();
        CFTimeZoneSetDefault(zone);
        CFTimeZoneSetDefault(NULL);
        CFRelease(zone);
    }
    return unused;
}

TEST(the_child_of_a_fork_asks_for_its_zone_while_others_did, "2210")
{
    pthread_t threads[2];

    if (test_is_instrumented()) {
        SKIP("the child would find the locks of the sanitizer taken");
    }
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, ask_for_zones, NULL) == 0);
    }
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();

        if (child == 0) {
            CFTimeZoneRef zone = CFTimeZoneCopyDefault();
            CFGregorianDate date = CFAbsoluteTimeGetGregorianDate(0, zone);
            _exit(date.year >= 2000 ? 0 : 1);
        }
        int status = -1;
        REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
        EXPECT_EQ(status, 0);
    }
    is_over = true;
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    zones_give_back();
}

NTH_FAILURE(zones, "")
{
    (void)setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    CFTimeZoneRef zone = bag_keep(CFTimeZoneCreateWithTimeIntervalFromGMT(NULL, 3600));
    CFTimeZoneRef system = bag_keep(CFTimeZoneCopySystem());
    zones_give_back();

    NEED(zone && system);
    MUST(CFTimeZoneGetSecondsFromGMT(zone, 0) == 3600);
    NEED(is_named(system, "CET-1CEST,M3.5.0,M10.5.0/3")); /* or UTC */
    CFStringRef abbreviation = bag_keep(CFTimeZoneCopyAbbreviation(system, 0));
    NEED(abbreviation);
    CFTimeZoneRef copy = bag_keep(CFTimeZoneCreate(NULL, CFSTR("copy"), CFTimeZoneGetData(zone)));
    NEED(copy && bag_keep(CFCopyDescription(copy)));
    NEED(bag_keep(CFTimeZoneCopyKnownNames()));
    return true;
}
