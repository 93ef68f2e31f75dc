/* SPDX-License-Identifier: Apache-2.0 */
/* Work for tests: pieces that note what becomes of them, and a pool whose threads are the test's own steps. */
#ifndef CRL_TESTS_WORK_PROBE_H
#define CRL_TESTS_WORK_PROBE_H

#include "CRLWork.h"
#include "CoreFoundation/CoreFoundation.h"
#include "harness.h"

struct work_probe {
    CRLWorkRef work; /* a reference, until the test gives it up */
    _Atomic int runs;
    _Atomic int ends;
    _Atomic int releases; /* of the context */
    CRLWorkEnd end;
    void (*during)(struct work_probe *probe); /* on the pool's thread; NULL: nothing */
    void (*after)(struct work_probe *probe); /* when the end is told; NULL: nothing */
    void *context; /* of these two */
};

/* Gives work of which `probe` notes everything. False: it was refused. */
bool work_probe_give(struct work_probe *probe, CFRunLoopRef loop, CFRunLoopMode mode);
/* Releases the work. */
void work_probe_release(struct work_probe *probe);
/* Gives and releases it. */
void work_probe_give_away(struct work_probe *probe, CFRunLoopRef loop, CFRunLoopMode mode);

/* From now on the pool starts no threads. `error` is what starting one returns. */
void work_steps_begin(int error);
/* One thread takes work; NULL if none waits. */
CRLWorkRef work_step_take(void);
/* It runs the work and gives it up. */
void work_step_finish(CRLWorkRef work);
/* Nobody has work any more. */
void work_steps_end(void);

#endif
