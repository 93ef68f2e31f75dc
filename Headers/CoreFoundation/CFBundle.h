/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Bundles: folders with information on a program or library, its resources in several languages, and its code. They are in the add-on
 * library libcorerunloop-plist.
 *
 * A folder with `Contents` in it has Info.plist there, and resources in `Contents/Resources`. One with `Resources` has both in that, and
 * so has one with `Versions/Current` in `Versions/Current/Resources`. Another folder has all in itself. CFBundleGetMainBundle
 * says where a program finds its own.
 *
 * All URLs are absolute. A bundle that a program has made stays for as long as the process lasts. When its folder has gone, what was read
 * is still there, and nothing else is found. Files of more than 64 MiB are not read. There are no plug-ins (CFPlugIn).
 */

#if !defined(__COREFOUNDATION_CFBUNDLE__)
#define __COREFOUNDATION_CFBUNDLE__ 1

#include "CFArray.h"
#include "CFBase.h"
#include "CFDictionary.h"
#include "CFError.h"
#include "CFString.h"
#include "CFURL.h"

#if defined(__swift__)
#define CFBundleRef CRLBundleRef_
#endif

CF_EXTERN_C_BEGIN

CRL_REFERENCE_TYPE(__CFBundle, CFBundle);

/** A bundle. */
typedef struct __CFBundle *CFBundleRef;

/** Info.plist: the version of its format. */
CF_EXPORT const CFStringRef kCFBundleInfoDictionaryVersionKey CRL_LINK(kCFBundleInfoDictionaryVersionKey);
/** Info.plist: the name of the program's or library's file. */
CF_EXPORT const CFStringRef kCFBundleExecutableKey CRL_LINK(kCFBundleExecutableKey);
/** Info.plist: the identifier, as "com.example.app". */
CF_EXPORT const CFStringRef kCFBundleIdentifierKey CRL_LINK(kCFBundleIdentifierKey);
/** Info.plist: the version of the program. */
CF_EXPORT const CFStringRef kCFBundleVersionKey CRL_LINK(kCFBundleVersionKey);
/** Info.plist: the language of its developers. */
CF_EXPORT const CFStringRef kCFBundleDevelopmentRegionKey CRL_LINK(kCFBundleDevelopmentRegionKey);
/** Info.plist: its name for people. */
CF_EXPORT const CFStringRef kCFBundleNameKey CRL_LINK(kCFBundleNameKey);
/** Info.plist: names of localizations without a folder. */
CF_EXPORT const CFStringRef kCFBundleLocalizationsKey CRL_LINK(kCFBundleLocalizationsKey);

/**
 * Returns the bundle of the program itself, borrowed for as long as the process lasts.
 *
 * Its folder is, if it exists: that of the application, when the program lies in `Contents/Linux` or `Contents/MacOS`; `NAME.resources`
 * beside the program NAME; for a program in a folder bin, sbin or libexec of PREFIX, that of `PREFIX/share/NAME.resources`,
 * `PREFIX/lib/NAME` and `PREFIX/share/NAME` which has an Info.plist, or else the first one there is. Otherwise it is the folder in which
 * the program lies.
 * Threads: any.
 * Errors: NULL without memory.
 */
CF_EXPORT CFBundleRef CFBundleGetMainBundle(void) CRL_LINK(CFBundleGetMainBundle) CF_RETURNS_NOT_RETAINED;

/**
 * Returns the bundle with an identifier among those that the program has made, the main bundle included, borrowed for as long as the
 * process lasts. Of several it is the one with the highest version, and of these the last one.
 *
 * Threads: any.
 * Errors: NULL when there is none.
 */
CF_EXPORT CFBundleRef CFBundleGetBundleWithIdentifier(CFStringRef bundleID) CRL_LINK(CFBundleGetBundleWithIdentifier)
    CF_RETURNS_NOT_RETAINED;

/**
 * Returns the bundles that the program has made, the main bundle included. The array is borrowed, for as long as the process lasts.
 * Threads: any.
 */
CF_EXPORT CFArrayRef CFBundleGetAllBundles(void) CRL_LINK(CFBundleGetAllBundles) CF_RETURNS_NOT_RETAINED;

/** Returns the type id of bundles. Threads: any. */
CF_EXPORT CFTypeID CFBundleGetTypeID(void) CRL_LINK(CFBundleGetTypeID);

/**
 * Creates the bundle of a folder, or returns the one that was made of it before. Info.plist is read now, and not again.
 *
 * Ownership: the caller releases the bundle, which stays in the list of all bundles.
 * Threads: any.
 * Errors: NULL when the URL leads to no folder, and when there is no memory or descriptor. An Info.plist that is damaged or may not be read
 * counts as empty, with a line on stderr.
 */
CF_EXPORT CFBundleRef CFBundleCreate(CFAllocatorRef allocator, CFURLRef bundleURL) CRL_LINK(CFBundleCreate) CF_RETURNS_RETAINED;

/**
 * Creates the bundles of all folders in a folder whose names end with a type, as "bundle"; of all folders if it is NULL.
 *
 * Ownership: the caller releases the array.
 * Threads: any.
 * Errors: NULL when the URL is of no file, and when there is no memory.
 */
CF_EXPORT CFArrayRef CFBundleCreateBundlesFromDirectory(CFAllocatorRef allocator, CFURLRef directoryURL, CFStringRef bundleType)
    CRL_LINK(CFBundleCreateBundlesFromDirectory) CF_RETURNS_RETAINED;

/**
 * Returns the URL of the folder, which the caller releases. Threads: any. Errors: NULL for the bundle stops the process with a message.
 */
CF_EXPORT CFURLRef CFBundleCopyBundleURL(CFBundleRef bundle) CRL_LINK(CFBundleCopyBundleURL) CF_RETURNS_RETAINED;

/**
 * Returns what Info.plist, or before it the strings of InfoPlist in the user's language, has under a key. It is borrowed from the bundle.
 *
 * Threads: any.
 * Errors: NULL when there is nothing. NULL for the bundle stops the process with a message.
 */
CF_EXPORT CFTypeRef CFBundleGetValueForInfoDictionaryKey(CFBundleRef bundle, CFStringRef key)
    CRL_LINK(CFBundleGetValueForInfoDictionaryKey);

/**
 * Returns what Info.plist has, borrowed from the bundle; empty without one. If it has CFBundleVersion, there is a number under
 * "CFBundleNumericVersion".
 *
 * Threads: any. Errors: NULL for the bundle stops the process with a message.
 */
CF_EXPORT CFDictionaryRef CFBundleGetInfoDictionary(CFBundleRef bundle) CRL_LINK(CFBundleGetInfoDictionary) CF_RETURNS_NOT_RETAINED;

/** Returns the strings of InfoPlist in the user's language, borrowed from the bundle; NULL if there are none. Threads: any. */
CF_EXPORT CFDictionaryRef CFBundleGetLocalInfoDictionary(CFBundleRef bundle) CRL_LINK(CFBundleGetLocalInfoDictionary)
    CF_RETURNS_NOT_RETAINED;

/**
 * Sets the codes of the bundle's type and maker: those of Info.plist, or else APPL, FMWK or BNDL by the name of the folder, and "????".
 *
 * Either pointer may be NULL.
 * Threads: any. Errors: NULL for the bundle stops the process with a message.
 */
CF_EXPORT void CFBundleGetPackageInfo(CFBundleRef bundle, UInt32 *packageType, UInt32 *packageCreator) CRL_LINK(CFBundleGetPackageInfo);

/** Returns CFBundleIdentifier of Info.plist, borrowed from the bundle; NULL if there is none. Threads: any. */
CF_EXPORT CFStringRef CFBundleGetIdentifier(CFBundleRef bundle) CRL_LINK(CFBundleGetIdentifier) CF_RETURNS_NOT_RETAINED;

/**
 * Returns CFBundleVersion as a number: of "1.2.3b4" it is 0x01236004, where 2, 4, 6 and 8 stand for d, a, b, f, and 8 for no letter.
 *
 * Threads: any.
 * Errors: 0 for a text of another form: the first part has two digits at most, the others one, the last number is at most 255.
 */
CF_EXPORT UInt32 CFBundleGetVersionNumber(CFBundleRef bundle) CRL_LINK(CFBundleGetVersionNumber);

/** Returns CFBundleDevelopmentRegion of Info.plist, borrowed from the bundle; NULL if there is none. Threads: any. */
CF_EXPORT CFStringRef CFBundleGetDevelopmentRegion(CFBundleRef bundle) CRL_LINK(CFBundleGetDevelopmentRegion) CF_RETURNS_NOT_RETAINED;

/**
 * Returns the URL of the folder of Info.plist and programs: `Contents`, `Versions/Current` or the bundle itself. The caller releases it.
 * Threads: any.
 */
CF_EXPORT CFURLRef CFBundleCopySupportFilesDirectoryURL(CFBundleRef bundle) CRL_LINK(CFBundleCopySupportFilesDirectoryURL)
    CF_RETURNS_RETAINED;

/** Returns the URL of the folder of resources: `Resources` in it, or the bundle itself. The caller releases it. Threads: any. */
CF_EXPORT CFURLRef CFBundleCopyResourcesDirectoryURL(CFBundleRef bundle) CRL_LINK(CFBundleCopyResourcesDirectoryURL) CF_RETURNS_RETAINED;

/** Returns the URL of `Frameworks` in the folder of support files, which need not exist. The caller releases it. Threads: any. */
CF_EXPORT CFURLRef CFBundleCopyPrivateFrameworksURL(CFBundleRef bundle) CRL_LINK(CFBundleCopyPrivateFrameworksURL) CF_RETURNS_RETAINED;

/** Returns the URL of `SharedFrameworks` in the folder of support files, which need not exist. The caller releases it. Threads: any. */
CF_EXPORT CFURLRef CFBundleCopySharedFrameworksURL(CFBundleRef bundle) CRL_LINK(CFBundleCopySharedFrameworksURL) CF_RETURNS_RETAINED;

/** Returns the URL of `SharedSupport` in the folder of support files, which need not exist. The caller releases it. Threads: any. */
CF_EXPORT CFURLRef CFBundleCopySharedSupportURL(CFBundleRef bundle) CRL_LINK(CFBundleCopySharedSupportURL) CF_RETURNS_RETAINED;

/** Returns the URL of `PlugIns` in the folder of support files, which need not exist. The caller releases it. Threads: any. */
CF_EXPORT CFURLRef CFBundleCopyBuiltInPlugInsURL(CFBundleRef bundle) CRL_LINK(CFBundleCopyBuiltInPlugInsURL) CF_RETURNS_RETAINED;

/** Returns what Info.plist in a folder has, which the caller releases; empty without one. No bundle is made. Threads: any. */
CF_EXPORT CFDictionaryRef CFBundleCopyInfoDictionaryInDirectory(CFURLRef bundleURL) CRL_LINK(CFBundleCopyInfoDictionaryInDirectory)
    CF_RETURNS_RETAINED;

/** Returns the same, or NULL if the URL leads to no folder. Threads: any. */
CF_EXPORT CFDictionaryRef CFBundleCopyInfoDictionaryForURL(CFURLRef url) CRL_LINK(CFBundleCopyInfoDictionaryForURL) CF_RETURNS_RETAINED;

/** Sets the codes that CFBundleGetPackageInfo sets, of a folder. Returns false if neither Info.plist nor its name tells. Threads: any. */
CF_EXPORT Boolean CFBundleGetPackageInfoInDirectory(CFURLRef url, UInt32 *packageType, UInt32 *packageCreator)
    CRL_LINK(CFBundleGetPackageInfoInDirectory);

/**
 * Looks for a resource: first in the folder of resources, then in its folders `LANGUAGE.lproj`. These are, in this order: that which fits
 * best what the user wants, that of the same language without a region, Base, that of the developers. The user's languages are the
 * preference
 * AppleLanguages, an array, or else LANGUAGE, LC_ALL, LC_MESSAGES and LANG. What the main bundle has for them, other bundles show as well,
 * unless its Info.plist has CFBundleAllowMixedLocalizations.
 *
 * `resourceName` may be NULL for any name; `resourceType`, with or without a full stop, may be NULL if the name has it. `subDirName` is a
 * folder in these, or NULL.
 * Ownership: the caller releases the URL.
 * Threads: any.
 * Errors: NULL when there is none. A name that leads upwards by `..` finds nothing, here and below.
 */
CF_EXPORT CFURLRef CFBundleCopyResourceURL(CFBundleRef bundle, CFStringRef resourceName, CFStringRef resourceType, CFStringRef subDirName)
    CRL_LINK(CFBundleCopyResourceURL) CF_RETURNS_RETAINED;

/**
 * Returns the URLs of all resources of a type, of all languages that CFBundleCopyResourceURL looks through, in the order of their names
 * in each.
 *
 * `resourceType` is NULL for all files.
 * Ownership: the caller releases the array.
 * Threads: any.
 * Errors: NULL without memory.
 */
CF_EXPORT CFArrayRef CFBundleCopyResourceURLsOfType(CFBundleRef bundle, CFStringRef resourceType, CFStringRef subDirName)
    CRL_LINK(CFBundleCopyResourceURLsOfType) CF_RETURNS_RETAINED;

/**
 * Returns the string that a table has for a key in the user's language. The table is the file `TABLE.strings`, a property list in any
 * format: `"key" = "text";` lines in UTF-8 or UTF-16, XML, or the binary form. It is read once.
 *
 * `tableName` is NULL for "Localizable". `value` is returned if there is no such string, and the key if it is NULL or empty.
 * Ownership: the caller releases the string.
 * Threads: any.
 * Errors: NULL when all are. A damaged table counts as empty, with a line on stderr.
 * Differs from Apple: there are no `.stringsdict` files.
 */
CF_EXPORT CFStringRef CFBundleCopyLocalizedString(CFBundleRef bundle, CFStringRef key, CFStringRef value, CFStringRef tableName)
    CRL_LINK(CFBundleCopyLocalizedString) CF_FORMAT_ARGUMENT(2) CF_RETURNS_RETAINED;

#if !defined(__swift__)
/** The string for a key in the main bundle's table "Localizable", or the key. The comment is for translators. The caller releases it. */
#define CFCopyLocalizedString(key, comment) CFBundleCopyLocalizedString(CFBundleGetMainBundle(), (key), (key), NULL)
/** The same of another table. */
#define CFCopyLocalizedStringFromTable(key, tbl, comment) CFBundleCopyLocalizedString(CFBundleGetMainBundle(), (key), (key), (tbl))
/** The same of another bundle. */
#define CFCopyLocalizedStringFromTableInBundle(key, tbl, bundle, comment) CFBundleCopyLocalizedString((bundle), (key), (key), (tbl))
/** The same with another text if there is none. */
#define CFCopyLocalizedStringWithDefaultValue(key, tbl, bundle, value, comment) CFBundleCopyLocalizedString((bundle), (key), (value), (tbl))
#endif

/** Looks for a resource in a folder that is made no bundle, as CFBundleCopyResourceURL does. Threads: any. */
CF_EXPORT CFURLRef CFBundleCopyResourceURLInDirectory(CFURLRef bundleURL, CFStringRef resourceName, CFStringRef resourceType,
                                                      CFStringRef subDirName) CRL_LINK(CFBundleCopyResourceURLInDirectory)
    CF_RETURNS_RETAINED;

/** Returns all resources of a type in a folder that is made no bundle; NULL if it is none. Threads: any. */
CF_EXPORT CFArrayRef CFBundleCopyResourceURLsOfTypeInDirectory(CFURLRef bundleURL, CFStringRef resourceType, CFStringRef subDirName)
    CRL_LINK(CFBundleCopyResourceURLsOfTypeInDirectory) CF_RETURNS_RETAINED;

/**
 * Returns the names of a bundle's localizations: its folders `*.lproj`, sorted, and what Info.plist has under CFBundleLocalizations.
 *
 * Ownership: the caller releases the array.
 * Threads: any.
 * Errors: NULL without memory.
 */
CF_EXPORT CFArrayRef CFBundleCopyBundleLocalizations(CFBundleRef bundle) CRL_LINK(CFBundleCopyBundleLocalizations) CF_RETURNS_RETAINED;

/**
 * Returns those of the localizations that the user wants, the best first; if none fits, the one of the main bundle's developers, or else
 * the first one; "en" if there is none at all. Names are as "de", "de_CH", "zh-Hans" and "German".
 *
 * Ownership: the caller releases the array.
 * Threads: any.
 * Errors: NULL without memory.
 * Differs from the toolchain's: that always returns the first one.
 */
CF_EXPORT CFArrayRef CFBundleCopyPreferredLocalizationsFromArray(CFArrayRef locArray) CRL_LINK(CFBundleCopyPreferredLocalizationsFromArray)
    CF_RETURNS_RETAINED;

/**
 * Returns those of the localizations that fit the first of the wanted languages that any fits; if none does, the first one.
 *
 * `prefArray` is NULL for what the user wants.
 * Ownership: the caller releases the array.
 * Threads: any.
 * Errors: NULL without memory.
 */
CF_EXPORT CFArrayRef CFBundleCopyLocalizationsForPreferences(CFArrayRef locArray, CFArrayRef prefArray)
    CRL_LINK(CFBundleCopyLocalizationsForPreferences) CF_RETURNS_RETAINED;

/** Looks for a resource in the folder of resources and that of one localization, whose name is just this one. Threads: any. */
CF_EXPORT CFURLRef CFBundleCopyResourceURLForLocalization(CFBundleRef bundle, CFStringRef resourceName, CFStringRef resourceType,
                                                          CFStringRef subDirName, CFStringRef localizationName)
    CRL_LINK(CFBundleCopyResourceURLForLocalization) CF_RETURNS_RETAINED;

/** Returns all resources of a type of one localization, and those for all languages. Threads: any. */
CF_EXPORT CFArrayRef CFBundleCopyResourceURLsOfTypeForLocalization(CFBundleRef bundle, CFStringRef resourceType, CFStringRef subDirName,
                                                                   CFStringRef localizationName)
    CRL_LINK(CFBundleCopyResourceURLsOfTypeForLocalization) CF_RETURNS_RETAINED;

/** Returns the localizations of a folder that is made no bundle, which the caller releases; NULL if it is none. Threads: any. */
CF_EXPORT CFArrayRef CFBundleCopyLocalizationsForURL(CFURLRef url) CRL_LINK(CFBundleCopyLocalizationsForURL) CF_RETURNS_RETAINED;

/**
 * Returns the URL of the program or library NAME that Info.plist has under CFBundleExecutable, or else of that with the name of the
 * folder. The file is `NAME`, `libNAME.so` or `NAME.so` in the folder of support files; with Contents, in `Contents/Linux` or
 * `Contents/MacOS` first. Of the main bundle it is the program itself.
 *
 * Ownership: the caller releases the URL.
 * Threads: any.
 * Errors: NULL when there is none.
 */
CF_EXPORT CFURLRef CFBundleCopyExecutableURL(CFBundleRef bundle) CRL_LINK(CFBundleCopyExecutableURL) CF_RETURNS_RETAINED;

/** Returns the URL of another program of the bundle, which the caller releases; NULL if there is none of the name. Threads: any. */
CF_EXPORT CFURLRef CFBundleCopyAuxiliaryExecutableURL(CFBundleRef bundle, CFStringRef executableName)
    CRL_LINK(CFBundleCopyAuxiliaryExecutableURL) CF_RETURNS_RETAINED;

/**
 * Returns whether the bundle's library can be loaded, as far as that is known without running it: it is one for this machine.
 *
 * Ownership: the caller releases `*error`.
 * Threads: any.
 * Errors: false, with `*error` set unless `error` is NULL.
 */
CF_EXPORT Boolean CFBundlePreflightExecutable(CFBundleRef bundle, CFErrorRef *error) CRL_LINK(CFBundlePreflightExecutable);

/**
 * Loads the bundle's library with dlopen, unless it is loaded. Its names are not there for other libraries.
 *
 * Ownership: the caller releases `*error`.
 * Threads: any. Constructors run on this one.
 * Errors: false, with `*error` set unless `error` is NULL.
 */
CF_EXPORT Boolean CFBundleLoadExecutableAndReturnError(CFBundleRef bundle, CFErrorRef *error)
    CRL_LINK(CFBundleLoadExecutableAndReturnError);

/** Does the same without an error. Threads: any. */
CF_EXPORT Boolean CFBundleLoadExecutable(CFBundleRef bundle) CRL_LINK(CFBundleLoadExecutable);

/** Returns whether the library is loaded by this bundle; the main bundle always is. Threads: any. */
CF_EXPORT Boolean CFBundleIsExecutableLoaded(CFBundleRef bundle) CRL_LINK(CFBundleIsExecutableLoaded);

/** Unloads the library. Nobody may use what it has, or look for it, meanwhile or later. Threads: any. */
CF_EXPORT void CFBundleUnloadExecutable(CFBundleRef bundle) CRL_LINK(CFBundleUnloadExecutable);

/** Returns the address of a function of the bundle, which is loaded if it is not; NULL if there is none. Threads: any. */
CF_EXPORT void *CFBundleGetFunctionPointerForName(CFBundleRef bundle, CFStringRef functionName) CRL_LINK(CFBundleGetFunctionPointerForName);

/** Sets `ftbl` to the addresses of several, in the order of their names; NULL for those that are missing. Threads: any. */
CF_EXPORT void CFBundleGetFunctionPointersForNames(CFBundleRef bundle, CFArrayRef functionNames, void *ftbl[])
    CRL_LINK(CFBundleGetFunctionPointersForNames);

/** Returns the address of a variable of the bundle, which is loaded if it is not; NULL if there is none. Threads: any. */
CF_EXPORT void *CFBundleGetDataPointerForName(CFBundleRef bundle, CFStringRef symbolName) CRL_LINK(CFBundleGetDataPointerForName);

/** Sets `stbl` to the addresses of several, in the order of their names; NULL for those that are missing. Threads: any. */
CF_EXPORT void CFBundleGetDataPointersForNames(CFBundleRef bundle, CFArrayRef symbolNames, void *stbl[])
    CRL_LINK(CFBundleGetDataPointersForNames);

CF_EXTERN_C_END

#endif /* ! __COREFOUNDATION_CFBUNDLE__ */
