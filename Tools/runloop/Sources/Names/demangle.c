/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of C++ and Swift as in these languages. The library that comes with each language does that: the one of C++ if it is installed, and
 * the one of Swift if its toolchain is in PATH.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "Names/symbols.h"

typedef char *cxx_demangler(const char *name, char *buffer, size_t *size, int *ret_status);
typedef size_t swift_demangler(const char *name, char *ret_text, size_t size); /* the length that is needed; 0: no name of Swift */

static void *find_function(const char *library, const char *name)
{
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    return loaded ? dlsym(loaded, name) : NULL;
}

static cxx_demangler *find_cxx(void)
{
    void *found = find_function("libstdc++.so.6", "__cxa_demangle");

    found = found ? found : find_function("libc++abi.so.1", "__cxa_demangle");
    return (cxx_demangler *)(uintptr_t)found;
}

/* The toolchain's library stands beside the folder of its commands. */
static swift_demangler *find_swift(void)
{
    static const char function[] = "swift_demangle_getDemangledName";
    const char *folder = getenv("PATH");
    void *found = NULL;

    while (!found && folder && *folder) {
        size_t length = strcspn(folder, ":");
        char path[4096 + 64];
        char *command;

        (void)snprintf(path, sizeof path, "%.*s/swift", (int)(length < 4000 ? length : 4000), folder);
        command = *folder == '/' ? realpath(path, NULL) : NULL;
        if (command && strrchr(command, '/')) {
            *strrchr(command, '/') = '\0';
            (void)snprintf(path, sizeof path, "%.4096s/../lib/libswiftDemangle.so", command);
            found = find_function(path, function);
        }
        free(command);
        folder += length + (folder[length] == ':');
    }
    return (swift_demangler *)(uintptr_t)found;
}

static bool demangle_swift(const char *name, char ret_text[symbol_name_most])
{
    static swift_demangler *demangle;
    static bool has_looked;

    demangle = has_looked ? demangle : find_swift();
    has_looked = true;
    return demangle && demangle(name, ret_text, symbol_name_most) > 0;
}

static bool demangle_cxx(const char *name, char ret_text[symbol_name_most])
{
    static cxx_demangler *demangle;
    static bool has_looked;
    char *text;

    demangle = has_looked ? demangle : find_cxx();
    has_looked = true;
    text = demangle ? demangle(name, NULL, NULL, NULL) : NULL;
    if (text) {
        (void)snprintf(ret_text, symbol_name_most, "%s", text);
    }
    free(text);
    return text != NULL;
}

void symbol_demangle(const char *name, char ret_text[symbol_name_most])
{
    bool is_done = strncmp(name, "_Z", 2) == 0                                  ? demangle_cxx(name, ret_text)
                   : strncmp(name, "$s", 2) == 0 || strncmp(name, "$S", 2) == 0 ? demangle_swift(name, ret_text)
                                                                                : false;

    if (!is_done) {
        (void)snprintf(ret_text, symbol_name_most, "%s", name);
    }
    ret_text[symbol_name_most - 1] = '\0';
}
