/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child of a fork uses all public headers while other threads did: see fork_probe.h. `make soak-stress` forks 1,000 times. What has
 * only macros and inline functions is left out; Net's and the bridge's headers have tests of their own.
 */
#include "Failure/fork_probe.h"
#include "Failure/fork_uses.h"
#include "Port/port_probe.h"

static bool text_is(CFStringRef text, CFStringRef expected)
{
    bool is_equal = text && CFEqual(text, expected);

    if (text) {
        CFRelease(text);
    }
    return is_equal;
}

static bool described(CFTypeRef object)
{
    CFStringRef words = CFCopyDescription(object);
    bool has_words = words && CFStringGetLength(words) > 0;

    if (words) {
        CFRelease(words);
    }
    CFRelease(object);
    return has_words;
}

static bool formats(void)
{
    return text_is(CFStringCreateWithFormat(NULL, NULL, CFSTR("%d %g %x %p"), 5, 2.5, 255, NULL), CFSTR("5 2.5 ff 0x0"));
}

static bool parses(void)
{
    return CFStringGetDoubleValue(CFSTR(" 2.5e3")) == 2500 && CFStringGetIntValue(CFSTR("17")) == 17;
}

static bool folds(void)
{
    const UniChar capital = 0xC9;
    const UniChar small = 0xE9;
    CFStringRef one = CFStringCreateWithCharacters(NULL, &capital, 1);
    CFStringRef other = CFStringCreateWithCharacters(NULL, &small, 1);
    bool is_same = CFStringCompare(one, other, kCFCompareCaseInsensitive) == kCFCompareEqualTo;

    CFRelease(one);
    CFRelease(other);
    return is_same;
}

static bool shows(void)
{
    CFShow(CFSTR(""));
    return true;
}

static bool dates(void)
{
    return described(CFDateCreate(NULL, CFAbsoluteTimeGetCurrent()));
}

static bool errors(void)
{
    CFErrorRef error = CFErrorCreate(NULL, kCFErrorDomainPOSIX, 2, NULL);
    bool has_text = text_is(CFErrorCopyFailureReason(error), CFSTR("No such file or directory"));

    return described(error) && has_text;
}

static bool identifiers(void)
{
    return described(CFUUIDCreate(NULL));
}

static bool urls(void)
{
    return described(CFURLCreateWithBytes(NULL, (const UInt8 *)"http://h/a b", 12, kCFStringEncodingUTF8, NULL));
}

static bool numbers(void)
{
    double value = 0.5;

    return described(CFNumberCreate(NULL, kCFNumberDoubleType, &value));
}

static bool collections(void)
{
    CFMutableDictionaryRef pairs = CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    CFArrayRef words = CFStringCreateArrayBySeparatingStrings(NULL, CFSTR("b a"), CFSTR(" "));
    CFMutableSetRef set = CFSetCreateMutable(NULL, 0, &kCFTypeSetCallBacks);
    CFMutableDataRef data = CFDataCreateMutable(NULL, 0);

    CFDataSetLength(data, 100);
    CFSetAddValue(set, data);
    CFDictionarySetValue(pairs, words, set);
    CFRelease(data);
    CFRelease(words);
    CFRelease(set);
    return described(pairs);
}

static const struct fork_use uses[] = {
    {"formats a number", formats},
    {"parses one", parses},
    {"compares letters", folds},
    {"shows a string", shows},
    {"describes a date", dates},
    {"describes an error", errors},
    {"makes a UUID", identifiers},
    {"makes a URL", urls},
    {"describes a number", numbers},
    {"describes collections", collections},
    {"runs a timer", fork_use_timers},
    {"describes its loop", fork_use_loops},
    {"runs sources", fork_use_sources},
    {"hosts its loop", fork_use_hosted_loops},
    {"hears of a signal", fork_use_signals},
    {"hears of a child's end", fork_use_children},
    {"traces its loop", fork_use_traces},
    {"starts a task", fork_use_tasks},
    {"asks a port", fork_use_ports},
    {"defers a reply", fork_use_deferred_replies},
    {"sends to a Mach port", fork_use_mach_ports},
    {"writes into a stream", fork_use_bound_pairs},
    {"connects a stream", fork_use_connections},
    {"reads a file", fork_use_files},
    {"hears of a socket", fork_use_sockets},
    {"hears of a descriptor", fork_use_descriptors},
    {"asks for a host", fork_use_hosts},
    {NULL, NULL},
};

PORT_TEST_LIMIT(stress_fork_out_of_eight_threads_that_use_everything, "176 P2", 600)
{
    fork_probe_run(uses);
}
