/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * More encodings of strings, and their numbers and names elsewhere. They are in the add-on library libcorerunloop-plist: with it,
 * CFString's functions (CFStringCreateWithBytes, CFStringGetBytes and all that build on them) convert those that the C library's
 * iconv has, and NextStep's. CFStringIsEncodingAvailable says which these are. Others have a number and a name only.
 *
 * Bytes that are not valid or not complete are refused. Functions on URLs know those of CFString.h. No string is normalized:
 * there is no CFStringNormalize, CFStringFold or CFStringTransform. pkg-config's flags make the linker keep the library where a program
 * names nothing of it.
 */

#if !defined(__COREFOUNDATION_CFSTRINGENCODINGEXT__)
#define __COREFOUNDATION_CFSTRINGENCODINGEXT__ 1

#include "CFBase.h"
#include "CFString.h"

CF_EXTERN_C_BEGIN

/** Numbers of encodings beside those of CFString.h. */
typedef CF_ENUM(CFIndex, CFStringEncodings) {
    kCFStringEncodingMacJapanese = 1, /**< Mac OS, Japanese. */
    kCFStringEncodingMacChineseTrad = 2, /**< Mac OS, Chinese Trad. */
    kCFStringEncodingMacKorean = 3, /**< Mac OS, Korean. */
    kCFStringEncodingMacArabic = 4, /**< Mac OS, Arabic. */
    kCFStringEncodingMacHebrew = 5, /**< Mac OS, Hebrew. */
    kCFStringEncodingMacGreek = 6, /**< Mac OS, Greek. */
    kCFStringEncodingMacCyrillic = 7, /**< Mac OS, Cyrillic. */
    kCFStringEncodingMacDevanagari = 9, /**< Mac OS, Devanagari. */
    kCFStringEncodingMacGurmukhi = 10, /**< Mac OS, Gurmukhi. */
    kCFStringEncodingMacGujarati = 11, /**< Mac OS, Gujarati. */
    kCFStringEncodingMacOriya = 12, /**< Mac OS, Oriya. */
    kCFStringEncodingMacBengali = 13, /**< Mac OS, Bengali. */
    kCFStringEncodingMacTamil = 14, /**< Mac OS, Tamil. */
    kCFStringEncodingMacTelugu = 15, /**< Mac OS, Telugu. */
    kCFStringEncodingMacKannada = 16, /**< Mac OS, Kannada. */
    kCFStringEncodingMacMalayalam = 17, /**< Mac OS, Malayalam. */
    kCFStringEncodingMacSinhalese = 18, /**< Mac OS, Sinhalese. */
    kCFStringEncodingMacBurmese = 19, /**< Mac OS, Burmese. */
    kCFStringEncodingMacKhmer = 20, /**< Mac OS, Khmer. */
    kCFStringEncodingMacThai = 21, /**< Mac OS, Thai. */
    kCFStringEncodingMacLaotian = 22, /**< Mac OS, Laotian. */
    kCFStringEncodingMacGeorgian = 23, /**< Mac OS, Georgian. */
    kCFStringEncodingMacArmenian = 24, /**< Mac OS, Armenian. */
    kCFStringEncodingMacChineseSimp = 25, /**< Mac OS, Chinese Simp. */
    kCFStringEncodingMacTibetan = 26, /**< Mac OS, Tibetan. */
    kCFStringEncodingMacMongolian = 27, /**< Mac OS, Mongolian. */
    kCFStringEncodingMacEthiopic = 28, /**< Mac OS, Ethiopic. */
    kCFStringEncodingMacCentralEurRoman = 29, /**< Mac OS, Central Eur Roman. */
    kCFStringEncodingMacVietnamese = 30, /**< Mac OS, Vietnamese. */
    kCFStringEncodingMacExtArabic = 31, /**< Mac OS, Ext Arabic. */
    kCFStringEncodingMacSymbol = 33, /**< Mac OS, Symbol. */
    kCFStringEncodingMacDingbats = 34, /**< Mac OS, Dingbats. */
    kCFStringEncodingMacTurkish = 35, /**< Mac OS, Turkish. */
    kCFStringEncodingMacCroatian = 36, /**< Mac OS, Croatian. */
    kCFStringEncodingMacIcelandic = 37, /**< Mac OS, Icelandic. */
    kCFStringEncodingMacRomanian = 38, /**< Mac OS, Romanian. */
    kCFStringEncodingMacCeltic = 39, /**< Mac OS, Celtic. */
    kCFStringEncodingMacGaelic = 40, /**< Mac OS, Gaelic. */
    kCFStringEncodingMacFarsi = 0x8C, /**< Mac OS, Farsi. */
    kCFStringEncodingMacUkrainian = 0x98, /**< Mac OS, Ukrainian. */
    kCFStringEncodingMacInuit = 0xEC, /**< Mac OS, Inuit. */
    kCFStringEncodingMacVT100 = 0xFC, /**< Mac OS, VT100. */
    kCFStringEncodingMacHFS = 0xFF, /**< Mac OS, HFS. */
    kCFStringEncodingISOLatin2 = 0x0202, /**< ISO 8859-2. */
    kCFStringEncodingISOLatin3 = 0x0203, /**< ISO 8859-3. */
    kCFStringEncodingISOLatin4 = 0x0204, /**< ISO 8859-4. */
    kCFStringEncodingISOLatinCyrillic = 0x0205, /**< ISO 8859-5. */
    kCFStringEncodingISOLatinArabic = 0x0206, /**< ISO 8859-6. */
    kCFStringEncodingISOLatinGreek = 0x0207, /**< ISO 8859-7. */
    kCFStringEncodingISOLatinHebrew = 0x0208, /**< ISO 8859-8. */
    kCFStringEncodingISOLatin5 = 0x0209, /**< ISO 8859-9. */
    kCFStringEncodingISOLatin6 = 0x020A, /**< ISO 8859-10. */
    kCFStringEncodingISOLatinThai = 0x020B, /**< ISO 8859-11. */
    kCFStringEncodingISOLatin7 = 0x020D, /**< ISO 8859-13. */
    kCFStringEncodingISOLatin8 = 0x020E, /**< ISO 8859-14. */
    kCFStringEncodingISOLatin9 = 0x020F, /**< ISO 8859-15. */
    kCFStringEncodingISOLatin10 = 0x0210, /**< ISO 8859-16. */
    kCFStringEncodingDOSLatinUS = 0x0400, /**< Code page 437. */
    kCFStringEncodingDOSGreek = 0x0405, /**< Code page 737. */
    kCFStringEncodingDOSBalticRim = 0x0406, /**< Code page 775. */
    kCFStringEncodingDOSLatin1 = 0x0410, /**< Code page 850. */
    kCFStringEncodingDOSGreek1 = 0x0411, /**< Code page 851. */
    kCFStringEncodingDOSLatin2 = 0x0412, /**< Code page 852. */
    kCFStringEncodingDOSCyrillic = 0x0413, /**< Code page 855. */
    kCFStringEncodingDOSTurkish = 0x0414, /**< Code page 857. */
    kCFStringEncodingDOSPortuguese = 0x0415, /**< Code page 860. */
    kCFStringEncodingDOSIcelandic = 0x0416, /**< Code page 861. */
    kCFStringEncodingDOSHebrew = 0x0417, /**< Code page 862. */
    kCFStringEncodingDOSCanadianFrench = 0x0418, /**< Code page 863. */
    kCFStringEncodingDOSArabic = 0x0419, /**< Code page 864. */
    kCFStringEncodingDOSNordic = 0x041A, /**< Code page 865. */
    kCFStringEncodingDOSRussian = 0x041B, /**< Code page 866. */
    kCFStringEncodingDOSGreek2 = 0x041C, /**< Code page 869. */
    kCFStringEncodingDOSThai = 0x041D, /**< Code page 874. */
    kCFStringEncodingDOSJapanese = 0x0420, /**< Code page 932. */
    kCFStringEncodingDOSChineseSimplif = 0x0421, /**< Code page 936. */
    kCFStringEncodingDOSKorean = 0x0422, /**< Code page 949. */
    kCFStringEncodingDOSChineseTrad = 0x0423, /**< Code page 950. */
    kCFStringEncodingWindowsLatin2 = 0x0501, /**< Code page 1250. */
    kCFStringEncodingWindowsCyrillic = 0x0502, /**< Code page 1251. */
    kCFStringEncodingWindowsGreek = 0x0503, /**< Code page 1253. */
    kCFStringEncodingWindowsLatin5 = 0x0504, /**< Code page 1254. */
    kCFStringEncodingWindowsHebrew = 0x0505, /**< Code page 1255. */
    kCFStringEncodingWindowsArabic = 0x0506, /**< Code page 1256. */
    kCFStringEncodingWindowsBalticRim = 0x0507, /**< Code page 1257. */
    kCFStringEncodingWindowsVietnamese = 0x0508, /**< Code page 1258. */
    kCFStringEncodingWindowsKoreanJohab = 0x0510, /**< Code page 1361. */
    kCFStringEncodingANSEL = 0x0601, /**< ANSEL. */
    kCFStringEncodingJIS_X0201_76 = 0x0620, /**< JIS X0201 76. */
    kCFStringEncodingJIS_X0208_83 = 0x0621, /**< JIS X0208 83. */
    kCFStringEncodingJIS_X0208_90 = 0x0622, /**< JIS X0208 90. */
    kCFStringEncodingJIS_X0212_90 = 0x0623, /**< JIS X0212 90. */
    kCFStringEncodingJIS_C6226_78 = 0x0624, /**< JIS C6226 78. */
    kCFStringEncodingShiftJIS_X0213 = 0x0628, /**< ShiftJIS X0213. */
    kCFStringEncodingShiftJIS_X0213_MenKuTen = 0x0629, /**< ShiftJIS X0213 MenKuTen. */
    kCFStringEncodingGB_2312_80 = 0x0630, /**< GB 2312 80. */
    kCFStringEncodingGBK_95 = 0x0631, /**< GBK 95. */
    kCFStringEncodingGB_18030_2000 = 0x0632, /**< GB 18030 2000. */
    kCFStringEncodingKSC_5601_87 = 0x0640, /**< KSC 5601 87. */
    kCFStringEncodingKSC_5601_92_Johab = 0x0641, /**< KSC 5601 92 Johab. */
    kCFStringEncodingCNS_11643_92_P1 = 0x0651, /**< CNS 11643 92 P1. */
    kCFStringEncodingCNS_11643_92_P2 = 0x0652, /**< CNS 11643 92 P2. */
    kCFStringEncodingCNS_11643_92_P3 = 0x0653, /**< CNS 11643 92 P3. */
    kCFStringEncodingISO_2022_JP = 0x0820, /**< ISO 2022 JP. */
    kCFStringEncodingISO_2022_JP_2 = 0x0821, /**< ISO 2022 JP 2. */
    kCFStringEncodingISO_2022_JP_1 = 0x0822, /**< ISO 2022 JP 1. */
    kCFStringEncodingISO_2022_JP_3 = 0x0823, /**< ISO 2022 JP 3. */
    kCFStringEncodingISO_2022_CN = 0x0830, /**< ISO 2022 CN. */
    kCFStringEncodingISO_2022_CN_EXT = 0x0831, /**< ISO 2022 CN EXT. */
    kCFStringEncodingISO_2022_KR = 0x0840, /**< ISO 2022 KR. */
    kCFStringEncodingEUC_JP = 0x0920, /**< EUC JP. */
    kCFStringEncodingEUC_CN = 0x0930, /**< EUC CN. */
    kCFStringEncodingEUC_TW = 0x0931, /**< EUC TW. */
    kCFStringEncodingEUC_KR = 0x0940, /**< EUC KR. */
    kCFStringEncodingShiftJIS = 0x0A01, /**< ShiftJIS. */
    kCFStringEncodingKOI8_R = 0x0A02, /**< KOI8 R. */
    kCFStringEncodingBig5 = 0x0A03, /**< Big5. */
    kCFStringEncodingMacRomanLatin1 = 0x0A04, /**< Mac OS, Roman Latin1. */
    kCFStringEncodingHZ_GB_2312 = 0x0A05, /**< HZ GB 2312. */
    kCFStringEncodingBig5_HKSCS_1999 = 0x0A06, /**< Big5 HKSCS 1999. */
    kCFStringEncodingVISCII = 0x0A07, /**< VISCII. */
    kCFStringEncodingKOI8_U = 0x0A08, /**< KOI8 U. */
    kCFStringEncodingBig5_E = 0x0A09, /**< Big5 E. */
    kCFStringEncodingNextStepJapanese = 0x0B02, /**< NextStepJapanese. */
    kCFStringEncodingEBCDIC_US = 0x0C01, /**< EBCDIC US. */
    kCFStringEncodingEBCDIC_CP037 = 0x0C02, /**< EBCDIC CP037. */
    kCFStringEncodingUTF7 = 0x04000100, /**< UTF7. */
    kCFStringEncodingUTF7_IMAP = 0x0A10, /**< UTF7 IMAP. */
    kCFStringEncodingShiftJIS_X0213_00 = 0x0628 /**< ShiftJIS X0213 00. */
};

/**
 * Returns the encoding that a name stands for: IANA's name of a character set, whose case does not count, or another usual one.
 * Threads: any.
 * Errors: kCFStringEncodingInvalidId for an unknown name and NULL.
 */
CF_EXPORT CFStringEncoding CFStringConvertIANACharSetNameToEncoding(CFStringRef name) CRL_LINK(CFStringConvertIANACharSetNameToEncoding);

/**
 * Returns the name of an encoding that IANA knows, in small letters.
 * Ownership: the string is immortal.
 * Threads: any.
 * Errors: NULL for an encoding without a name.
 */
CF_EXPORT CFStringRef CFStringConvertEncodingToIANACharSetName(CFStringEncoding encoding)
    CRL_LINK(CFStringConvertEncodingToIANACharSetName) CF_RETURNS_NOT_RETAINED;

/** Returns Cocoa's number (NSStringEncoding) of an encoding; kCFStringEncodingInvalidId of none. Threads: any, signal handlers included. */
CF_EXPORT unsigned long CFStringConvertEncodingToNSStringEncoding(CFStringEncoding encoding)
    CRL_LINK(CFStringConvertEncodingToNSStringEncoding);

/** Returns the encoding that Cocoa's number stands for, or kCFStringEncodingInvalidId. Threads: any, signal handlers included. */
CF_EXPORT CFStringEncoding CFStringConvertNSStringEncodingToEncoding(unsigned long encoding)
    CRL_LINK(CFStringConvertNSStringEncodingToEncoding);

/** Returns the number of Windows' code page for an encoding, or kCFStringEncodingInvalidId. Threads: any, signal handlers included. */
CF_EXPORT UInt32 CFStringConvertEncodingToWindowsCodepage(CFStringEncoding encoding) CRL_LINK(CFStringConvertEncodingToWindowsCodepage);

/** Returns the encoding of a code page of Windows, or kCFStringEncodingInvalidId. Threads: any, signal handlers included. */
CF_EXPORT CFStringEncoding CFStringConvertWindowsCodepageToEncoding(UInt32 codepage) CRL_LINK(CFStringConvertWindowsCodepageToEncoding);

/**
 * Returns the encodings that can be converted, ended by kCFStringEncodingInvalidId.
 * Ownership: the list stays as it is until the process ends.
 * Threads: any.
 */
CF_EXPORT const CFStringEncoding *CFStringGetListOfAvailableEncodings(void) CRL_LINK(CFStringGetListOfAvailableEncodings);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFSTRINGENCODINGEXT__ */
