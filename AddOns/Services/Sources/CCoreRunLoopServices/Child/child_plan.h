/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a child is to become: all of a specification, made ready for child_exec, which can allocate nothing and look up nothing.
 *
 * A plan belongs to the thread that starts the child, and lives as long as the call that does. It borrows the specification's texts.
 */
#ifndef CRL_SERVICES_CHILD_PLAN_H
#define CRL_SERVICES_CHILD_PLAN_H

#include "services_link_names.h"

#include <stdbool.h>
#include <stddef.h>

#include "CRLChild.h"

/* A descriptor of the child. */
struct child_slot {
    int number;
    CRLChildDescriptorKind kind;
    int asked; /* of kCRLChildGiven and kCRLChildSame: the specification's descriptor */
    int source; /* the program's descriptor that the child gets a copy of; -1: not there yet */
    int moved; /* in the child: a copy of the source that is out of the way */
    int program_end; /* of a pipe; -1: none. Both are this plan's to close */
    bool closes_source; /* the source was opened for the child */
};

struct child_plan {
    const char *const *files; /* the paths to try, in their order; the list ends with NULL, and is one block with its texts */
    const char *const *arguments;
    const char *const *environment;
    const char *folder; /* or NULL */
    struct child_slot *slots; /* by number */
    size_t slot_count;
    const CRLChildLimit *limits;
    size_t limit_count;
    pid_t group; /* as in the specification */
    bool starts_session;
    int report; /* the end of a pipe, for an error */
    /* Written by the child. If it is set, the child shared this memory, and `failure` is right without a look at the pipe. */
    volatile bool is_shared;
    volatile CRLChildError failure; /* error 0: none */
};

/* Makes a plan without descriptors of its own. Returns 0, -EINVAL or -ENOMEM; only after 0 it is to be freed. */
int child_plan_make(struct child_plan *plan, const CRLChildSpecification *specification);
/* Opens what the slots need. Returns 0 or a negative errno; then nothing is open. */
int child_plan_open(struct child_plan *plan);
/* Closes what was opened for the child alone. */
void child_plan_close_sources(struct child_plan *plan);
/* Closes all that was opened and not taken, and frees what the plan has. */
void child_plan_free(struct child_plan *plan);

/* Whether the child has something under the number. Safe between vfork and exec. */
bool child_plan_has(const struct child_plan *plan, int number);

#endif
