/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test harness: every Tests/CTests/.../test_*.c is linked into one runner, and every TEST registers itself in a linker section.
 *
 * Each test runs in its own forked process, on that process's main thread, with a time limit; open descriptors and live objects are
 * compared before and after. What the library keeps until the process ends (the main thread's loop and its descriptors) is given back
 * before the comparison by `testing_give_back`, a function that any file under Tests/CTests or Sources may define (it is weak here).
 *
 * EXPECT... record a failure and go on; REQUIRE, FAIL and SKIP end the test where they stand. All of them work on any thread and in forked
 * children, and are evaluated once. Never sleep to wait for something: replace the clock, or wait for an event.
 */
#ifndef CRL_TESTS_HARNESS_H
#define CRL_TESTS_HARNESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct test {
    const char *name;
    const char *rules; /* numbers of spec rules and names of fault cases, separated by spaces */
    const char *file;
    int line;
    int limit_s;
    void (*run)(void);
};

/* For what hangs: a hundred times what the slowest test needs on a machine that does nothing else. */
enum { test_default_limit_s = 60 };

/* TEST(name, "134 118") { ... }: names are unique over the whole tree, sentences with underscores. */
#define TEST(_name, _rules) TEST_LIMIT(_name, _rules, test_default_limit_s)
#define TEST_LIMIT(_name, _rules, _limit_s)                                                                                \
    static void test_##_name(void);                                                                                        \
    static const struct test test_record_##_name = {#_name, _rules, __FILE__, __LINE__, _limit_s, test_##_name};           \
    static const struct test *const test_entry_##_name __attribute__((used, section("crl_tests"))) = &test_record_##_name; \
    static void test_##_name(void)

#define EXPECT(_condition) ((_condition) ? (void)0 : test_failed(__FILE__, __LINE__, "%s", #_condition))
#define REQUIRE(_condition) ((_condition) ? (void)0 : (test_failed(__FILE__, __LINE__, "%s", #_condition), test_end()))
/* Integers, enumerations, booleans and pointers; both values are printed. */
#define EXPECT_EQ(_actual, _expected) test_expect_equal(__FILE__, __LINE__, #_actual, (long long)(_actual), (long long)(_expected))
#define EXPECT_STR(_actual, _expected) test_expect_text(__FILE__, __LINE__, #_actual, _actual, _expected)
#define EXPECT_NEAR(_actual, _expected, _tolerance) test_expect_near(__FILE__, __LINE__, #_actual, _actual, _expected, _tolerance)
#define FAIL(_text) (test_failed(__FILE__, __LINE__, "%s", _text), test_end())
#define SKIP(_reason) test_skip(_reason)

/* EXPECT_STOPS("CFRelease: ", { CFRelease(NULL); }): in a forked child the statements abort, and stderr contains the fragment. */
#define EXPECT_STOPS(_fragment, ...)                     \
    do {                                                 \
        if (test_stops_begin()) {                        \
            __VA_ARGS__;                                 \
            test_stops_survived();                       \
        }                                                \
        test_stops_check(__FILE__, __LINE__, _fragment); \
    } while (0)

/* What happened, in order, joined with spaces. Zero-initialize: `struct trace t = {0};`. Any thread. */
struct trace {
    atomic_flag lock;
    bool is_full; /* guarded by lock, as all that follows */
    size_t length;
    char text[16384];
};

void trace_add(struct trace *trace, const char *event);
void trace_addf(struct trace *trace, const char *format, ...) __attribute__((format(printf, 2, 3)));
void trace_clear(struct trace *trace);
#define EXPECT_TRACE(_trace, _expected) test_expect_trace(__FILE__, __LINE__, _trace, _expected)

/* For a test that leaves something on purpose: how many descriptors and objects may be there at its end beyond those at its start. */
void test_allow_left(int descriptors, long objects);

/* Seconds a wait in a test may take before it is a failure, stretched under sanitizers and valgrind. */
double test_patience_s(void);
/* True under sanitizers and valgrind: for tests that measure, or count system calls. */
bool test_is_instrumented(void);

/* True in `make soak`, which runs the tests whose names begin with `stress_`, at full length. */
bool test_is_soak(void);

/* Ends the test as skipped where its process may not have that many descriptors. */
void test_need_descriptors(int count);

/* What the kernel says of a thread of this process: 'R' runs, 'S' sleeps, 'Z' has ended. 0 where there is none. */
char test_thread_state(pid_t thread);

/* Defined by whoever keeps something until the process ends: gives it back, so that leaks can be told from it. */
void testing_give_back(void) __attribute__((weak));

/* Called before each test, in its process. */
void testing_prepare(void) __attribute__((weak));

/* Behind the macros. */
void test_failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void test_end(void) __attribute__((noreturn));
void test_skip(const char *reason) __attribute__((noreturn));
void test_expect_equal(const char *file, int line, const char *what, long long actual, long long expected);
void test_expect_text(const char *file, int line, const char *what, const char *actual, const char *expected);
void test_expect_near(const char *file, int line, const char *what, double actual, double expected, double tolerance);
void test_expect_trace(const char *file, int line, struct trace *trace, const char *expected);
bool test_stops_begin(void);
void test_stops_survived(void) __attribute__((noreturn));
void test_stops_check(const char *file, int line, const char *fragment);

#endif
