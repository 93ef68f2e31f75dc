/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says in the code which lock guards a field and which lock a function needs. clang checks it in `scripts/check-guards`; elsewhere the
 * words mean nothing to the compiler.
 *
 *   GUARDED_BY(&lock)     on a field: read and write it only with the lock held. `lock` is a field of the same structure or a role.
 *   REQUIRES(role)        before a function: the caller holds the lock
 *   EXCLUDES(role)        before a function: the caller does not hold the lock, because the function takes it or runs the program's code
 *   ACQUIRES, RELEASES    before a function: it takes or drops the lock
 *   NOT_CHECKED           before a function whose locking clang cannot follow; a comment says why it is right
 *
 * A lock role stands for all locks of one kind: the_loop_lock is the lock of whichever loop. That is enough where a thread never holds two
 * locks of the kind at once. A role is only declared, never defined.
 */
#ifndef CRL_SUPPORT_GUARD_H
#define CRL_SUPPORT_GUARD_H

#include "Support/link_names.h"

#if defined(CHECK_GUARDS)
#define GUARD_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define GUARD_ATTRIBUTE(attribute)
#endif

#define CAPABILITY GUARD_ATTRIBUTE(capability("lock"))
#define GUARDED_BY(lock) GUARD_ATTRIBUTE(guarded_by(lock))
#define REQUIRES(...) GUARD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) GUARD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRES(...) GUARD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASES(...) GUARD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define RETURNS_LOCK(lock) GUARD_ATTRIBUTE(lock_returned(lock))
#define NOT_CHECKED GUARD_ATTRIBUTE(no_thread_safety_analysis)

struct CAPABILITY lock_role {
    char stands_for_many;
};

#endif
