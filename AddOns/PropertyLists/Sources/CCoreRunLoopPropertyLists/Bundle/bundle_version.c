/* SPDX-License-Identifier: Apache-2.0 */
/* Versions and codes (bundle_version.h). */
#include "Bundle/bundle_version.h"

#include <string.h>

enum { stage_final = 0x80 };

/* Reads at most `limit` digits. Returns -1 if there is none, or more. */
static int take_number(const char **text, size_t limit)
{
    size_t count = strspn(*text, "0123456789");
    int number = 0;

    if (count == 0 || count > limit) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        number = number * 10 + (*text)[i] - '0';
    }
    *text += count;
    return number;
}

/* ".2.3": each part has one digit, and the last one may have none: "1.b2". */
static bool take_parts(const char **text, int ret_parts[2])
{
    for (int i = 0; i < 2 && **text == '.'; i++) {
        (*text)++;
        if (**text < '0' || **text > '9') {
            return **text != '.';
        }
        ret_parts[i] = take_number(text, 1);
        if (ret_parts[i] < 0) {
            return false;
        }
    }
    return true;
}

/* "b4": the stage, and a number of one byte. */
static bool take_stage(const char **text, unsigned *ret_stage, int *ret_number)
{
    static const char letters[] = "dabf"; /* development, alpha, beta, final */
    const char *letter = **text == '\0' ? NULL : strchr(letters, **text);

    if (!letter) {
        return **text == '\0';
    }
    *ret_stage = (unsigned)(letter - letters + 1) * 0x20;
    (*text)++;
    *ret_number = **text == '\0' ? 0 : take_number(text, 3);
    return *ret_number >= 0 && *ret_number <= 255 && **text == '\0';
}

UInt32 bundle_version_parse(CFTypeRef text)
{
    char bytes[32];
    const char *at = bytes;
    int parts[2] = {0, 0};
    unsigned stage = stage_final;
    int number = 0;

    if (!text || CFGetTypeID(text) != CFStringGetTypeID() || !CFStringGetCString(text, bytes, sizeof bytes, kCFStringEncodingASCII)) {
        return 0;
    }
    int major = take_number(&at, 2);
    if (major < 0 || !take_parts(&at, parts) || !take_stage(&at, &stage, &number)) {
        return 0;
    }
    unsigned decimals = (unsigned)(major / 10) << 12 | (unsigned)(major % 10) << 8 | (unsigned)parts[0] << 4 | (unsigned)parts[1];
    return decimals << 16 | stage << 8 | (unsigned)number;
}

bool bundle_code_parse(CFTypeRef text, UInt32 *ret_code)
{
    UInt8 bytes[4];
    CFIndex used = 0;

    if (!text || CFGetTypeID(text) != CFStringGetTypeID() || CFStringGetLength(text) != 4 ||
        CFStringGetBytes(text, CFRangeMake(0, 4), kCFStringEncodingMacRoman, 0, false, bytes, 4, &used) != 4 || used != 4) {
        return false;
    }
    *ret_code = (UInt32)bytes[0] << 24 | (UInt32)bytes[1] << 16 | (UInt32)bytes[2] << 8 | bytes[3];
    return true;
}
