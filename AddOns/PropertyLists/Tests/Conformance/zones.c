/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what Core Foundation says of time zones, dates and encodings, a line each; `run-zones` builds it with both libraries. Only
 * instants from 1972 to 2036, for which the toolchain has rules.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint64_t seed = 1;

static uint64_t next_number(uint64_t below)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return (seed >> 33) % below;
}

static void say_string(CFStringRef string)
{
    char bytes[200] = "-";

    if (string) {
        CFStringGetCString(string, bytes, sizeof bytes, kCFStringEncodingUTF8);
    }
    printf(" %s", bytes);
}

static void say_instant(const char *name, CFTimeZoneRef zone, CFAbsoluteTime at)
{
    CFGregorianDate date = CFAbsoluteTimeGetGregorianDate(at, zone);
    CFStringRef abbreviation = CFTimeZoneCopyAbbreviation(zone, at);

    printf("%s %.0f: %g %d %g", name, at, CFTimeZoneGetSecondsFromGMT(zone, at), CFTimeZoneIsDaylightSavingTime(zone, at),
           CFTimeZoneGetDaylightSavingTimeOffset(zone, at));
    say_string(abbreviation);
    printf(" %d-%d-%d %d:%d:%g %.0f %d %d %d\n", date.year, date.month, date.day, date.hour, date.minute, date.second,
           CFGregorianDateGetAbsoluteTime(date, zone), CFAbsoluteTimeGetDayOfWeek(at, zone), CFAbsoluteTimeGetDayOfYear(at, zone),
           CFAbsoluteTimeGetWeekOfYear(at, zone));
    CFRelease(abbreviation);
}

static void say_distances(const char *name, CFTimeZoneRef zone)
{
    CFAbsoluteTime at = -9.4e8 + (double)next_number(1990000000); /* 1971 to 2034 */
    CFAbsoluteTime other = at + (double)next_number(100000000) - 5e7;
    CFGregorianDate date = CFAbsoluteTimeGetGregorianDate(at, zone);
    CFGregorianUnits more = {(SInt32)next_number(2),       (SInt32)next_number(30) - 15, 1 + (SInt32)next_number(40),
                             (SInt32)next_number(60) - 30, (SInt32)next_number(90) - 45, (double)next_number(100)};
    CFGregorianUnits all = CFAbsoluteTimeGetDifferenceAsGregorianUnits(at, other, zone, kCFGregorianAllUnits);
    CFGregorianUnits some = CFAbsoluteTimeGetDifferenceAsGregorianUnits(at, other, zone, kCFGregorianUnitsMonths | kCFGregorianUnitsDays);

    date.month = (SInt8)(1 + next_number(12));
    date.day = (SInt8)(1 + next_number(31));
    date.hour = (SInt8)next_number(24);
    printf("%s %.0f from %.0f: %.0f %.0f %d %d %d %d %d %g %d %d\n", name, at, other, CFGregorianDateGetAbsoluteTime(date, zone),
           CFAbsoluteTimeAddGregorianUnits(at, zone, more), all.years, all.months, all.days, all.hours, all.minutes, all.seconds,
           some.months, some.days);
}

static void say_zone(CFStringRef string)
{
    char name[100];
    CFTimeZoneRef zone = CFTimeZoneCreateWithName(NULL, string, false);
    CFAbsoluteTime at = -2.1e9;

    CFStringGetCString(string, name, sizeof name, kCFStringEncodingUTF8);
    if (!zone) {
        printf("%s: none\n", name);
        return;
    }
    for (int changes = 0; at != 0 && at < 1.13e9 && changes < 400; changes++) {
        CFAbsoluteTime next = CFTimeZoneGetNextDaylightSavingTimeTransition(zone, at);

        for (int second = -1; next != 0 && next > -9e8 && next < 1.13e9 && second <= 1; second++) {
            say_instant(name, zone, next + second);
        }
        at = next;
    }
    for (int i = 0; i < 40; i++) {
        say_distances(name, zone);
    }
    CFRelease(zone);
}

static void say_dates(void)
{
    for (int i = 0; i < 20000; i++) {
        CFAbsoluteTime at = -63113904000.0 + (double)next_number(2000000000) * 50 + 0.25; /* from year 1 to 3000 and later */
        CFGregorianDate date = CFAbsoluteTimeGetGregorianDate(at, NULL);

        printf("%.2f: %d-%d-%d %d:%d:%g %.2f %d %d %d %d\n", at, date.year, date.month, date.day, date.hour, date.minute, date.second,
               CFGregorianDateGetAbsoluteTime(date, NULL), CFAbsoluteTimeGetDayOfWeek(at, NULL), CFAbsoluteTimeGetDayOfYear(at, NULL),
               CFAbsoluteTimeGetWeekOfYear(at, NULL), CFGregorianDateIsValid(date, kCFGregorianAllUnits));
    }
}

/* The encodings of one byte a character. */
static const CFStringEncoding byte_encodings[] = {0x7,   0x1D,  0x202, 0x203, 0x204, 0x205, 0x206, 0x207, 0x208, 0x209, 0x20A,
                                                  0x20B, 0x20D, 0x20E, 0x20F, 0x210, 0x400, 0x405, 0x406, 0x410, 0x412, 0x413,
                                                  0x414, 0x415, 0x416, 0x417, 0x418, 0x41A, 0x41B, 0x41C, 0x41D, 0x501, 0x502,
                                                  0x503, 0x504, 0x505, 0x506, 0x507, 0x508, 0xA02, 0xA08, 0xB01, 0xC02};

static void say_encodings(void)
{
    for (CFStringEncoding encoding = 0; encoding < 0xC10; encoding++) {
        CFStringRef name = CFStringConvertEncodingToIANACharSetName(encoding);

        if (name && CFStringConvertIANACharSetNameToEncoding(name) == encoding) {
            printf("encoding %x:", encoding);
            say_string(name);
            printf(" %x %lx %x\n", CFStringConvertIANACharSetNameToEncoding(name), CFStringConvertEncodingToNSStringEncoding(encoding),
                   CFStringConvertEncodingToWindowsCodepage(encoding));
        }
    }
    for (size_t i = 0; i < sizeof byte_encodings / sizeof *byte_encodings; i++) {
        for (int byte = 0; byte < 256; byte++) {
            UInt8 bytes[] = {(UInt8)byte};
            CFStringRef text = CFStringCreateWithBytes(NULL, bytes, 1, byte_encodings[i], false);

            printf("byte %x %02x:", byte_encodings[i], byte);
            printf(text ? " %04X\n" : " -\n", text ? CFStringGetCharacterAtIndex(text, 0) : 0);
        }
    }
}

int main(void)
{
    CFArrayRef names = CFTimeZoneCopyKnownNames();
    CFStringRef others[] = {CFSTR("UTC"),       CFSTR("EST5EDT"),      CFSTR("GMT+0530"),
                            CFSTR("Etc/GMT+5"), CFSTR("Nowhere/City"), CFSTR("GMT+1500")};

    printf("names: %ld\n", (long)CFArrayGetCount(names));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        say_zone(others[i]);
    }
    for (CFIndex i = 0; i < CFArrayGetCount(names); i++) {
        say_zone(CFArrayGetValueAtIndex(names, i));
    }
    say_dates();
    say_encodings();
    return 0;
}
