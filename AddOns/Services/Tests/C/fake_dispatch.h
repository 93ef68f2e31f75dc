/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libdispatch's functions for the whole program of tests: sources and calls that the test itself runs, when it wants, as a queue would.
 * clang's thread sanitizer has these functions itself, which look into libdispatch's own sources.
 */
#ifndef CRL_TESTS_FAKE_DISPATCH_H
#define CRL_TESTS_FAKE_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_FUNCTIONS_OF_THE_SANITIZER
#endif
#endif
#if !defined(HAS_FUNCTIONS_OF_THE_SANITIZER)
#define HAS_FAKE_DISPATCH

enum { fake_sources_most = 8 };

struct fake_source {
    int descriptor;
    void *queue;
    void *context;
    void (*handle)(void *context);
    void (*end)(void *context);
    bool is_resumed;
    bool is_cancelled;
    bool is_released;
};

extern struct fake_source fake_sources[fake_sources_most];
extern size_t fake_source_count;
extern bool fake_dispatch_refuses; /* to make sources */
/* What a queue has to do now: it runs the sources that are readable, ends those that were cancelled, and makes the calls until now. */
void fake_dispatch_run(void);

#endif

#endif
