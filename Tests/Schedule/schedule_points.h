/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Put before a source of the library by the compiler (-include): every atomic operation on memory that threads share, and with that every
 * lock, first calls schedule_point, which whoever links with it defines. What comes between two points is then done in one piece, as far
 * as another thread of a simulation can tell; under ThreadSanitizer it is where threads are held up.
 *
 * The operations are the compiler's own: gcc's generic functions, clang's C11 builtins.
 */
#ifndef CRL_TESTS_SCHEDULE_POINTS_H
#define CRL_TESTS_SCHEDULE_POINTS_H

#pragma GCC system_header

/* What a source defines before its first include comes too late behind this one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdatomic.h>
#include <stdbool.h>

void schedule_point(void);

#undef atomic_init
#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_and_explicit
#undef atomic_fetch_or_explicit
#undef atomic_flag_test_and_set_explicit

#if defined(__clang__)
#define atomic_init(_object, _value) __c11_atomic_init(_object, _value)
#define atomic_load_explicit(_object, _order) (schedule_point(), __c11_atomic_load(_object, _order))
#define atomic_store_explicit(_object, _value, _order) (schedule_point(), __c11_atomic_store(_object, _value, _order))
#define atomic_exchange_explicit(_object, _value, _order) (schedule_point(), __c11_atomic_exchange(_object, _value, _order))
#define atomic_compare_exchange_strong_explicit(_object, _expected, _value, _order, _failure) \
    (schedule_point(), __c11_atomic_compare_exchange_strong(_object, _expected, _value, _order, _failure))
#define atomic_compare_exchange_weak_explicit(_object, _expected, _value, _order, _failure) \
    (schedule_point(), __c11_atomic_compare_exchange_weak(_object, _expected, _value, _order, _failure))
#define atomic_fetch_add_explicit(_object, _value, _order) (schedule_point(), __c11_atomic_fetch_add(_object, _value, _order))
#define atomic_fetch_sub_explicit(_object, _value, _order) (schedule_point(), __c11_atomic_fetch_sub(_object, _value, _order))
#define atomic_fetch_and_explicit(_object, _value, _order) (schedule_point(), __c11_atomic_fetch_and(_object, _value, _order))
#define atomic_fetch_or_explicit(_object, _value, _order) (schedule_point(), __c11_atomic_fetch_or(_object, _value, _order))
#define atomic_flag_test_and_set_explicit(_flag, _order) (schedule_point(), __c11_atomic_exchange(&(_flag)->_Value, 1, _order))
#else
/* The type of what is in the object, without _Atomic and qualifiers: that of an rvalue. */
#define SCHEDULE_VALUE_OF(_object) __typeof__((void)0, *(_object))
#define atomic_init(_object, _value)                                    \
    __extension__({                                                     \
        SCHEDULE_VALUE_OF(_object) schedule_initial = (_value);         \
        __atomic_store((_object), &schedule_initial, __ATOMIC_RELAXED); \
    })
#define atomic_load_explicit(_object, _order)                     \
    __extension__({                                               \
        schedule_point();                                         \
        __auto_type schedule_object = (_object);                  \
        SCHEDULE_VALUE_OF(schedule_object) schedule_loaded;       \
        __atomic_load(schedule_object, &schedule_loaded, _order); \
        schedule_loaded;                                          \
    })
#define atomic_store_explicit(_object, _value, _order)                 \
    __extension__({                                                    \
        __auto_type schedule_object = (_object);                       \
        SCHEDULE_VALUE_OF(schedule_object) schedule_stored = (_value); \
        schedule_point();                                              \
        __atomic_store(schedule_object, &schedule_stored, _order);     \
    })
#define atomic_exchange_explicit(_object, _value, _order)                               \
    __extension__({                                                                     \
        __auto_type schedule_object = (_object);                                        \
        SCHEDULE_VALUE_OF(schedule_object) schedule_stored = (_value);                  \
        SCHEDULE_VALUE_OF(schedule_object) schedule_loaded;                             \
        schedule_point();                                                               \
        __atomic_exchange(schedule_object, &schedule_stored, &schedule_loaded, _order); \
        schedule_loaded;                                                                \
    })
#define SCHEDULE_COMPARE_EXCHANGE(_object, _expected, _value, _weak, _order, _failure)                      \
    __extension__({                                                                                         \
        __auto_type schedule_object = (_object);                                                            \
        SCHEDULE_VALUE_OF(schedule_object) schedule_stored = (_value);                                      \
        schedule_point();                                                                                   \
        __atomic_compare_exchange(schedule_object, (_expected), &schedule_stored, _weak, _order, _failure); \
    })
#define atomic_compare_exchange_strong_explicit(_object, _expected, _value, _order, _failure) \
    SCHEDULE_COMPARE_EXCHANGE(_object, _expected, _value, 0, _order, _failure)
#define atomic_compare_exchange_weak_explicit(_object, _expected, _value, _order, _failure) \
    SCHEDULE_COMPARE_EXCHANGE(_object, _expected, _value, 1, _order, _failure)
#define atomic_fetch_add_explicit(_object, _value, _order) (schedule_point(), __atomic_fetch_add((_object), (_value), _order))
#define atomic_fetch_sub_explicit(_object, _value, _order) (schedule_point(), __atomic_fetch_sub((_object), (_value), _order))
#define atomic_fetch_and_explicit(_object, _value, _order) (schedule_point(), __atomic_fetch_and((_object), (_value), _order))
#define atomic_fetch_or_explicit(_object, _value, _order) (schedule_point(), __atomic_fetch_or((_object), (_value), _order))
#define atomic_flag_test_and_set_explicit(_flag, _order) (schedule_point(), __atomic_test_and_set((_flag), _order))
#endif

#endif
