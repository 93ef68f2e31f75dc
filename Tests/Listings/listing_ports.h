/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of names for one listing's program, so that two runs at once do not meet. */
#ifndef CRL_TESTS_LISTING_PORTS_H
#define CRL_TESTS_LISTING_PORTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char listing_ports_path[] = "/tmp/corerunloop-listing-XXXXXX";

static inline void listing_ports_begin(void) {
    if (mkdtemp(listing_ports_path) == NULL || setenv("XDG_RUNTIME_DIR", listing_ports_path, 1) != 0) {
        perror("a directory for names");
        exit(EXIT_FAILURE);
    }
}

/* Every port's files are gone when all ports are invalid; what is left is the sweeper's lock. */
static inline void listing_ports_end(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/corerunloop.v1/.sweep", listing_ports_path);
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    rmdir(listing_ports_path);
}

#endif
