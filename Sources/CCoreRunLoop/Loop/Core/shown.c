/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the pieces of descriptions; see shown.h. No lock, no state. */
#include "Loop/Core/shown.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Kernel/kernel.h"
#include "Loop/Trace/code_place.h"

/* Of Swift's runtime, if that is in the process. Cuts the text to the buffer; NULL: the name is none of Swift's. */
extern char *swift_demangle(const char *name, size_t length, char *buffer, size_t *size, uint32_t flags) __attribute__((weak));
/* Of the runtime of C++, likewise. Returns memory for the caller. */
extern char *__cxa_demangle(const char *name, char *buffer, size_t *size, int *ret_status) __attribute__((weak));

/* Names of files and symbols may hold any byte. */
static const char *make_plain(struct shown *shown)
{
    for (char *byte = shown->text; *byte; byte++) {
        if (*byte < ' ' || *byte > '~') {
            *byte = '?';
        }
    }
    return shown->text;
}

const char *shown_symbol(struct shown *shown, const char *name)
{
    size_t size = sizeof shown->text;
    char *plain = strncmp(name, "_Z", 2) == 0 && __cxa_demangle ? __cxa_demangle(name, NULL, NULL, NULL) : NULL;

    if (plain) {
        (void)shown_text(shown, plain);
        free(plain);
        return shown->text;
    }
    if (name[0] != '$' || !swift_demangle || !swift_demangle(name, strlen(name), shown->text, &size, 0)) {
        return shown_text(shown, name);
    }
    shown->text[sizeof shown->text - 1] = '\0';
    return make_plain(shown);
}

const char *shown_text(struct shown *shown, const char *text)
{
    (void)snprintf(shown->text, sizeof shown->text, "%s", text);
    return make_plain(shown);
}

const char *shown_callout(struct shown *shown, void (*function)(void))
{
    struct code_place place;

    if (!function) {
        return "(none)";
    }
    code_place_find(&place, (const void *)(uintptr_t)function);
    if (place.function[0] != '\0' && place.into == 0) {
        return shown_symbol(shown, place.function);
    }
    if (place.file[0] == '\0') {
        return "code without a file";
    }
    (void)snprintf(shown->text, sizeof shown->text, "%s+0x%lx", place.file, (unsigned long)place.at);
    return make_plain(shown);
}

const char *shown_descriptor(struct shown *shown, int descriptor)
{
    char name[200];

    if (descriptor < 0) {
        (void)snprintf(shown->text, sizeof shown->text, "%d", descriptor);
    } else if (kernel.descriptor_name(descriptor, name, sizeof name) >= 0) {
        (void)snprintf(shown->text, sizeof shown->text, "%d (%s)", descriptor, name);
    } else {
        (void)snprintf(shown->text, sizeof shown->text, "%d%s", descriptor, kernel.descriptor_is_open(descriptor) ? "" : " (not open)");
    }
    return make_plain(shown);
}

const char *shown_instant(struct shown *shown, int64_t instant_ns, int64_t now_ns)
{
    bool is_past = instant_ns < now_ns;
    int64_t us = (is_past ? now_ns - instant_ns : instant_ns - now_ns) / 1000;

    if (instant_ns == kernel_never) {
        return "never";
    }
    /* Not by %f, whose point depends on the locale. */
    (void)snprintf(shown->text, sizeof shown->text, "%s%lld.%06d s%s", is_past ? "" : "in ", (long long)(us / 1000000), (int)(us % 1000000),
                   is_past ? " ago" : "");
    return shown->text;
}

const char *shown_bits(struct shown *shown, const struct shown_bit *names, uint32_t bits)
{
    size_t length = 0;

    if (bits == 0) {
        return "none";
    }
    shown->text[0] = '\0';
    for (; names->name; names++) {
        if (bits & names->bit && length < sizeof shown->text) {
            length += (size_t)snprintf(shown->text + length, sizeof shown->text - length, "%s%s", length ? "|" : "", names->name);
            bits &= ~names->bit;
        }
    }
    if (bits && length < sizeof shown->text) {
        (void)snprintf(shown->text + length, sizeof shown->text - length, "%s0x%x", length ? "|" : "", (unsigned)bits);
    }
    return shown->text;
}
