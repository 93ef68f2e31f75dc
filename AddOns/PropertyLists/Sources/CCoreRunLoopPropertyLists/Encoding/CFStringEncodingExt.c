/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls of CFStringEncodingExt.h: numbers and names of encodings. */
#include "CoreFoundation/CFStringEncodingExt.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "Encoding/encoding_table.h"
#include "fork_lock.h"

static const unsigned long cocoa_mark = 0x80000000;

/* ---- IANA's names ---- */

enum { longest_name = 63 };

/* Other names, in small letters and without what is neither letter nor digit; "csisolatin1" and "isoir100" are IANA's own. */
static const struct {
    const char *name;
    CFStringEncoding encoding;
} other_names[] = {
    {"utf8", kCFStringEncodingUTF8},
    {"utf16", kCFStringEncodingUTF16},
    {"ucs2", kCFStringEncodingUTF16},
    {"unicode", kCFStringEncodingUTF16},
    {"iso10646ucs2", kCFStringEncodingUTF16},
    {"ucs4", kCFStringEncodingUTF32},
    {"iso10646ucs4", kCFStringEncodingUTF32},
    {"ascii", kCFStringEncodingASCII},
    {"ansix341968", kCFStringEncodingASCII},
    {"iso646us", kCFStringEncodingASCII},
    {"csascii", kCFStringEncodingASCII},
    {"us", kCFStringEncodingASCII},
    {"latin1", kCFStringEncodingISOLatin1},
    {"l1", kCFStringEncodingISOLatin1},
    {"isoir100", kCFStringEncodingISOLatin1},
    {"csisolatin1", kCFStringEncodingISOLatin1},
    {"latin2", kCFStringEncodingISOLatin2},
    {"l2", kCFStringEncodingISOLatin2},
    {"isoir101", kCFStringEncodingISOLatin2},
    {"csisolatin2", kCFStringEncodingISOLatin2},
    {"latin3", kCFStringEncodingISOLatin3},
    {"l3", kCFStringEncodingISOLatin3},
    {"isoir109", kCFStringEncodingISOLatin3},
    {"csisolatin3", kCFStringEncodingISOLatin3},
    {"latin4", kCFStringEncodingISOLatin4},
    {"l4", kCFStringEncodingISOLatin4},
    {"isoir110", kCFStringEncodingISOLatin4},
    {"csisolatin4", kCFStringEncodingISOLatin4},
    {"cyrillic", kCFStringEncodingISOLatinCyrillic},
    {"isoir144", kCFStringEncodingISOLatinCyrillic},
    {"csisolatincyrillic", kCFStringEncodingISOLatinCyrillic},
    {"arabic", kCFStringEncodingISOLatinArabic},
    {"asmo708", kCFStringEncodingISOLatinArabic},
    {"ecma114", kCFStringEncodingISOLatinArabic},
    {"isoir127", kCFStringEncodingISOLatinArabic},
    {"csisolatinarabic", kCFStringEncodingISOLatinArabic},
    {"greek", kCFStringEncodingISOLatinGreek},
    {"greek8", kCFStringEncodingISOLatinGreek},
    {"ecma118", kCFStringEncodingISOLatinGreek},
    {"elot928", kCFStringEncodingISOLatinGreek},
    {"isoir126", kCFStringEncodingISOLatinGreek},
    {"csisolatingreek", kCFStringEncodingISOLatinGreek},
    {"hebrew", kCFStringEncodingISOLatinHebrew},
    {"iso88598i", kCFStringEncodingISOLatinHebrew},
    {"iso88598e", kCFStringEncodingISOLatinHebrew},
    {"isoir138", kCFStringEncodingISOLatinHebrew},
    {"csisolatinhebrew", kCFStringEncodingISOLatinHebrew},
    {"latin5", kCFStringEncodingISOLatin5},
    {"l5", kCFStringEncodingISOLatin5},
    {"isoir148", kCFStringEncodingISOLatin5},
    {"csisolatin5", kCFStringEncodingISOLatin5},
    {"latin6", kCFStringEncodingISOLatin6},
    {"l6", kCFStringEncodingISOLatin6},
    {"isoir157", kCFStringEncodingISOLatin6},
    {"csisolatin6", kCFStringEncodingISOLatin6},
    {"latin8", kCFStringEncodingISOLatin8},
    {"l8", kCFStringEncodingISOLatin8},
    {"isoir199", kCFStringEncodingISOLatin8},
    {"latin9", kCFStringEncodingISOLatin9},
    {"latin10", kCFStringEncodingISOLatin10},
    {"l10", kCFStringEncodingISOLatin10},
    {"isoir226", kCFStringEncodingISOLatin10},
    {"mac", kCFStringEncodingMacRoman},
    {"xmacroman", kCFStringEncodingMacRoman},
    {"csmacintosh", kCFStringEncodingMacRoman},
    {"shiftjis", kCFStringEncodingDOSJapanese},
    {"sjis", kCFStringEncodingDOSJapanese},
    {"xsjis", kCFStringEncodingDOSJapanese},
    {"mskanji", kCFStringEncodingDOSJapanese},
    {"csshiftjis", kCFStringEncodingDOSJapanese},
    {"windows31j", kCFStringEncodingDOSJapanese},
    {"cswindows31j", kCFStringEncodingDOSJapanese},
    {"xeucjp", kCFStringEncodingEUC_JP},
    {"cseucpkdfmtjapanese", kCFStringEncodingEUC_JP},
    {"csiso2022jp", kCFStringEncodingISO_2022_JP},
    {"csiso2022kr", kCFStringEncodingISO_2022_KR},
    {"gbk", kCFStringEncodingDOSChineseSimplif},
    {"euccn", kCFStringEncodingEUC_CN},
    {"csgb2312", kCFStringEncodingEUC_CN},
    {"csbig5", kCFStringEncodingBig5},
    {"cnbig5", kCFStringEncodingBig5},
    {"cseuckr", kCFStringEncodingEUC_KR},
    {"ksc56011987", kCFStringEncodingDOSKorean},
    {"ksc56011989", kCFStringEncodingDOSKorean},
    {"ksc5601", kCFStringEncodingDOSKorean},
    {"korean", kCFStringEncodingDOSKorean},
    {"isoir149", kCFStringEncodingDOSKorean},
    {"csksc56011987", kCFStringEncodingDOSKorean},
    {"tis620", kCFStringEncodingDOSThai},
    {"cskoi8r", kCFStringEncodingKOI8_R},
    {"csviscii", kCFStringEncodingVISCII},
    {"ebcdiccpus", kCFStringEncodingEBCDIC_CP037},
    {"ebcdiccpca", kCFStringEncodingEBCDIC_CP037},
    {"ebcdiccpwt", kCFStringEncodingEBCDIC_CP037},
    {"ebcdiccpnl", kCFStringEncodingEBCDIC_CP037},
    {"csibm037", kCFStringEncodingEBCDIC_CP037},
    {"utf7imap", kCFStringEncodingUTF7_IMAP},
};

static void simplify(const char *name, char ret_simple[longest_name + 1])
{
    size_t length = 0;

    for (; *name; name++) {
        char c = *name >= 'A' && *name <= 'Z' ? (char)(*name + 'a' - 'A') : *name;

        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            ret_simple[length++] = c;
        }
    }
    ret_simple[length] = '\0';
}

/* "cp1252", "ibm850", "windows874" and "dos862" are numbers of code pages. */
static CFStringEncoding encoding_of_code_page(const char *simple)
{
    static const char *const beginnings[] = {"cp", "ibm", "windows", "dos"};

    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++) {
        size_t length = strlen(beginnings[i]);
        const char *digits = simple + length;

        if (strncmp(simple, beginnings[i], length) == 0 && *digits && strspn(digits, "0123456789") == strlen(digits) &&
            strlen(digits) < 9) {
            return CFStringConvertWindowsCodepageToEncoding((UInt32)strtoul(digits, NULL, 10));
        }
    }
    return kCFStringEncodingInvalidId;
}

CFStringEncoding CFStringConvertIANACharSetNameToEncoding(CFStringRef name)
{
    char bytes[longest_name + 1];
    char simple[longest_name + 1];
    char simple_row[longest_name + 1];

    if (!name || !CFStringGetCString(name, bytes, sizeof bytes, kCFStringEncodingASCII)) {
        return kCFStringEncodingInvalidId;
    }
    for (size_t i = 0; i < encoding_rows; i++) {
        if (encoding_table[i].registered_name && strcasecmp(bytes, encoding_table[i].registered_name) == 0) {
            return encoding_table[i].encoding;
        }
    }
    simplify(bytes, simple);
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++) {
        if (strcmp(simple, other_names[i].name) == 0) {
            return other_names[i].encoding;
        }
    }
    for (size_t i = 0; i < encoding_rows; i++) {
        simplify(encoding_table[i].registered_name ? encoding_table[i].registered_name : "", simple_row);
        if (simple[0] && strcmp(simple, simple_row) == 0) {
            return encoding_table[i].encoding;
        }
    }
    return encoding_of_code_page(simple);
}

CFStringRef CFStringConvertEncodingToIANACharSetName(CFStringEncoding encoding)
{
    const struct encoding_row *row = encoding_find(encoding);

    return row && row->registered_name ? __CFStringMakeConstantString(row->registered_name) : NULL;
}

/* ---- numbers of others ---- */

unsigned long CFStringConvertEncodingToNSStringEncoding(CFStringEncoding encoding)
{
    const struct encoding_row *row = encoding_find(encoding);

    if (encoding == kCFStringEncodingInvalidId) {
        return kCFStringEncodingInvalidId;
    }
    return row && row->cocoa_number != 0 ? row->cocoa_number : cocoa_mark | encoding;
}

CFStringEncoding CFStringConvertNSStringEncodingToEncoding(unsigned long encoding)
{
    if (encoding <= 0xFFFFFFFF && (encoding & cocoa_mark) != 0) {
        return encoding == kCFStringEncodingInvalidId ? kCFStringEncodingInvalidId : (CFStringEncoding)(encoding & ~cocoa_mark);
    }
    for (size_t i = 0; i < encoding_rows; i++) {
        if (encoding != 0 && encoding_table[i].cocoa_number == encoding) {
            return encoding_table[i].encoding;
        }
    }
    return kCFStringEncodingInvalidId;
}

UInt32 CFStringConvertEncodingToWindowsCodepage(CFStringEncoding encoding)
{
    const struct encoding_row *row = encoding_find(encoding);

    return row && row->code_page >= 0 ? (UInt32)row->code_page : kCFStringEncodingInvalidId;
}

CFStringEncoding CFStringConvertWindowsCodepageToEncoding(UInt32 codepage)
{
    for (size_t i = 0; i < encoding_rows; i++) {
        if (encoding_table[i].code_page >= 0 && (UInt32)encoding_table[i].code_page == codepage) {
            return encoding_table[i].encoding;
        }
    }
    return kCFStringEncodingInvalidId;
}

/* ---- what there is ---- */

const CFStringEncoding *CFStringGetListOfAvailableEncodings(void)
{
    static CFStringEncoding list[encoding_rows + 1] GUARDED_BY(the_fork_lock); /* filled once: then it ends with the invalid number */
    CFStringEncoding found[encoding_rows + 1];
    size_t count = 0;

    for (size_t i = 0; i < encoding_rows; i++) {
        if (CFStringIsEncodingAvailable(encoding_table[i].encoding)) {
            found[count++] = encoding_table[i].encoding;
        }
    }
    found[count] = kCFStringEncodingInvalidId;
    int cancel_state = fork_lock_take();
    static bool is_filled GUARDED_BY(the_fork_lock);
    if (!is_filled) {
        memcpy(list, found, (count + 1) * sizeof *found);
        is_filled = true;
    }
    const CFStringEncoding *filled = list;
    fork_lock_drop(cancel_state);
    return filled;
}
