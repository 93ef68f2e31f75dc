/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what Core Foundation says of bundles and preferences, a line each; `run-bundles` builds it with both libraries. The argument is a
 * folder for bundles. Preferences are kept where XDG_CONFIG_HOME says.
 */
#include <CoreFoundation/CoreFoundation.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *root;

static void write_file(const char *name, const char *text)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static CFURLRef url_of(const char *name)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", root, name);
    return CFURLCreateFromFileSystemRepresentation(NULL, (const UInt8 *)path, (CFIndex)strlen(path), true);
}

static int compare_lines(const void *one, const void *other)
{
    return strcmp(one, other);
}

/* A value on one line: URLs by their path below the folder, arrays sorted. */
static void put_value(char line[1024], CFTypeRef value)
{
    char path[1024] = "none";

    if (value && CFGetTypeID(value) == CFURLGetTypeID()) {
        CFURLGetFileSystemRepresentation(value, true, (UInt8 *)path, sizeof path);
        snprintf(line, 1024, "%s%s", strncmp(path, root, strlen(root)) == 0 ? path + strlen(root) : path,
                 CFURLHasDirectoryPath(value) ? "/" : "");
    } else if (value && CFGetTypeID(value) == CFStringGetTypeID()) {
        CFStringGetCString(value, line, 1024, kCFStringEncodingUTF8);
    } else if (value && CFGetTypeID(value) == CFArrayGetTypeID()) {
        static char lines[64][1024];
        CFIndex count = CFArrayGetCount(value);

        for (CFIndex i = 0; i < count; i++) {
            put_value(lines[i], CFArrayGetValueAtIndex(value, i));
        }
        qsort(lines, (size_t)count, sizeof lines[0], compare_lines);
        line[0] = '\0';
        for (CFIndex i = 0; i < count; i++) {
            snprintf(line + strlen(line), 1024 - strlen(line), "%s ", lines[i]);
        }
    } else {
        snprintf(line, 1024, "%s", value ? "another object" : "none");
    }
}

static void say(const char *name, const char *what, CFTypeRef value)
{
    char line[1024];

    put_value(line, value);
    printf("%s %s: %s\n", name, what, line);
}

static void say_dictionary(const char *name, const char *what, CFDictionaryRef dictionary)
{
    CFDataRef data = dictionary ? CFPropertyListCreateData(NULL, dictionary, kCFPropertyListXMLFormat_v1_0, 0, NULL) : NULL;

    printf("%s %s:", name, what);
    for (CFIndex i = 0; data && i < CFDataGetLength(data); i++) {
        UInt8 byte = CFDataGetBytePtr(data)[i];

        printf("%c", byte == '\n' || byte == '\t' ? ' ' : byte);
    }
    printf("\n");
}

#define S(text) CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8)

static void say_resources(const char *name, CFBundleRef bundle)
{
    static const char *const names[] = {"a", "a.txt", "local", "both", "sub/in", "base", "missing", "", "sub", "lang", "Info"};
    static const char *const types[] = {"txt", ".txt", "", "lproj"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (size_t j = 0; j < sizeof types / sizeof *types; j++) {
            for (int folder = 0; folder < 2; folder++) {
                char what[100];

                if (names[i][0] == '\0') { /* any name: it is the first of a folder in its own order */
                    continue;
                }
                snprintf(what, sizeof what, "'%s' '%s' %d", names[i], types[j], folder);
                CFStringRef sub = folder ? CFSTR("sub") : NULL;
                say(name, what, CFBundleCopyResourceURL(bundle, S(names[i]), S(types[j]), sub));
                say(name, what, CFBundleCopyResourceURLForLocalization(bundle, S(names[i]), S(types[j]), sub, CFSTR("fr")));
            }
        }
    }
    for (size_t j = 0; j < sizeof types / sizeof *types; j++) {
        if (types[j][0] == '\0') { /* of all types the toolchain leaves out those of Base */
            continue;
        }
        say(name, types[j], CFBundleCopyResourceURLsOfType(bundle, S(types[j]), NULL));
        say(name, types[j], CFBundleCopyResourceURLsOfType(bundle, S(types[j]), CFSTR("sub")));
        say(name, types[j], CFBundleCopyResourceURLsOfTypeForLocalization(bundle, S(types[j]), NULL, CFSTR("fr")));
    }
}

static void say_strings(const char *name, CFBundleRef bundle)
{
    static const char *const tables[] = {"Localizable", "Other", "Xml", "None", "Both"};
    static const char *const keys[] = {"hello", "only_en", "only_fr", "missing"};

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        for (size_t j = 0; j < sizeof keys / sizeof *keys; j++) {
            say(name, "string", CFBundleCopyLocalizedString(bundle, S(keys[j]), CFSTR("default"), i == 0 ? NULL : S(tables[i])));
            say(name, "string", CFBundleCopyLocalizedString(bundle, S(keys[j]), i % 2 ? NULL : CFSTR(""), S(tables[i])));
        }
    }
}

static void say_bundle(const char *name)
{
    CFURLRef url = url_of(name);
    CFBundleRef bundle = CFBundleCreate(NULL, url);
    UInt32 type = 0;
    UInt32 creator = 0;
    UInt32 version;

    printf("%s is %s\n", name, bundle ? "there" : "not there");
    say_dictionary(name, "in directory", CFBundleCopyInfoDictionaryInDirectory(url));
    say_dictionary(name, "for URL", CFBundleCopyInfoDictionaryForURL(url));
    say(name, "localizations", CFBundleCopyLocalizationsForURL(url));
    if (CFBundleGetPackageInfoInDirectory(url, &type, &creator)) {
        printf("%s package %x %x\n", name, type, creator);
    }
    if (!bundle) {
        return;
    }
    CFBundleGetPackageInfo(bundle, &type, &creator);
    version = CFBundleGetVersionNumber(bundle);
    printf("%s package %x %x version %x\n", name, type, creator, version);
    say_dictionary(name, "info", CFBundleGetInfoDictionary(bundle));
    say_dictionary(name, "local info", CFBundleGetLocalInfoDictionary(bundle));
    say(name, "name", CFBundleGetValueForInfoDictionaryKey(bundle, kCFBundleNameKey));
    say(name, "identifier", CFBundleGetIdentifier(bundle));
    say(name, "region", CFBundleGetDevelopmentRegion(bundle));
    say(name, "executable", CFBundleCopyExecutableURL(bundle));
    say(name, "bundle", CFBundleCopyBundleURL(bundle));
    say(name, "support", CFBundleCopySupportFilesDirectoryURL(bundle));
    say(name, "resources", CFBundleCopyResourcesDirectoryURL(bundle));
    say(name, "private", CFBundleCopyPrivateFrameworksURL(bundle));
    say(name, "shared", CFBundleCopySharedFrameworksURL(bundle));
    say(name, "shared support", CFBundleCopySharedSupportURL(bundle));
    say(name, "plug-ins", CFBundleCopyBuiltInPlugInsURL(bundle));
    say(name, "localizations", CFBundleCopyBundleLocalizations(bundle));
    say(name, "in directory", CFBundleCopyResourceURLInDirectory(url, CFSTR("local"), CFSTR("txt"), NULL));
    say_resources(name, bundle);
    say_strings(name, bundle);
}

static void make_bundle(const char *name, const char *resources, const char *info)
{
    static const char text[] =
        "<plist version=\"1.0\"><dict><key>CFBundleIdentifier</key><string>com.example.%s</string><key>CFBundleName</key>"
        "<string>Name</string><key>CFBundleExecutable</key><string>prog</string><key>CFBundleSignature</key><string>abcd</string>"
        "<key>CFBundleVersion</key><string>1.2.3b4</string><key>CFBundleDevelopmentRegion</key><string>en</string></dict></plist>";
    static const char *const files[][2] = {
        {"a.txt", ""},
        {"both.txt", ""},
        {"sub/in.txt", ""},
        {"en.lproj/local.txt", ""},
        {"fr.lproj/local.txt", ""},
        {"en.lproj/both.txt", ""},
        {"fr.lproj/sub/lang.txt", ""},
        {"Base.lproj/base.txt", ""},
        {"Other.strings", "hello = other;"},
        {"en.lproj/Localizable.strings", "/* a */ \"hello\" = \"in English\"; only_en = x;"},
        {"Both.strings", "hello = root;"},
        {"fr.lproj/Localizable.strings", "\"hello\" = \"in French\"; only_fr = x;"},
        {"en.lproj/Both.strings", "hello = en;"},
        {"en.lproj/Xml.strings", "<plist version=\"1.0\"><dict><key>hello</key><string>xml</string></dict></plist>"},
        {"en.lproj/InfoPlist.strings", "CFBundleName = \"Local name\";"},
    };
    char path[512];
    char contents[1024];

    snprintf(contents, sizeof contents, text, name);
    snprintf(path, sizeof path, "%s/%sInfo.plist", name, info);
    write_file(path, contents);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s%s", name, resources, files[i][0]);
        write_file(path, files[i][1]);
    }
}

static void say_versions(void)
{
    static const char *const versions[] = {"1",       "12",      "123",   "1.",    "1.2",      "1.23",   "1.2.3",
                                           "1.2.3.",  "1.2.3.4", "1.2d3", "1.2a3", "1.2f3",    "1.2fc3", "1.2b",
                                           "1.2b255", "1.2b256", "1..2",  "1.b2",  "1.2.b3",   "1.2 ",   " 1",
                                           "x",       "",        "1x",    "1f1",   "1.2.3b4c", "1.2D3",  "20260101"};

    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        char name[64];
        char text[256];

        snprintf(name, sizeof name, "versions/%zu/Info.plist", i);
        snprintf(text, sizeof text, "<plist version=\"1.0\"><dict><key>CFBundleVersion</key><string>%s</string></dict></plist>",
                 versions[i]);
        write_file(name, text);
        snprintf(name, sizeof name, "versions/%zu", i);
        printf("version '%s': %x\n", versions[i], CFBundleGetVersionNumber(CFBundleCreate(NULL, url_of(name))));
    }
}

/* ---- preferences ---- */

static const char app[] = "com.example.conformance";

static void say_search(void)
{
    const char *const applications[] = {app, "suite.new", "suite.old", "any"};
    CFStringRef users[] = {kCFPreferencesCurrentUser, kCFPreferencesAnyUser};
    CFStringRef hosts[] = {kCFPreferencesCurrentHost, kCFPreferencesAnyHost};

    CFPreferencesAddSuitePreferencesToApp(S(app), CFSTR("suite.old"));
    CFPreferencesAddSuitePreferencesToApp(S(app), CFSTR("suite.new"));
    for (int turn = 0; turn < 2; turn++) { /* sets all, and then removes one after the other */
        for (int i = 0; i < 16; i++) {
            CFStringRef name = i / 2 % 4 == 3 ? kCFPreferencesAnyApplication : S(applications[i / 2 % 4]);
            char value[8];

            snprintf(value, sizeof value, "%d", i);
            if (turn == 1) {
                say("search", value, CFPreferencesCopyAppValue(CFSTR("k"), S(app)));
            }
            CFPreferencesSetValue(CFSTR("k"), turn == 0 ? S(value) : NULL, name, users[i / 8], hosts[i % 2]);
        }
    }
    say("search", "end", CFPreferencesCopyAppValue(CFSTR("k"), S(app)));
}

static void say_value(const char *what, CFTypeRef value)
{
    Boolean is_truth = false;
    Boolean is_integer = false;

    CFPreferencesSetAppValue(CFSTR("v"), value, S(app));
    Boolean truth = CFPreferencesGetAppBooleanValue(CFSTR("v"), S(app), &is_truth);
    CFIndex integer = CFPreferencesGetAppIntegerValue(CFSTR("v"), S(app), &is_integer);
    printf("value %s: %d %d %ld %d\n", what, truth, is_truth, (long)integer, is_integer);
}

static void say_values(void)
{
    static const char *const texts[] = {"YES", "yes", "true", "TRUE", "1",  "0",   "NO", "no",   "false", "2",
                                        "on",  "12",  "-7",   "12x",  " 5", "3.7", "",   "0x10", "Y",     "+4"};
    const double reals[] = {0, 1, 2, 3.7, -1.5};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        say_value(texts[i], S(texts[i]));
    }
    for (int i = -1; i < 3; i++) {
        char what[16];

        snprintf(what, sizeof what, "integer %d", i);
        say_value(what, CFNumberCreate(NULL, kCFNumberIntType, &i));
    }
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        say_value("real", CFNumberCreate(NULL, kCFNumberDoubleType, &reals[i]));
    }
    say_value("Boolean", kCFBooleanTrue);
    say_value("Boolean", kCFBooleanFalse);
    say_value("data", CFDataCreate(NULL, (const UInt8 *)"a", 1));
    say_value("nothing", NULL);
}

/* "write" keeps values in files, "read" says what is in them: each library reads those of the other. */
static void keep_values(void)
{
    CFPreferencesSetAppValue(CFSTR("text"), CFSTR("kept \xE2\x82\xAC"), S(app));
    CFPreferencesSetAppValue(CFSTR("truth"), kCFBooleanTrue, S(app));
    CFPreferencesSetAppValue(CFSTR("k"), CFSTR("global"), kCFPreferencesAnyApplication);
    printf("kept: %d %d\n", CFPreferencesAppSynchronize(S(app)), CFPreferencesAppSynchronize(kCFPreferencesAnyApplication));
}

static void say_kept(void)
{
    say("kept", "text", CFPreferencesCopyAppValue(CFSTR("text"), S(app)));
    say("kept", "global", CFPreferencesCopyAppValue(CFSTR("k"), S(app)));
    printf("kept truth: %d\n", CFPreferencesGetAppBooleanValue(CFSTR("truth"), S(app), NULL));
    say("kept", "keys", CFPreferencesCopyKeyList(S(app), kCFPreferencesCurrentUser, kCFPreferencesAnyHost));
    say("kept", "applications", CFPreferencesCopyApplicationList(kCFPreferencesCurrentUser, kCFPreferencesAnyHost));
}

int main(int argc, char **argv)
{
    root = argv[1];
    if (argc > 2) {
        (strcmp(argv[2], "write") == 0 ? keep_values : say_kept)();
        return 0;
    }
    make_bundle("App.app", "Contents/Resources/", "Contents/");
    write_file("App.app/Contents/Linux/prog", "");
    make_bundle("Flat.bundle", "", "");
    write_file("Flat.bundle/prog", "");
    make_bundle("Old.framework", "Resources/", "Resources/");
    write_file("Old.framework/prog", "");
    write_file("Empty.bundle/x", "");
    say_bundle("App.app");
    say_bundle("Flat.bundle");
    say_bundle("Old.framework");
    say_bundle("Empty.bundle");
    say_bundle("missing");
    say("made", "of folder", CFBundleCreateBundlesFromDirectory(NULL, url_of(""), CFSTR("none")));
    printf("identified: %d\n", CFBundleGetBundleWithIdentifier(CFSTR("com.example.App.app")) == CFBundleCreate(NULL, url_of("App.app")));
    printf("all: %ld\n", (long)CFArrayGetCount(CFBundleGetAllBundles()));
    say_versions();
    say_search();
    say_values();
    return 0;
}
