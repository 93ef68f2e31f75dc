/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a property list of some megabytes takes to read and write in each format. Built with this library, with the toolchain's Core
 * Foundation, and with libplist (BENCH_LIBPLIST), which reads the files that the first has written.
 *
 *     main FOLDER ROUNDS [write RECORDS]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static char *read_file(const char *folder, const char *name, long *ret_length)
{
    char path[4096];
    FILE *file;
    char *bytes;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    *ret_length = ftell(file);
    rewind(file);
    bytes = malloc((size_t)*ret_length + 1);
    *ret_length = (long)fread(bytes, 1, (size_t)*ret_length, file);
    fclose(file);
    return bytes;
}

static void tell(const char *what, double least_ms, long length)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    if (least_ms > 0) {
        printf("%-14s %8.1f ms %8.1f MB/s  peak %5ld MB\n", what, least_ms, (double)length / 1e3 / least_ms, usage.ru_maxrss / 1024);
    }
}

#if defined(BENCH_LIBPLIST)

#include <plist/plist.h>

static void measure(const char *folder, const char *name, int rounds)
{
    bool is_xml = strcmp(name, "xml") == 0;
    double read_ms = 0, write_ms = 0;
    long length;
    char *bytes = read_file(folder, name, &length);

    for (int i = 0; i < rounds; i++) {
        plist_t tree = NULL;
        char *written = NULL;
        uint32_t written_length = 0;
        double start = now_ms(), middle, end;

        if (is_xml) {
            plist_from_xml(bytes, (uint32_t)length, &tree);
        } else {
            plist_from_bin(bytes, (uint32_t)length, &tree);
        }
        middle = now_ms();
        if (is_xml) {
            plist_to_xml(tree, &written, &written_length);
        } else {
            plist_to_bin(tree, &written, &written_length);
        }
        end = now_ms();
        read_ms = i == 0 || middle - start < read_ms ? middle - start : read_ms;
        write_ms = i == 0 || end - middle < write_ms ? end - middle : write_ms;
        free(written);
        plist_free(tree);
    }
    tell(is_xml ? "read xml" : "read binary", read_ms, length);
    tell(is_xml ? "write xml" : "write binary", write_ms, length);
    free(bytes);
}

int main(int count, char **arguments)
{
    (void)count;
    measure(arguments[1], "xml", atoi(arguments[2]));
    measure(arguments[1], "binary", atoi(arguments[2]));
    return 0;
}

#else

#include <CoreFoundation/CoreFoundation.h>

static CFStringRef make_text(const char *format, int number)
{
    char text[100];

    snprintf(text, sizeof text, format, number);
    return CFStringCreateWithCString(NULL, text, kCFStringEncodingUTF8);
}

static void set(CFMutableDictionaryRef record, CFStringRef key, CFTypeRef value)
{
    CFDictionarySetValue(record, key, value);
    CFRelease(value);
}

/* About 700 bytes of XML. */
static CFDictionaryRef make_record(int number)
{
    CFMutableDictionaryRef record = CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    CFMutableArrayRef tags = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);
    double real = number * 1.37;
    UInt8 bytes[60];

    for (int i = 0; i < 60; i++) {
        bytes[i] = (UInt8)(number + i * 7);
    }
    for (int i = 0; i < 4; i++) {
        CFStringRef tag = make_text("tag number %d", (number + i * 13) % 997);

        CFArrayAppendValue(tags, tag);
        CFRelease(tag);
    }
    set(record, CFSTR("Identifier"), CFNumberCreate(NULL, kCFNumberIntType, &number));
    set(record, CFSTR("Name"), make_text("The record with the number %d & a name", number));
    set(record, CFSTR("Place"),
        make_text(number % 4 ? "Town %d"
                             : "Stra\xC3\x9F"
                               "e %d",
                  number));
    set(record, CFSTR("Weight"), CFNumberCreate(NULL, kCFNumberDoubleType, &real));
    set(record, CFSTR("Created"), CFDateCreate(NULL, number * 1000.0));
    set(record, CFSTR("Enabled"), CFRetain(number % 3 ? kCFBooleanTrue : kCFBooleanFalse));
    set(record, CFSTR("Token"), CFDataCreate(NULL, bytes, 60));
    set(record, CFSTR("Tags"), tags);
    return record;
}

static void write_file(const char *folder, const char *name, CFTypeRef tree, CFPropertyListFormat format)
{
    CFDataRef data = CFPropertyListCreateData(NULL, tree, format, 0, NULL);
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "wb");
    fwrite(CFDataGetBytePtr(data), 1, (size_t)CFDataGetLength(data), file);
    fclose(file);
    CFRelease(data);
}

/* The old format is not written by the library: keys, strings and data of the records. */
static void write_old_file(const char *folder, int records)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/old", folder);
    file = fopen(path, "wb");
    fprintf(file, "(\n");
    for (int i = 0; i < records; i++) {
        fprintf(file,
                "  {\n    Identifier = %d;\n    Name = \"The record with the number %d \\U00e9\";\n    Place = Town%d;\n    Token = <", i,
                i, i);
        for (int j = 0; j < 60; j++) {
            fprintf(file, "%02x", (i + j * 7) & 255);
        }
        fprintf(file, ">;\n    Tags = (\"tag number %d\", \"tag number %d\", \"tag number %d\");\n  },\n", i % 997, (i + 13) % 997,
                (i + 26) % 997);
    }
    fprintf(file, ")\n");
    fclose(file);
}

static void write_files(const char *folder, int records)
{
    CFMutableArrayRef tree = CFArrayCreateMutable(NULL, 0, &kCFTypeArrayCallBacks);

    for (int i = 0; i < records; i++) {
        CFDictionaryRef record = make_record(i);

        CFArrayAppendValue(tree, record);
        CFRelease(record);
    }
    write_file(folder, "xml", tree, kCFPropertyListXMLFormat_v1_0);
    write_file(folder, "binary", tree, kCFPropertyListBinaryFormat_v1_0);
    write_old_file(folder, records);
    CFRelease(tree);
}

static void measure(const char *folder, const char *name, CFPropertyListFormat format, int rounds)
{
    double read_ms = 0, write_ms = 0;
    long length;
    char *bytes = read_file(folder, name, &length);
    CFDataRef data = CFDataCreate(NULL, (UInt8 *)bytes, length);
    char what[40];

    for (int i = 0; i < rounds; i++) {
        double start = now_ms(), middle, end;
        CFTypeRef tree = CFPropertyListCreateWithData(NULL, data, 0, NULL, NULL);
        CFDataRef written;

        middle = now_ms();
        written = format ? CFPropertyListCreateData(NULL, tree, format, 0, NULL) : NULL;
        end = now_ms();
        read_ms = i == 0 || middle - start < read_ms ? middle - start : read_ms;
        write_ms = written && (i == 0 || end - middle < write_ms) ? end - middle : write_ms;
        if (written) {
            CFRelease(written);
        }
        CFRelease(tree);
    }
    snprintf(what, sizeof what, "read %s", name);
    tell(what, read_ms, length);
    snprintf(what, sizeof what, "write %s", name);
    tell(what, write_ms, length);
    CFRelease(data);
    free(bytes);
}

int main(int count, char **arguments)
{
    if (count > 4) {
        write_files(arguments[1], atoi(arguments[4]));
        return 0;
    }
    measure(arguments[1], "xml", kCFPropertyListXMLFormat_v1_0, atoi(arguments[2]));
    measure(arguments[1], "binary", kCFPropertyListBinaryFormat_v1_0, atoi(arguments[2]));
    measure(arguments[1], "old", (CFPropertyListFormat)0, atoi(arguments[2]));
    return 0;
}

#endif
