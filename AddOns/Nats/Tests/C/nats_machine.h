/* SPDX-License-Identifier: Apache-2.0 */
/* Machines: processes with a directory of port names of their own. What their ports note, and calls of this machine's programs. */
#ifndef CRL_TESTS_NATS_MACHINE_H
#define CRL_TESTS_NATS_MACHINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "CRLMessagePort.h"
#include "nats_place.h"

/* The calling process becomes a machine: its ports are found by its own programs only. */
void machine_become(const char *machine);

/*
 * Starts a machine in a process of its own: it has a local port for each of the names, separated by spaces, with this callback, and a
 * bridge that exports them. With `shares` others may have them, too. Returns when the ports are there. It ends with the test at the
 * latest. Its bridge's events are lines of the file "events".
 */
pid_t machine_start(const char *machine, const char *names, CFMessagePortCallBack callback, bool shares);
/*
 * The same in two steps: a process that has a bridge has cnats's threads, and should not fork. So the machine sleeps, and its server must
 * have been started.
 */
struct sleeping_machine {
    pid_t pid;
    int ready;
    int wake;
};
struct sleeping_machine machine_start_later(const char *machine, const char *names, CFMessagePortCallBack callback, bool shares);
pid_t machine_wake(struct sleeping_machine machine);
void machine_end(pid_t pid, int signal);
/*
 * A program of a machine that has a port, in a process of its own; the machine is then started without a callback. It sleeps until it is
 * woken, as a machine does.
 */
struct sleeping_machine program_start_later(const char *machine, const char *name, CRLMessagePortCallBack callback);

/* ---- notes ---- */

/* A callback for machines: adds each message's number to the file "noted". */
CFDataRef place_note(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info);
/* The same, 30 ms later, for programs. */
CFDataRef place_note_slowly(CFMessagePortRef local, SInt32 message_id, CFDataRef data, void *info, CRLReceivedMessageRef message);
/* Whether the file "noted" has fewer lines than the number at `info`. Those that are there must be 0, 1, 2 and so on. */
bool place_lacks_notes(void *info);
/* Whether a file of the place contains a text. */
bool place_file_has(const char *name, const char *text);

/* ---- calls of this machine ---- */

/* A request on a thread of its own, while the calling thread runs its loop, which has the bridge. */
SInt32 place_ask(const char *name, SInt32 message_id, CFDataRef data, CFTimeInterval limit_s, CFDataRef *ret_reply);
/* One-way messages with the numbers from `first` on; the result of the last. */
SInt32 place_tell(const char *name, SInt32 first, int count, CFDataRef data);

#endif
