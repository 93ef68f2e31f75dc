/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles: their layouts, what Info.plist says, resources and strings by language, libraries, and folders that vanish. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Bundle/bundle_version.h"
#include "Bundle/main_bundle.h"
#include "Failure/nth_failure.h"
#include "folder_maker.h"
#include "harness.h"

static CFURLRef create_url(const char *name)
{
    const char *path = folder_path(name);

    return CFURLCreateFromFileSystemRepresentation(NULL, (const UInt8 *)path, (CFIndex)strlen(path), true);
}

static CFBundleRef create_bundle(const char *name)
{
    CFURLRef url = create_url(name);
    CFBundleRef bundle = CFBundleCreate(NULL, url);

    CFRelease(url);
    return bundle;
}

/* The path of a URL below the test's folder, which is released; "none" for NULL. */
static const char *take_path(CFURLRef url)
{
    static char paths[4][PATH_MAX];
    static int next;
    char *path = paths[next++ % 4];
    size_t length = strlen(folder_path(""));

    if (!url) {
        return "none";
    }
    REQUIRE(CFURLGetFileSystemRepresentation(url, true, (UInt8 *)path, PATH_MAX));
    CFRelease(url);
    return strncmp(path, folder_path(""), length) == 0 ? path + length + (path[length] == '/') : path;
}

/* The last parts of the URLs, which are released. */
static const char *take_leaves(CFArrayRef urls)
{
    static char text[1024];

    text[0] = '\0';
    for (CFIndex i = 0; urls && i < CFArrayGetCount(urls); i++) {
        const char *path = take_path((CFURLRef)CFRetain(CFArrayGetValueAtIndex(urls, i)));
        const char *slash = strrchr(path, '/');

        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? " " : "", slash ? slash + 1 : path);
    }
    if (urls) {
        CFRelease(urls);
    }
    return urls ? text : "none";
}

#define INFO                                                                                   \
    "{ CFBundleIdentifier = 'com.example.one'; CFBundleName = One; CFBundleExecutable = one; " \
    "CFBundlePackageType = BNDL; CFBundleSignature = abcd; CFBundleVersion = '1.2.3b4'; CFBundleDevelopmentRegion = en; }"

/* ---- layouts ---- */

TEST(each_layout_has_its_folders, "2213")
{
    static const struct {
        const char *name, *info, *resource, *program, *support, *resources, *frameworks;
    } rows[] = {
        {"App.app", "App.app/Contents/Info.plist", "App.app/Contents/Resources/a.txt", "App.app/Contents/Linux/one", "App.app/Contents",
         "App.app/Contents/Resources", "App.app/Contents/Frameworks"},
        {"Mac.app", "Mac.app/Contents/Info.plist", "Mac.app/Contents/Resources/a.txt", "Mac.app/Contents/MacOS/one", "Mac.app/Contents",
         "Mac.app/Contents/Resources", "Mac.app/Contents/Frameworks"},
        {"Flat.bundle", "Flat.bundle/Info.plist", "Flat.bundle/a.txt", "Flat.bundle/libone.so", "Flat.bundle", "Flat.bundle",
         "Flat.bundle/Frameworks"},
        {"Old.framework", "Old.framework/Resources/Info.plist", "Old.framework/Resources/a.txt", "Old.framework/one.so", "Old.framework",
         "Old.framework/Resources", "Old.framework/Frameworks"},
        {"Ver.framework", "Ver.framework/Versions/Current/Resources/Info.plist", "Ver.framework/Versions/Current/Resources/a.txt",
         "Ver.framework/Versions/Current/one", "Ver.framework/Versions/Current", "Ver.framework/Versions/Current/Resources",
         "Ver.framework/Versions/Current/Frameworks"},
    };

    folder_make();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        folder_write(rows[i].info, INFO);
        folder_write(rows[i].resource, "");
        folder_write(rows[i].program, "");
        CFBundleRef bundle = create_bundle(rows[i].name);
        REQUIRE(bundle);
        EXPECT_STR(take_path(CFBundleCopyBundleURL(bundle)), rows[i].name);
        EXPECT_STR(text_of(CFBundleGetIdentifier(bundle)), "com.example.one");
        EXPECT_STR(take_path(CFBundleCopyResourceURL(bundle, CFSTR("a"), CFSTR("txt"), NULL)), rows[i].resource);
        EXPECT_STR(take_path(CFBundleCopyExecutableURL(bundle)), rows[i].program);
        EXPECT_STR(take_path(CFBundleCopySupportFilesDirectoryURL(bundle)), rows[i].support);
        EXPECT_STR(take_path(CFBundleCopyResourcesDirectoryURL(bundle)), rows[i].resources);
        EXPECT_STR(take_path(CFBundleCopyPrivateFrameworksURL(bundle)), rows[i].frameworks);
        EXPECT(strstr(take_path(CFBundleCopySharedFrameworksURL(bundle)), "/SharedFrameworks"));
        EXPECT(strstr(take_path(CFBundleCopySharedSupportURL(bundle)), "/SharedSupport"));
        EXPECT(strstr(take_path(CFBundleCopyBuiltInPlugInsURL(bundle)), "/PlugIns"));
        EXPECT_STR(take_path(CFBundleCopyAuxiliaryExecutableURL(bundle, CFSTR("one"))), rows[i].program);
        EXPECT_STR(take_path(CFBundleCopyAuxiliaryExecutableURL(bundle, CFSTR("../one"))), "none");
        EXPECT_STR(take_path(CFBundleCopyAuxiliaryExecutableURL(bundle, NULL)), "none");
        CFRelease(bundle);
    }
    folder_write("Links.framework/Versions/A/Links", "");
    REQUIRE(symlink("A", folder_path("Links.framework/Versions/Current")) == 0);
    REQUIRE(mkdir(folder_path("Links.framework/Resources"), 0755) == 0);
    CFBundleRef bundle = create_bundle("Links.framework");
    EXPECT_STR(take_path(CFBundleCopyExecutableURL(bundle)), "Links.framework/Versions/Current/Links"); /* named as the folder */
    CFRelease(bundle);
    folder_remove();
}

TEST(a_program_finds_its_bundle_beside_it, "2213")
{
    static const struct {
        const char *program, *file, *root;
    } rows[] = {
        {"a/prog", "a/prog", "a"},
        {"b/prog", "b/prog.resources/x", "b/prog.resources"},
        {"C.app/Contents/Linux/prog", "C.app/Contents/Info.plist", "C.app"},
        {"D.app/Contents/MacOS/prog", "D.app/Contents/Info.plist", "D.app"},
        {"e/Linux/prog", "e/Linux/prog", "e/Linux"},
        {"f/bin/prog", "f/lib/prog/x", "f/lib/prog"},
        {"f/bin/prog", "f/share/prog/Info.plist", "f/share/prog"}, /* before one without Info.plist */
        {"f/bin/prog", "f/lib/prog/Info.plist", "f/lib/prog"},
        {"f/bin/prog", "f/share/prog.resources/Info.plist", "f/share/prog.resources"},
        {"g/sbin/prog", "g/share/prog/Resources/Info.plist", "g/share/prog"},
        {"h/libexec/prog", "h/share/other/x", "h/libexec"},
        {"i/other/prog", "i/lib/prog/Info.plist", "i/other"},
    };
    char root[PATH_MAX];
    char long_path[PATH_MAX + 2];

    folder_make();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        folder_write(rows[i].file, "");
        EXPECT(main_bundle_find_root(folder_path(rows[i].program), root));
        EXPECT_STR(root, folder_path(rows[i].root));
    }
    EXPECT(main_bundle_find_root("/prog", root));
    EXPECT_STR(root, "");
    EXPECT(!main_bundle_find_root("prog", root));
    memset(long_path, '/', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = '\0';
    EXPECT(!main_bundle_find_root(long_path, root));
    folder_remove();
}

TEST(the_main_bundle_is_that_of_the_process, "2213")
{
    char path[PATH_MAX] = "";

    folder_make();
    CFBundleRef bundle = CFBundleGetMainBundle();
    REQUIRE(bundle && CFBundleGetMainBundle() == bundle);
    REQUIRE(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    EXPECT_STR(take_path(CFBundleCopyExecutableURL(bundle)), path);
    EXPECT(CFBundleIsExecutableLoaded(bundle) && CFBundleLoadExecutable(bundle) && CFBundlePreflightExecutable(bundle, NULL));
    EXPECT(CFBundleGetFunctionPointerForName(bundle, CFSTR("getpid")) == (void *)(uintptr_t)getpid);
    CFBundleUnloadExecutable(bundle);
    EXPECT(CFBundleIsExecutableLoaded(bundle));
    CFArrayRef all = CFBundleGetAllBundles();
    EXPECT(all && CFArrayGetCount(all) == 1 && CFArrayGetValueAtIndex(all, 0) == bundle && CFBundleGetAllBundles() == all);
    CFStringRef words = CFCopyDescription(bundle);
    EXPECT(words && CFStringHasPrefix(words, CFSTR("CFBundle 0x")));
    CFRelease(words);
    EXPECT_STR(take_text(CFCopyLocalizedString(CFSTR("key"), "no table")), "key");
    EXPECT_STR(take_text(CFCopyLocalizedStringFromTable(CFSTR("key"), CFSTR("Table"), "")), "key");
    folder_remove();
}

/* ---- information ---- */

TEST(info_says_what_a_bundle_is, "2213")
{
    UInt32 type = 0;
    UInt32 creator = 0;

    folder_make();
    folder_write("One.bundle/Info.plist", INFO);
    folder_write("One.bundle/en.lproj/InfoPlist.strings", "CFBundleName = \"One in English\";");
    CFBundleRef bundle = create_bundle("One.bundle");
    CFBundleRef again = create_bundle("One.bundle/");
    EXPECT(bundle && bundle == again);
    CFRelease(again);
    EXPECT_EQ(CFBundleGetVersionNumber(bundle), 0x01236004);
    EXPECT_STR(text_of(CFBundleGetDevelopmentRegion(bundle)), "en");
    EXPECT_STR(text_of(CFDictionaryGetValue(CFBundleGetInfoDictionary(bundle), kCFBundleNameKey)), "One");
    EXPECT(CFDictionaryContainsKey(CFBundleGetInfoDictionary(bundle), CFSTR("CFBundleNumericVersion")));
    EXPECT_STR(text_of(CFBundleGetValueForInfoDictionaryKey(bundle, kCFBundleNameKey)), "One in English");
    EXPECT_STR(text_of(CFBundleGetValueForInfoDictionaryKey(bundle, kCFBundleExecutableKey)), "one");
    EXPECT_STR(text_of(CFBundleGetValueForInfoDictionaryKey(bundle, CFSTR("none"))), "none");
    EXPECT_STR(text_of(CFBundleGetValueForInfoDictionaryKey(bundle, NULL)), "none");
    EXPECT_EQ(CFDictionaryGetCount(CFBundleGetLocalInfoDictionary(bundle)), 1);
    EXPECT(CFBundleGetLocalInfoDictionary(bundle) == CFBundleGetLocalInfoDictionary(bundle));
    CFBundleGetPackageInfo(bundle, &type, &creator);
    EXPECT(type == 0x424E444C && creator == 0x61626364);
    CFBundleGetPackageInfo(bundle, NULL, NULL);
    EXPECT(CFGetTypeID(bundle) == CFBundleGetTypeID());
    CFRelease(bundle);
    EXPECT_STOPS("CFBundleGetIdentifier: the bundle is NULL", { (void)CFBundleGetIdentifier(NULL); });
    EXPECT_STOPS("CFBundleLoadExecutable: the bundle is another object",
                 { (void)CFBundleLoadExecutable((CFBundleRef)(uintptr_t)kCFBooleanTrue); });
    folder_remove();
}

static const char *package_info_of(const char *name)
{
    static char words[64];
    UInt32 type = 0;
    UInt32 creator = 0;
    CFURLRef url = create_url(name);
    bool is_said = CFBundleGetPackageInfoInDirectory(url, &type, &creator);

    CFRelease(url);
    (void)snprintf(words, sizeof words, "%d %X %X", is_said, type, creator);
    return words;
}

TEST(a_folder_is_looked_at_without_a_bundle, "2213")
{
    folder_make();
    folder_write("One.bundle/Info.plist", INFO);
    folder_write("One.bundle/de.lproj/a.txt", "");
    folder_write("Two.app/x", "");
    folder_write("Three.framework/x", "");
    folder_write("Four/x", "");
    CFURLRef url = create_url("One.bundle");
    CFURLRef missing = create_url("missing");
    CFURLRef remote = CFURLCreateWithString(NULL, CFSTR("http://example.com/"), NULL);
    CFDictionaryRef info = CFBundleCopyInfoDictionaryInDirectory(url);
    EXPECT(info && CFDictionaryGetCount(info) == 7);
    CFRelease(info);
    info = CFBundleCopyInfoDictionaryForURL(url);
    EXPECT(info && CFDictionaryGetCount(info) == 7);
    CFRelease(info);
    info = CFBundleCopyInfoDictionaryInDirectory(missing);
    EXPECT(info && CFDictionaryGetCount(info) == 0);
    CFRelease(info);
    EXPECT(!CFBundleCopyInfoDictionaryForURL(missing));
    EXPECT(!CFBundleCreate(NULL, missing) && !CFBundleCreate(NULL, NULL));
    (void)remote; /* its path is one of this machine, as in Core Foundation */
    EXPECT_STR(take_path(CFBundleCopyResourceURLInDirectory(url, CFSTR("a"), CFSTR("txt"), NULL)), "One.bundle/de.lproj/a.txt");
    EXPECT(!CFBundleCopyResourceURLInDirectory(missing, CFSTR("a"), CFSTR("txt"), NULL));
    EXPECT_STR(take_leaves(CFBundleCopyResourceURLsOfTypeInDirectory(url, CFSTR("plist"), NULL)), "Info.plist");
    EXPECT(!CFBundleCopyResourceURLsOfTypeInDirectory(missing, CFSTR("plist"), NULL));
    CFArrayRef names = CFBundleCopyLocalizationsForURL(url);
    EXPECT(names && CFArrayGetCount(names) == 1);
    CFRelease(names);
    EXPECT(!CFBundleCopyLocalizationsForURL(missing));
    EXPECT_STR(package_info_of("One.bundle"), "1 424E444C 61626364");
    EXPECT_STR(package_info_of("Two.app"), "1 4150504C 3F3F3F3F");
    EXPECT_STR(package_info_of("Three.framework"), "1 464D574B 3F3F3F3F");
    EXPECT_STR(package_info_of("Four"), "0 424E444C 3F3F3F3F");
    EXPECT_STR(package_info_of("missing"), "0 0 0");
    EXPECT_EQ(CFArrayGetCount(CFBundleGetAllBundles()), 1);
    CFRelease(url);
    CFRelease(missing);
    CFRelease(remote);
    folder_remove();
}

TEST(versions_are_numbers_of_digits_and_a_stage, "2213")
{
    static const struct {
        const char *text;
        UInt32 number;
    } rows[] = {
        {"1", 0x01008000},
        {"12", 0x12008000},
        {"123", 0},
        {"1.2", 0x01208000},
        {"1.23", 0},
        {"1.2.3", 0x01238000},
        {"1.2.3.4", 0},
        {"1.2d3", 0x01202003},
        {"1.2a3", 0x01204003},
        {"1.2.3b4", 0x01236004},
        {"1.2b", 0x01206000},
        {"1.2b255", 0x012060FF},
        {"1.2b256", 0},
        {"1.2fc3", 0},
        {"", 0},
        {"x", 0},
        {"1x", 0},
        {"1.", 0x01008000},
        {"1.2.b3", 0x01206003},
        {"1.b2", 0x01006002},
        {"1..2", 0},
        {"1.2 ", 0},
        {"1.2.3b4c", 0},
        {"a text that is longer than versions are", 0},
    };

    EXPECT_EQ(bundle_version_parse(NULL), 0);
    EXPECT_EQ(bundle_version_parse(kCFBooleanTrue), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CFStringRef text = CFStringCreateWithCString(NULL, rows[i].text, kCFStringEncodingUTF8);
        UInt32 number = bundle_version_parse(text);

        if (number != rows[i].number) {
            test_failed(__FILE__, __LINE__, "%s: %x, not %x", rows[i].text, number, rows[i].number);
        }
        CFRelease(text);
    }
}

TEST(bundles_of_a_folder_and_by_identifier, "2214")
{
    folder_make();
    folder_write("plug/A.bundle/Info.plist", "{ CFBundleIdentifier = id; CFBundleVersion = 2; }");
    folder_write("plug/B.bundle/Info.plist", "{ CFBundleIdentifier = id; CFBundleVersion = 1; }");
    folder_write("plug/C.other/Info.plist", "{ CFBundleIdentifier = (id); CFBundleVersion = (1); }");
    folder_write("plug/file.bundle", "");
    CFURLRef url = create_url("plug");
    CFArrayRef bundles = CFBundleCreateBundlesFromDirectory(NULL, url, CFSTR("bundle"));
    EXPECT(bundles && CFArrayGetCount(bundles) == 2);
    CFRelease(bundles);
    bundles = CFBundleCreateBundlesFromDirectory(NULL, url, NULL);
    EXPECT(bundles && CFArrayGetCount(bundles) == 3);
    CFRelease(bundles);
    EXPECT_EQ(CFArrayGetCount(CFBundleGetAllBundles()), 4);
    CFBundleRef bundle = CFBundleGetBundleWithIdentifier(CFSTR("id"));
    REQUIRE(bundle);
    EXPECT_STR(take_path(CFBundleCopyBundleURL(bundle)), "plug/A.bundle"); /* the higher version */
    EXPECT(!CFBundleGetBundleWithIdentifier(CFSTR("none")) && !CFBundleGetBundleWithIdentifier(NULL));
    CFRelease(url);
    url = create_url("missing");
    bundles = CFBundleCreateBundlesFromDirectory(NULL, url, NULL);
    EXPECT(bundles && CFArrayGetCount(bundles) == 0);
    CFRelease(bundles);
    CFRelease(url);
    EXPECT(!CFBundleCreateBundlesFromDirectory(NULL, NULL, NULL));
    folder_remove();
}

TEST(an_info_that_is_damaged_counts_as_empty, "2219")
{
    folder_make();
    folder_write("Bad.bundle/Info.plist", "<plist><dict>");
    folder_write("Pipe.bundle/x", "");
    REQUIRE(mkfifo(folder_path("Pipe.bundle/Info.plist"), 0600) == 0);
    stderr_take();
    CFBundleRef bad = create_bundle("Bad.bundle");
    CFBundleRef pipe = create_bundle("Pipe.bundle");
    const char *said = stderr_taken();
    EXPECT(strstr(said, "Bad.bundle/Info.plist is not used. ") && strstr(said, "It is no regular file"));
    EXPECT(bad && CFDictionaryGetCount(CFBundleGetInfoDictionary(bad)) == 0 && !CFBundleGetIdentifier(bad));
    EXPECT(pipe && !CFBundleGetDevelopmentRegion(pipe) && !CFBundleGetLocalInfoDictionary(pipe));
    CFRelease(bad);
    CFRelease(pipe);
    folder_remove();
}

/* ---- resources ---- */

TEST(a_hundred_thousand_localizations_are_named_once_each, "2213")
{
    enum { count = 100000, longest = 16 };
    static const char begin[] = "{ CFBundleLocalizations = (";
    char *text = malloc(sizeof begin + (size_t)count * longest + longest);
    size_t length = sizeof begin - 1;

    REQUIRE(text);
    folder_make();
    memcpy(text, begin, length);
    for (int i = 0; i < count; i++) {
        length += (size_t)snprintf(text + length, longest, "l%d,", i / 2);
    }
    (void)snprintf(text + length, longest, "); }");
    folder_write("N.bundle/Info.plist", text);
    CFBundleRef bundle = create_bundle("N.bundle");
    CFArrayRef names = CFBundleCopyBundleLocalizations(bundle);
    EXPECT_EQ(CFArrayGetCount(names), count / 2);
    CFRelease(names);
    CFRelease(bundle);
    free(text);
    folder_remove();
}

static CFBundleRef create_localized(void)
{
    folder_write("L.bundle/Info.plist", "{ CFBundleDevelopmentRegion = English; CFBundleLocalizations = (ja, de); }");
    folder_write("L.bundle/root.txt", "");
    folder_write("L.bundle/both.txt", "");
    folder_write("L.bundle/sub/in.txt", "");
    folder_write("L.bundle/de.lproj/both.txt", "");
    folder_write("L.bundle/de.lproj/local.txt", "");
    folder_write("L.bundle/de.lproj/sub/deep.txt", "");
    folder_write("L.bundle/de_CH.lproj/local.txt", "");
    folder_write("L.bundle/en.lproj/local.txt", "");
    folder_write("L.bundle/en.lproj/english.txt", "");
    folder_write("L.bundle/fr.lproj/local.txt", "");
    folder_write("L.bundle/Base.lproj/base.txt", "");
    return create_bundle("L.bundle");
}

static const char *resource_of(CFBundleRef bundle, CFStringRef name)
{
    return take_path(CFBundleCopyResourceURL(bundle, name, CFSTR("txt"), NULL));
}

TEST(resources_are_found_by_language, "2215")
{
    folder_make();
    CFBundleRef bundle = create_localized();
    (void)setenv("LC_ALL", "de_CH.UTF-8", 1);
    EXPECT_STR(resource_of(bundle, CFSTR("root")), "L.bundle/root.txt");
    EXPECT_STR(resource_of(bundle, CFSTR("both")), "L.bundle/both.txt"); /* that of all languages comes first */
    EXPECT_STR(resource_of(bundle, CFSTR("local")), "L.bundle/de_CH.lproj/local.txt");
    EXPECT_STR(resource_of(bundle, CFSTR("base")), "L.bundle/Base.lproj/base.txt");
    EXPECT_STR(resource_of(bundle, CFSTR("english")), "L.bundle/en.lproj/english.txt"); /* that of the developers */
    EXPECT_STR(resource_of(bundle, CFSTR("missing")), "none");
    EXPECT_STR(take_path(CFBundleCopyResourceURL(bundle, CFSTR("root.txt"), NULL, NULL)), "L.bundle/root.txt");
    EXPECT_STR(take_path(CFBundleCopyResourceURL(bundle, CFSTR("root"), CFSTR(".txt"), NULL)), "L.bundle/root.txt");
    EXPECT_STR(take_path(CFBundleCopyResourceURL(bundle, CFSTR("sub"), NULL, NULL)), "L.bundle/sub");
    EXPECT_STR(take_path(CFBundleCopyResourceURL(bundle, CFSTR("sub/in"), CFSTR("txt"), NULL)), "L.bundle/sub/in.txt");
    EXPECT_STR(take_path(CFBundleCopyResourceURL(bundle, CFSTR("in"), CFSTR("txt"), CFSTR("sub"))), "L.bundle/sub/in.txt");
    EXPECT_STR(take_path(CFBundleCopyResourceURL(bundle, CFSTR("deep"), CFSTR("txt"), CFSTR("sub"))), "L.bundle/de.lproj/sub/deep.txt");
    EXPECT_STR(take_path(CFBundleCopyResourceURL(bundle, NULL, CFSTR("txt"), CFSTR("sub"))), "L.bundle/sub/in.txt");
    (void)setenv("LC_ALL", "fr", 1);
    EXPECT_STR(resource_of(bundle, CFSTR("local")), "L.bundle/fr.lproj/local.txt");
    (void)setenv("LC_ALL", "it", 1);
    EXPECT_STR(resource_of(bundle, CFSTR("local")), "L.bundle/en.lproj/local.txt");
    EXPECT_STR(take_path(CFBundleCopyResourceURLForLocalization(bundle, CFSTR("local"), CFSTR("txt"), NULL, CFSTR("de"))),
               "L.bundle/de.lproj/local.txt");
    EXPECT_STR(take_path(CFBundleCopyResourceURLForLocalization(bundle, CFSTR("local"), CFSTR("txt"), NULL, CFSTR("German"))), "none");
    CFRelease(bundle);
    folder_remove();
}

TEST(resources_of_a_type_are_listed, "2215")
{
    folder_make();
    CFBundleRef bundle = create_localized();
    (void)setenv("LC_ALL", "de_CH", 1);
    EXPECT_STR(take_leaves(CFBundleCopyResourceURLsOfType(bundle, CFSTR("txt"), NULL)),
               "both.txt root.txt local.txt both.txt local.txt base.txt english.txt local.txt");
    EXPECT_STR(take_leaves(CFBundleCopyResourceURLsOfType(bundle, CFSTR(".txt"), CFSTR("sub"))), "in.txt deep.txt");
    EXPECT_STR(take_leaves(CFBundleCopyResourceURLsOfType(bundle, CFSTR("none"), NULL)), "");
    EXPECT_STR(take_leaves(CFBundleCopyResourceURLsOfType(bundle, CFSTR("a/b"), NULL)), "");
    EXPECT_STR(take_leaves(CFBundleCopyResourceURLsOfTypeForLocalization(bundle, CFSTR("txt"), NULL, CFSTR("fr"))),
               "both.txt root.txt local.txt");
    EXPECT(strstr(take_leaves(CFBundleCopyResourceURLsOfType(bundle, NULL, NULL)), "Info.plist both.txt"));
    CFArrayRef names = CFBundleCopyBundleLocalizations(bundle);
    CFStringRef words = CFStringCreateByCombiningStrings(NULL, names, CFSTR(" "));
    EXPECT_STR(take_text(words), "Base de de_CH en fr ja");
    CFRelease(names);
    CFRelease(bundle);
    folder_remove();
}

TEST(a_resource_lies_below_its_bundle, "2216")
{
    static const char *const names[] = {"../secret", "sub/../../secret", "..", "/etc/passwd", "sub/..", "../L.bundle/root"};
    char long_name[PATH_MAX + 10];

    folder_make();
    folder_write("secret.txt", "");
    CFBundleRef bundle = create_localized();
    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    for (size_t i = 0; i <= sizeof names / sizeof *names; i++) {
        const char *text = i < sizeof names / sizeof *names ? names[i] : long_name;
        CFStringRef name = CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);

        EXPECT_STR(resource_of(bundle, name), "none");
        EXPECT_STR(take_path(CFBundleCopyResourceURL(bundle, CFSTR("secret"), CFSTR("txt"), name)), "none");
        EXPECT_STR(take_path(CFBundleCopyResourceURL(bundle, CFSTR("secret"), name, NULL)), "none");
        EXPECT_STR(take_path(CFBundleCopyResourceURLForLocalization(bundle, CFSTR("secret"), CFSTR("txt"), NULL, name)), "none");
        EXPECT_STR(take_leaves(CFBundleCopyResourceURLsOfType(bundle, CFSTR("txt"), name)), "");
        EXPECT_STR(take_text(CFBundleCopyLocalizedString(bundle, CFSTR("k"), NULL, name)), "k");
        CFRelease(name);
    }
    CFRelease(bundle);
    folder_remove();
}

TEST(other_bundles_speak_the_language_of_the_main_one, "2215")
{
    char program[PATH_MAX];
    char folder[PATH_MAX];

    folder_make();
    CFBundleRef bundle = create_localized();
    REQUIRE(main_bundle_find_program(program));
    int length = snprintf(folder, sizeof folder, "%s.resources", program); /* beside the runner */
    if (length >= (int)sizeof folder || mkdir(folder, 0755) != 0) {
        SKIP("the folder of the runner cannot be written");
    }
    char path[2][PATH_MAX + 16];
    (void)snprintf(path[0], sizeof path[0], "%s/fr.lproj", folder);
    (void)snprintf(path[1], sizeof path[1], "%s/Info.plist", folder);
    REQUIRE(mkdir(path[0], 0755) == 0);
    main_bundle_give_back();
    (void)setenv("LANGUAGE", "de:fr", 1);
    (void)setenv("LC_ALL", "de", 1);
    EXPECT_STR(resource_of(bundle, CFSTR("local")), "L.bundle/fr.lproj/local.txt");
    main_bundle_give_back();
    bundles_give_back();
    FILE *file = fopen(path[1], "we");
    REQUIRE(file);
    (void)fputs("<plist><dict><key>CFBundleAllowMixedLocalizations</key><true/></dict></plist>", file);
    (void)fclose(file);
    EXPECT_STR(resource_of(bundle, CFSTR("local")), "L.bundle/de.lproj/local.txt");
    CFRelease(bundle);
    (void)unlink(path[1]);
    (void)rmdir(path[0]);
    (void)rmdir(folder);
    folder_remove();
}

/* ---- strings ---- */

static void write_utf16(const char *name, const char *text, CFStringEncoding encoding)
{
    CFStringRef string = CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);
    CFDataRef data = CFStringCreateExternalRepresentation(NULL, string, encoding, 0);

    folder_write(name, "");
    int file = open(folder_path(name), O_WRONLY | O_CLOEXEC);
    REQUIRE(file >= 0 && write(file, CFDataGetBytePtr(data), (size_t)CFDataGetLength(data)) == CFDataGetLength(data));
    (void)close(file);
    CFRelease(data);
    CFRelease(string);
}

static const char *string_of(CFBundleRef bundle, CFStringRef table)
{
    return take_text(CFBundleCopyLocalizedString(bundle, CFSTR("hello"), CFSTR("default"), table));
}

TEST(strings_are_read_of_tables_in_every_format, "2215")
{
    folder_make();
    folder_write("S.bundle/de.lproj/Localizable.strings", "/* of people */ \"hello\" = \"Gr\xC3\xBC\xC3\x9F Gott, %@\\n\"; // end\n");
    folder_write("S.bundle/de.lproj/Xml.strings", "<plist><dict><key>hello</key><string>xml</string></dict></plist>");
    folder_write("S.bundle/Root.strings", "hello = root;");
    folder_write("S.bundle/Number.strings", "<plist><dict><key>hello</key><integer>1</integer></dict></plist>");
    write_utf16("S.bundle/de.lproj/Wide.strings", "\"hello\" = \"wide \xE2\x82\xAC\";", kCFStringEncodingUTF16);
    folder_write("S.bundle/de.lproj/Bad.strings", "\"hello\" = ");
    CFDictionaryRef dictionary = CFDictionaryCreate(NULL, (const void *[]){CFSTR("hello")}, (const void *[]){CFSTR("binary")}, 1,
                                                    &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    CFDataRef data = CFPropertyListCreateData(NULL, dictionary, kCFPropertyListBinaryFormat_v1_0, 0, NULL);
    int file = open(folder_path("S.bundle/Binary.strings"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(file >= 0 && write(file, CFDataGetBytePtr(data), (size_t)CFDataGetLength(data)) == CFDataGetLength(data));
    (void)close(file);
    CFRelease(data);
    CFRelease(dictionary);
    (void)setenv("LC_ALL", "de_DE.UTF-8", 1);
    CFBundleRef bundle = create_bundle("S.bundle");
    EXPECT_STR(string_of(bundle, NULL), "Gr\xC3\xBC\xC3\x9F Gott, %@\n");
    EXPECT_STR(string_of(bundle, CFSTR("")), "Gr\xC3\xBC\xC3\x9F Gott, %@\n");
    EXPECT_STR(string_of(bundle, CFSTR("Xml")), "xml");
    EXPECT_STR(string_of(bundle, CFSTR("Wide")), "wide \xE2\x82\xAC");
    EXPECT_STR(string_of(bundle, CFSTR("Root")), "root");
    EXPECT_STR(string_of(bundle, CFSTR("Binary")), "binary");
    EXPECT_STR(string_of(bundle, CFSTR("Number")), "default");
    EXPECT_STR(string_of(bundle, CFSTR("none")), "default");
    stderr_take();
    EXPECT_STR(string_of(bundle, CFSTR("Bad")), "default");
    EXPECT_STR(string_of(bundle, CFSTR("Bad")), "default");
    EXPECT(strstr(stderr_taken(), "Bad.strings is not used. "));
    EXPECT_STR(take_text(CFBundleCopyLocalizedString(bundle, CFSTR("missing"), NULL, NULL)), "missing");
    EXPECT_STR(take_text(CFBundleCopyLocalizedString(bundle, CFSTR("missing"), CFSTR(""), NULL)), "missing");
    EXPECT_STR(take_text(CFBundleCopyLocalizedString(bundle, NULL, CFSTR("default"), NULL)), "default");
    EXPECT_STR(take_text(CFBundleCopyLocalizedString(bundle, NULL, NULL, NULL)), "none");
    EXPECT_STR(take_text(CFCopyLocalizedStringFromTableInBundle(CFSTR("hello"), CFSTR("Xml"), bundle, "")), "xml");
    EXPECT_STR(take_text(CFCopyLocalizedStringWithDefaultValue(CFSTR("x"), CFSTR("Xml"), bundle, CFSTR("d"), "")), "d");
    for (int i = 0; i < 100; i++) { /* names that strangers may make up */
        CFStringRef name = CFStringCreateWithFormat(NULL, NULL, CFSTR("none %d"), i);

        EXPECT_STR(string_of(bundle, name), "default");
        CFRelease(name);
    }
    CFRelease(bundle);
    folder_remove();
}

TEST(a_bundle_that_vanishes_has_what_was_read, "2214")
{
    folder_make();
    folder_write("V.bundle/Info.plist", INFO);
    folder_write("V.bundle/a.txt", "");
    folder_write("V.bundle/Localizable.strings", "hello = kept;");
    CFBundleRef bundle = create_bundle("V.bundle");
    EXPECT_STR(string_of(bundle, NULL), "kept");
    REQUIRE(rename(folder_path("V.bundle"), folder_path("gone")) == 0);
    EXPECT_STR(text_of(CFBundleGetIdentifier(bundle)), "com.example.one");
    EXPECT_STR(string_of(bundle, NULL), "kept");
    EXPECT_STR(string_of(bundle, CFSTR("Other")), "default");
    EXPECT_STR(resource_of(bundle, CFSTR("a")), "none");
    EXPECT_STR(take_leaves(CFBundleCopyResourceURLsOfType(bundle, CFSTR("txt"), NULL)), "");
    EXPECT_STR(take_path(CFBundleCopyExecutableURL(bundle)), "none");
    EXPECT(!CFBundleLoadExecutable(bundle));
    EXPECT(!create_bundle("V.bundle"));
    EXPECT_EQ(CFArrayGetCount(CFBundleGetAllBundles()), 2);
    CFRelease(bundle);
    folder_remove();
}

/* ---- libraries ---- */

/* The library that this process would get its mathematics from serves as that of a bundle. */
static bool put_library(const char *name)
{
    void *library = dlopen("libm.so.6", RTLD_LAZY); /* NULL: musl has it in the C library */
    void *cube_root = dlsym(library ? library : RTLD_DEFAULT, "cbrt");
    Dl_info info;
    bool is_put = cube_root && dladdr(cube_root, &info) != 0 && info.dli_fname[0] == '/';

    if (is_put) {
        folder_write(name, "");
        is_put = unlink(folder_path(name)) == 0 && symlink(info.dli_fname, folder_path(name)) == 0;
    }
    if (library) {
        dlclose(library);
    }
    return is_put;
}

TEST(a_library_is_loaded_when_it_is_asked_for_a_function, "2217")
{
    CFStringRef names[] = {CFSTR("cbrt"), CFSTR("nothing")};
    CFArrayRef array = CFArrayCreate(NULL, (const void **)names, 2, &kCFTypeArrayCallBacks);
    void *found[2] = {array ? (void *)found : NULL, (void *)found};

    folder_make();
    folder_write("M.bundle/Info.plist", "{ CFBundleExecutable = one; }");
    if (!put_library("M.bundle/libone.so")) {
        SKIP("there is no library to load");
    }
    CFBundleRef bundle = create_bundle("M.bundle");
    CFErrorRef error = NULL;
    EXPECT(CFBundlePreflightExecutable(bundle, &error) && !error && !CFBundleIsExecutableLoaded(bundle));
    double (*cube_root)(double) = NULL;
    *(void **)&cube_root = CFBundleGetFunctionPointerForName(bundle, CFSTR("cbrt"));
    REQUIRE(cube_root);
    EXPECT_NEAR(cube_root(27), 3.0, 1e-9);
    EXPECT(CFBundleIsExecutableLoaded(bundle) && CFBundleLoadExecutableAndReturnError(bundle, &error));
    EXPECT(CFBundleGetDataPointerForName(bundle, CFSTR("signgam")));
    CFBundleGetFunctionPointersForNames(bundle, array, found);
    EXPECT(found[0] && !found[1]);
    CFBundleGetDataPointersForNames(bundle, array, found);
    EXPECT(found[0] && !found[1]);
    EXPECT(!CFBundleGetFunctionPointerForName(bundle, NULL));
    CFBundleUnloadExecutable(bundle);
    EXPECT(!CFBundleIsExecutableLoaded(bundle));
    EXPECT(CFBundleLoadExecutable(bundle)); /* and the bundle is given back with it */
    CFRelease(bundle);
    CFRelease(array);
    folder_remove();
}

static CFIndex code_of_loading(CFBundleRef bundle)
{
    CFErrorRef error = NULL;
    CFIndex code = CFBundleLoadExecutableAndReturnError(bundle, &error) ? 0 : -1;

    if (error) {
        code = CFErrorGetCode(error);
        CFRelease(error);
    }
    EXPECT(code != 0 && !CFBundleIsExecutableLoaded(bundle) && !CFBundleGetFunctionPointerForName(bundle, CFSTR("f")));
    return code;
}

TEST(what_is_no_library_is_not_loaded, "2216 2217")
{
    unsigned char header[64] = {0x7F, 'E', 'L', 'F', 9, 9};

    folder_make();
    folder_write("N.bundle/Info.plist", "{ CFBundleExecutable = \"../secret\"; }");
    folder_write("secret", "");
    CFBundleRef bundle = create_bundle("N.bundle");
    EXPECT_EQ(code_of_loading(bundle), 4);
    folder_write("N.bundle/N", "#!/bin/sh\n");
    EXPECT_EQ(code_of_loading(bundle), 3584);
    int file = open(folder_path("N.bundle/N"), O_RDWR | O_CLOEXEC);
    int own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    REQUIRE(file >= 0 && own >= 0 && write(file, header, sizeof header) == sizeof header);
    EXPECT_EQ(code_of_loading(bundle), 3585);
    REQUIRE(read(own, header, sizeof header) == sizeof header && pwrite(file, header, sizeof header, 0) == sizeof header);
    EXPECT_EQ(code_of_loading(bundle), 3587); /* only the head of one */
    header[16] = 1; /* an object */
    REQUIRE(pwrite(file, header, sizeof header, 0) == sizeof header);
    EXPECT_EQ(code_of_loading(bundle), 3584);
    EXPECT(!CFBundlePreflightExecutable(bundle, NULL));
    (void)close(file);
    (void)close(own);
    CFRelease(bundle);
    folder_remove();
}

/* ---- threads and failures ---- */

static void *use_bundle(void *url)
{
    for (int i = 0; i < 50; i++) {
        CFBundleRef bundle = CFBundleCreate(NULL, url);

        EXPECT(CFEqual(CFBundleGetValueForInfoDictionaryKey(bundle, kCFBundleNameKey), CFSTR("One")));
        CFStringRef text = CFBundleCopyLocalizedString(bundle, CFSTR("hello"), CFSTR("default"), NULL);
        EXPECT(CFEqual(text, CFSTR("kept")));
        CFRelease(text);
        EXPECT(CFBundleGetMainBundle() && CFBundleGetBundleWithIdentifier(CFSTR("com.example.one")) == bundle);
        CFRelease(bundle);
    }
    return NULL;
}

TEST(threads_make_one_bundle_of_a_folder, "2214")
{
    pthread_t threads[4];

    folder_make();
    folder_write("T.bundle/Info.plist", INFO);
    folder_write("T.bundle/Localizable.strings", "hello = kept;");
    CFURLRef url = create_url("T.bundle");
    for (int i = 0; i < 4; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, use_bundle, (void *)(uintptr_t)url) == 0);
    }
    for (int i = 0; i < 4; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    EXPECT_EQ(CFArrayGetCount(CFBundleGetAllBundles()), 2);
    CFRelease(url);
    folder_remove();
}

static bool use_all(CFBundleRef bundle)
{
    bool is_done = CFBundleGetMainBundle() && CFBundleGetFunctionPointerForName(CFBundleGetMainBundle(), CFSTR("getpid")) &&
                   CFBundleGetBundleWithIdentifier(CFSTR("com.example.one")) == bundle;
    CFTypeRef objects[] = {CFBundleCopyResourceURL(bundle, CFSTR("local"), CFSTR("txt"), NULL),
                           CFBundleCopyResourceURLsOfType(bundle, CFSTR("txt"), NULL),
                           CFBundleCopyLocalizedString(bundle, CFSTR("hello"), CFSTR("default"), NULL),
                           CFBundleCopyBundleLocalizations(bundle), CFBundleCopyBundleURL(bundle)};

    is_done = is_done && CFBundleGetAllBundles() && objects[2] && CFEqual(objects[2], CFSTR("kept"));
    is_done = is_done && objects[0] && objects[1] && objects[3] && CFArrayGetCount(objects[1]) == 1 && CFArrayGetCount(objects[3]) == 1;
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        is_done = is_done && objects[i];
        if (objects[i]) {
            CFRelease(objects[i]);
        }
    }
    return is_done && CFBundleGetLocalInfoDictionary(bundle) &&
           CFDictionaryContainsKey(CFBundleGetInfoDictionary(bundle), kCFBundleNameKey);
}

NTH_FAILURE(bundles, "2214")
{
    folder_make();
    folder_write("F.bundle/Info.plist", INFO);
    folder_write("F.bundle/Localizable.strings", "hello = kept;");
    folder_write("F.bundle/en.lproj/local.txt", "");
    folder_write("F.bundle/en.lproj/InfoPlist.strings", "CFBundleName = local;");
    CFURLRef url = create_url("F.bundle");
    CFBundleRef bundle = url ? CFBundleCreate(NULL, url) : NULL;
    bool is_done = bundle && use_all(bundle);
    if (url) {
        CFRelease(url);
    }
    if (bundle) {
        CFRelease(bundle);
    }
    folder_remove();
    return is_done;
}
