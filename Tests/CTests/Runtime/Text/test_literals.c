/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The literals that compilers make, and that they are the same texts as those made at run time. Both kinds are tested whichever compiler
 * builds this file: the one that CFSTR gives here, the wide literal, and a copy of what clang lays down.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "CoreFoundation/CoreFoundation.h"
#include "Runtime/Object/object.h"
#include "harness.h"

/* At file scope, as programs have them. */
static CFStringRef const ascii_literal = CFSTR("kCFRunLoopDefaultMode");
static CFStringRef const other_literal = CFSTR("Zürich 😀 東京");
static CFStringRef const joined_literal = CFSTR("two "
                                                "parts");
static CFStringRef const empty_literal = CFSTR("");

#define WIDE(_text) ((CFStringRef)(const void *)(L"\1" _text))

static CFStringRef const wide_ascii = WIDE("kCFRunLoopDefaultMode");
static CFStringRef const wide_other = WIDE("Zürich 😀 東京");
static CFStringRef const wide_empty = WIDE("");

/* clang's layout (its flags, a 32-bit gap, the units, the length), made by hand. */
struct clang_literal {
    const void *isa;
    uint32_t flags;
    uint32_t gap;
    const void *units;
    long length;
};

static const struct clang_literal laid_ascii = {&string_class, 0x7C8, 0, "kCFRunLoopDefaultMode", 21};
static const UniChar other_units[] = {'Z', 0xFC, 'r', 'i', 'c', 'h', ' ', 0xD83D, 0xDE00, ' ', 0x6771, 0x4EAC, 0};
static const struct clang_literal laid_other = {&string_class, 0x7D0, 0, other_units, 12};
static const struct clang_literal laid_empty = {&string_class, 0x7C8, 0, "", 0};

static CFStringRef laid(const struct clang_literal *literal)
{
    return (CFStringRef)(const void *)literal;
}

enum { forms = 6 };

/* The same text in every way it can be stored; the last three are to be released. */
static void make_all(CFStringRef from_cfstr, CFStringRef wide, const struct clang_literal *literal, const char *utf8,
                     CFStringRef ret_all[forms])
{
    ret_all[0] = from_cfstr;
    ret_all[1] = wide;
    ret_all[2] = laid(literal);
    ret_all[3] = CFStringCreateWithCString(NULL, utf8, kCFStringEncodingUTF8);
    CFMutableStringRef changed = CFStringCreateMutable(NULL, 0);
    CFStringAppendCString(changed, utf8, kCFStringEncodingUTF8);
    ret_all[4] = changed;
    /* Stored as UTF-16 although it may be ASCII: it has held another character. */
    UniChar snowman = 0x2603;
    CFMutableStringRef widened = CFStringCreateMutable(NULL, 0);
    CFStringAppendCharacters(widened, &snowman, 1);
    CFStringAppendCString(widened, utf8, kCFStringEncodingUTF8);
    ret_all[5] = CFStringCreateWithSubstring(NULL, widened, CFRangeMake(1, CFStringGetLength(widened) - 1));
    CFRelease(widened);
}

static void expect_all_equal(CFStringRef all[forms], const char *utf8, CFIndex length)
{
    for (int i = 0; i < forms; i++) {
        char buffer[100];
        EXPECT_EQ(CFGetTypeID(all[i]), CFStringGetTypeID());
        EXPECT_EQ(CFStringGetLength(all[i]), length);
        EXPECT(CFStringGetCString(all[i], buffer, sizeof buffer, kCFStringEncodingUTF8));
        EXPECT_STR(buffer, utf8);
        for (int j = 0; j < forms; j++) {
            EXPECT(CFEqual(all[i], all[j]));
            EXPECT_EQ(CFHash(all[i]), CFHash(all[j]));
            EXPECT_EQ(CFStringCompare(all[i], all[j], 0), kCFCompareEqualTo);
            for (CFIndex k = 0; k < length; k++) {
                EXPECT_EQ(CFStringGetCharacterAtIndex(all[i], k), CFStringGetCharacterAtIndex(all[j], k));
            }
        }
    }
    for (int i = 3; i < forms; i++) {
        CFRelease(all[i]);
    }
}

TEST(equal_texts_are_equal_however_they_are_stored, "12")
{
    CFStringRef all[forms];
    make_all(ascii_literal, wide_ascii, &laid_ascii, "kCFRunLoopDefaultMode", all);
    expect_all_equal(all, "kCFRunLoopDefaultMode", 21);
    make_all(other_literal, wide_other, &laid_other, "Zürich 😀 東京", all);
    expect_all_equal(all, "Zürich 😀 東京", 12);
    make_all(empty_literal, wide_empty, &laid_empty, "", all);
    expect_all_equal(all, "", 0);
}

TEST(parts_of_a_literal_are_joined, "")
{
    EXPECT_EQ(CFStringGetLength(joined_literal), 9);
    EXPECT(CFEqual(joined_literal, CFSTR("two parts")));
}

TEST(different_literals_differ, "")
{
    EXPECT(!CFEqual(wide_ascii, wide_other));
    EXPECT(!CFEqual(WIDE("a"), WIDE("b")));
    EXPECT(!CFEqual(wide_empty, laid(&laid_ascii)));
    EXPECT(!CFEqual(wide_ascii, kCFNull));
    EXPECT(!CFEqual(WIDE("😀"), WIDE("😁")));
}

TEST(an_ascii_literal_has_a_c_string_that_stays, "")
{
    const char *first = CFStringGetCStringPtr(wide_ascii, kCFStringEncodingUTF8);
    EXPECT_STR(first, "kCFRunLoopDefaultMode");
    EXPECT(CFStringGetCStringPtr(wide_ascii, kCFStringEncodingASCII) == first);
    EXPECT_STR(CFStringGetCStringPtr(laid(&laid_ascii), kCFStringEncodingUTF8), "kCFRunLoopDefaultMode");
    EXPECT_STR(CFStringGetCStringPtr(wide_empty, kCFStringEncodingMacRoman), "");
    EXPECT(CFStringGetCStringPtr(wide_other, kCFStringEncodingUTF8) == NULL);
    EXPECT(CFStringGetCStringPtr(wide_ascii, kCFStringEncodingUTF16) == NULL);
}

TEST(memory_used_again_for_another_literal_gives_the_new_text, "")
{
    /* As after dlclose and dlopen. */
    static wchar_t place[8] = L"\1one";
    CFStringRef literal = (CFStringRef)(const void *)place;
    EXPECT_STR(CFStringGetCStringPtr(literal, kCFStringEncodingUTF8), "one");
    memcpy(place, L"\1two", 5 * sizeof(wchar_t));
    EXPECT_STR(CFStringGetCStringPtr(literal, kCFStringEncodingUTF8), "two");
}

TEST(literals_are_keys_values_and_members, "")
{
    CFMutableDictionaryRef dictionary =
        CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    CFDictionarySetValue(dictionary, wide_ascii, wide_other);
    EXPECT(CFDictionaryGetValue(dictionary, laid(&laid_ascii)) == wide_other);
    EXPECT(CFDictionaryGetValue(dictionary, ascii_literal) == wide_other);
    CFDictionarySetValue(dictionary, laid(&laid_ascii), laid(&laid_other));
    EXPECT_EQ(CFDictionaryGetCount(dictionary), 1);
    CFRelease(dictionary);
    CFMutableSetRef set = CFSetCreateMutable(NULL, 0, &kCFTypeSetCallBacks);
    CFSetAddValue(set, wide_other);
    CFSetAddValue(set, laid(&laid_other));
    CFSetAddValue(set, other_literal);
    EXPECT_EQ(CFSetGetCount(set), 1);
    CFRelease(set);
    CFMutableArrayRef array = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    CFArrayAppendValue(array, wide_empty);
    EXPECT(CFArrayContainsValue(array, CFRangeMake(0, 1), empty_literal));
    CFRelease(array);
}

TEST(parts_of_a_literal_with_pairs_can_be_read, "")
{
    UniChar units[12];
    CFStringGetCharacters(wide_other, CFRangeMake(0, 12), units);
    EXPECT(memcmp(units, other_units, sizeof units) == 0);
    CFStringGetCharacters(wide_other, CFRangeMake(8, 2), units);
    EXPECT_EQ(units[0], 0xDE00);
    EXPECT_EQ(units[1], ' ');
    CFStringRef part = CFStringCreateWithSubstring(NULL, wide_other, CFRangeMake(7, 2));
    EXPECT(CFEqual(part, WIDE("😀")));
    CFRelease(part);
    EXPECT_EQ(CFStringFind(wide_other, WIDE("東"), 0).location, 10);
    EXPECT(CFStringHasSuffix(wide_other, WIDE("東京")));
}

TEST(a_copy_of_a_literal_is_the_literal, "")
{
    CFStringRef copy = CFStringCreateCopy(NULL, wide_ascii);
    EXPECT(copy == wide_ascii);
    copy = CFStringCreateCopy(NULL, laid(&laid_ascii));
    EXPECT(copy == laid(&laid_ascii));
    CFMutableStringRef changed = CFStringCreateMutableCopy(NULL, 0, wide_other);
    CFStringAppend(changed, wide_ascii);
    EXPECT_EQ(CFStringGetLength(changed), 12 + 21);
    CFRelease(changed);
}

TEST(literals_cannot_be_changed, "")
{
    EXPECT_STOPS("CFStringAppend: the string cannot be changed",
                 { CFStringAppend((CFMutableStringRef)(uintptr_t)wide_ascii, empty_literal); });
    EXPECT_STOPS("CFStringAppend: the string cannot be changed",
                 { CFStringAppend((CFMutableStringRef)(uintptr_t)laid(&laid_ascii), empty_literal); });
}

TEST(constant_strings_made_at_run_time_are_one_for_each_text, "")
{
    char text[] = "made at run time";
    CFStringRef one = __CFStringMakeConstantString(text);
    REQUIRE(one != NULL);
    text[0] = 'M';
    CFStringRef other = __CFStringMakeConstantString(text);
    EXPECT(one != other);
    EXPECT(__CFStringMakeConstantString("made at run time") == one);
    EXPECT(CFEqual(one, CFSTR("made at run time")));
    CFRelease(one);
    CFRelease(one);
    EXPECT(__CFStringMakeConstantString("Zürich 😀 東京") == __CFStringMakeConstantString("Zürich 😀 東京"));
    EXPECT(CFEqual(__CFStringMakeConstantString("Zürich 😀 東京"), wide_other));
    EXPECT(__CFStringMakeConstantString(NULL) == NULL);
    EXPECT(__CFStringMakeConstantString("\xFF") == NULL);
}

enum { interning_threads = 4, interned_texts = 2000 };

static void *intern_many(void *results)
{
    const void **found = results;
    for (int i = 0; i < interned_texts; i++) {
        char text[32];
        snprintf(text, sizeof text, "text %d", i);
        found[i] = __CFStringMakeConstantString(text);
    }
    return NULL;
}

TEST(all_threads_get_the_same_constant_strings, "")
{
    static const void *found[interning_threads][interned_texts];
    pthread_t threads[interning_threads];
    for (int i = 0; i < interning_threads; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, intern_many, found[i]) == 0);
    }
    for (int i = 0; i < interning_threads; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < interned_texts; i++) {
        for (int j = 1; j < interning_threads; j++) {
            if (found[j][i] == NULL || found[j][i] != found[0][i]) {
                FAIL("two threads have different constants");
            }
        }
    }
}

/* A shared object of literals, built by a compiler that is installed here. */
static const char literals_source[] =
    "#include \"CoreFoundation/CFString.h\"\n"
    "CFStringRef const literals[] = {CFSTR(\"kCFRunLoopDefaultMode\"), CFSTR(\"Zürich 😀 東京\"), CFSTR(\"\"), 0};\n";

static bool is_there(const char *compiler)
{
    char command[200];
    snprintf(command, sizeof command, "echo 'int i;' | %s -x c -fsyntax-only - > /dev/null 2>&1", compiler);
    return system(command) == 0;
}

static void write_source(const char *path)
{
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs(literals_source, file);
    fclose(file);
}

/* clang's literals refer to the class by name; here the name is 0, and the test puts the class in. */
static void give_class(CFStringRef literal)
{
    struct clang_literal *laid_out = (struct clang_literal *)(uintptr_t)literal;
    if (!object_is_wide_literal(literal)) {
        EXPECT(laid_out->isa == NULL);
        laid_out->isa = &string_class;
    }
}

static void expect_literals_of(const char *compiler, const char *directory)
{
    char source[100];
    char object[100];
    char command[500];
    snprintf(source, sizeof source, "%s/literals.c", directory);
    snprintf(object, sizeof object, "%s/literals.so", directory);
    write_source(source);
    snprintf(command, sizeof command, "%s -std=c89 -pedantic -Wall -Werror -O2 -fPIC -shared -IHeaders %s -o %s -Wl,--defsym=%s=0",
             compiler, source, object, "__CFConstantStringClassReference");
    EXPECT_EQ(system(command), 0);
    void *handle = dlopen(object, RTLD_NOW);
    const CFStringRef *literals = handle != NULL ? dlsym(handle, "literals") : NULL;
    unlink(source);
    unlink(object);
    REQUIRE(literals != NULL);
    static CFStringRef const expected[] = {WIDE("kCFRunLoopDefaultMode"), WIDE("Zürich 😀 東京"), WIDE("")};
    for (int i = 0; i < 3; i++) {
        give_class(literals[i]);
        EXPECT(CFEqual(literals[i], expected[i]));
        EXPECT_EQ(CFHash(literals[i]), CFHash(expected[i]));
        CFRelease(literals[i]);
    }
    EXPECT_STR(CFStringGetCStringPtr(literals[0], kCFStringEncodingUTF8), "kCFRunLoopDefaultMode");
    dlclose(handle);
}

TEST(the_literals_of_every_compiler_here_are_the_same_texts, "")
{
    static const char *const compilers[] = {"gcc", "clang", "clang -fblocks", "clang -fno-constant-cfstrings", "gcc -funsigned-char"};
    char directory[] = "/tmp/crl-literals-XXXXXX";
    if (access("Headers/CoreFoundation/CFString.h", R_OK) != 0) {
        SKIP("the headers are not in the working directory");
    }
    REQUIRE(mkdtemp(directory) != NULL);
    int built = 0;
    for (size_t i = 0; i < sizeof compilers / sizeof compilers[0]; i++) {
        if (is_there(compilers[i])) {
            expect_literals_of(compilers[i], directory);
            built++;
        }
    }
    rmdir(directory);
    if (built == 0) {
        SKIP("no compiler is installed");
    }
}
