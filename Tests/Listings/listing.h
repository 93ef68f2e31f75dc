/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every listing's program shares: checks that are counted, a limit of ten seconds on the whole program, and a thread that is waited
 * for. A program returns listing_end(): 0 when every check held, 1 otherwise.
 */
#ifndef CRL_TESTS_LISTING_H
#define CRL_TESTS_LISTING_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int listing_failures;

#define CHECK(_condition) listing_check(_condition, __FILE__, __LINE__, #_condition)

static inline void listing_check(bool holds, const char *file, int line, const char *text) {
    if (holds) return;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
    atomic_fetch_add(&listing_failures, 1);
}

static inline void listing_begin(void) {
    alarm(10);
}

static inline int listing_end(void) {
    return atomic_load(&listing_failures) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline pthread_t listing_detach(void *(*threadMain)(void *), void *object) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, threadMain, object) != 0) {
        perror("pthread_create");
        exit(EXIT_FAILURE);
    }
    return thread;
}

/* Runs `threadMain` on a thread of its own and returns when that has ended. */
static inline void listing_on_thread(void *(*threadMain)(void *), void *object) {
    pthread_join(listing_detach(threadMain, object), NULL);
}

#endif
