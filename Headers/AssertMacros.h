/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * The checking macros of Apple's AssertMacros.h, which many of Apple's samples use.
 *
 * A `check` reports a condition that does not hold and goes on; a `verify` does the same and evaluates its expression in every build; a
 * `require` jumps to a label. `_noErr` forms take an OSStatus or errno value that should be 0, `_action` forms run a statement first,
 * `_quiet` forms report nothing, `_string` forms report a message of the caller's; `n` forms take the opposite condition.
 *
 * Reports go to standard error and only where DEBUG_ASSERT_PRODUCTION_CODE is defined as 0 before the include; its default is 1. Every
 * macro exists with two leading underscores; the names without them are defined unless __ASSERT_MACROS_DEFINE_VERSIONS_WITHOUT_UNDERSCORES
 * is defined as 0.
 */

#if !defined(__ASSERTMACROS__)
#define __ASSERTMACROS__ 1

#include <stdio.h>

#if !defined(DEBUG_ASSERT_PRODUCTION_CODE)
#define DEBUG_ASSERT_PRODUCTION_CODE 1
#endif
#if !defined(DEBUG_ASSERT_COMPONENT_NAME_STRING)
#define DEBUG_ASSERT_COMPONENT_NAME_STRING ""
#endif
#if !defined(__ASSERT_MACROS_DEFINE_VERSIONS_WITHOUT_UNDERSCORES)
#define __ASSERT_MACROS_DEFINE_VERSIONS_WITHOUT_UNDERSCORES 1
#endif

/** Prints the failed assertion. A program may define its own macro before the include. */
#if !defined(DEBUG_ASSERT_MESSAGE)
#define DEBUG_ASSERT_MESSAGE(componentNameString, assertionString, exceptionLabelString, errorString, fileName, lineNumber, errorCode) \
    ((void)fprintf(stderr, "AssertMacros: %s%s%s, %s%s%s file: %s, line: %d, value: %ld\n", (componentNameString),                     \
                   *(componentNameString) ? ": " : "", (assertionString), (exceptionLabelString), *(exceptionLabelString) ? " " : "",  \
                   (errorString), (fileName), (int)(lineNumber), (long)(errorCode)))
#endif

/* Reports in debug builds, and does nothing in production. */
#if DEBUG_ASSERT_PRODUCTION_CODE
#define CRL_ASSERT_REPORT(_assertion, _label, _text, _code) ((void)0)
#else
#define CRL_ASSERT_REPORT(_assertion, _label, _text, _code) \
    DEBUG_ASSERT_MESSAGE(DEBUG_ASSERT_COMPONENT_NAME_STRING, _assertion, _label, _text, __FILE__, __LINE__, _code)
#endif

/* Return whether a condition holds, or a code is 0, and report if not. Each evaluates its argument once. */
#define CRL_ASSERT_HOLDS(_condition, _assertion, _label, _text) \
    (__builtin_expect(!!(_condition), 1) ? 1 : (CRL_ASSERT_REPORT(_assertion, _label, _text, 0), 0))
#define CRL_ASSERT_IS_ZERO(_code, _assertion, _label, _text)        \
    (__extension__({                                                \
        long crl_code = (long)(_code);                              \
        if (__builtin_expect(crl_code != 0, 0)) {                   \
            CRL_ASSERT_REPORT(_assertion, _label, _text, crl_code); \
        }                                                           \
        crl_code == 0;                                              \
    }))

/* The consequences of a failure. The action of a verify may be `break` or `continue`, so no loop surrounds it. */
#define CRL_ASSERT_ONLY(_holds) \
    do {                        \
        (void)(_holds);         \
    } while (0)
#define CRL_ASSERT_ELSE(_holds, _action) \
    if (!(_holds)) {                     \
        _action;                         \
    } else                               \
        do {                             \
        } while (0)
#define CRL_ASSERT_OR_GOTO(_holds, _label, _action) \
    do {                                            \
        if (!(_holds)) {                            \
            {                                       \
                _action;                            \
            }                                       \
            goto _label;                            \
        }                                           \
    } while (0)

/* In production a check does not even evaluate its condition. */
#if DEBUG_ASSERT_PRODUCTION_CODE
#define CRL_ASSERT_CHECK(_holds) \
    do {                         \
    } while (0)
#else
#define CRL_ASSERT_CHECK(_holds) CRL_ASSERT_ONLY(_holds)
#endif

/** Reports a message. */
#define __Debug_String(message) CRL_ASSERT_REPORT(message, "", "", 0)
/** Reports when `assertion` does not hold; not evaluated in production. */
#define __Check(assertion) CRL_ASSERT_CHECK(CRL_ASSERT_HOLDS(assertion, #assertion, "", ""))
/** Reports when `assertion` holds. */
#define __nCheck(assertion) __Check(!(assertion))
/** Like __Check, with a message. */
#define __Check_String(assertion, message) CRL_ASSERT_CHECK(CRL_ASSERT_HOLDS(assertion, #assertion, "", message))
/** Like __nCheck, with a message. */
#define __nCheck_String(assertion, message) __Check_String(!(assertion), message)
/** Reports when `errorCode` is not 0; not evaluated in production. */
#define __Check_noErr(errorCode) CRL_ASSERT_CHECK(CRL_ASSERT_IS_ZERO(errorCode, #errorCode " == 0", "", ""))
/** Like __Check_noErr, with a message. */
#define __Check_noErr_String(errorCode, message) CRL_ASSERT_CHECK(CRL_ASSERT_IS_ZERO(errorCode, #errorCode " == 0", "", message))
/** Evaluates `assertion` in every build, and reports when it does not hold. */
#define __Verify(assertion) CRL_ASSERT_ONLY(CRL_ASSERT_HOLDS(assertion, #assertion, "", ""))
/** Evaluates `assertion`, and reports when it holds. */
#define __nVerify(assertion) __Verify(!(assertion))
/** Like __Verify, with a message. */
#define __Verify_String(assertion, message) CRL_ASSERT_ONLY(CRL_ASSERT_HOLDS(assertion, #assertion, "", message))
/** Like __nVerify, with a message. */
#define __nVerify_String(assertion, message) __Verify_String(!(assertion), message)
/** Evaluates `errorCode` in every build, and reports when it is not 0. */
#define __Verify_noErr(errorCode) CRL_ASSERT_ONLY(CRL_ASSERT_IS_ZERO(errorCode, #errorCode " == 0", "", ""))
/** Like __Verify_noErr, with a message. */
#define __Verify_noErr_String(errorCode, message) CRL_ASSERT_ONLY(CRL_ASSERT_IS_ZERO(errorCode, #errorCode " == 0", "", message))
/** Like __Verify, and runs `action` when it does not hold. */
#define __Verify_Action(assertion, action) CRL_ASSERT_ELSE(CRL_ASSERT_HOLDS(assertion, #assertion, "", ""), action)
/** Like __Verify_noErr, and runs `action` when it is not 0. */
#define __Verify_noErr_Action(errorCode, action) CRL_ASSERT_ELSE(CRL_ASSERT_IS_ZERO(errorCode, #errorCode " == 0", "", ""), action)
/** Jumps to `exceptionLabel` when `assertion` does not hold. */
#define __Require(assertion, exceptionLabel) \
    CRL_ASSERT_OR_GOTO(CRL_ASSERT_HOLDS(assertion, #assertion, #exceptionLabel, ""), exceptionLabel, (void)0)
/** Jumps to `exceptionLabel` when `assertion` holds. */
#define __nRequire(assertion, exceptionLabel) __Require(!(assertion), exceptionLabel)
/** Like __Require, running `action` first. */
#define __Require_Action(assertion, exceptionLabel, action) \
    CRL_ASSERT_OR_GOTO(CRL_ASSERT_HOLDS(assertion, #assertion, #exceptionLabel, ""), exceptionLabel, action)
/** Like __nRequire, running `action` first. */
#define __nRequire_Action(assertion, exceptionLabel, action) __Require_Action(!(assertion), exceptionLabel, action)
/** Like __Require, without a report. */
#define __Require_Quiet(assertion, exceptionLabel) CRL_ASSERT_OR_GOTO(assertion, exceptionLabel, (void)0)
/** Like __nRequire, without a report. */
#define __nRequire_Quiet(assertion, exceptionLabel) __Require_Quiet(!(assertion), exceptionLabel)
/** Like __Require_Action, without a report. */
#define __Require_Action_Quiet(assertion, exceptionLabel, action) CRL_ASSERT_OR_GOTO(assertion, exceptionLabel, action)
/** Like __nRequire_Action, without a report. */
#define __nRequire_Action_Quiet(assertion, exceptionLabel, action) __Require_Action_Quiet(!(assertion), exceptionLabel, action)
/** Like __Require, with a message. */
#define __Require_String(assertion, exceptionLabel, message) \
    CRL_ASSERT_OR_GOTO(CRL_ASSERT_HOLDS(assertion, #assertion, #exceptionLabel, message), exceptionLabel, (void)0)
/** Like __nRequire, with a message. */
#define __nRequire_String(assertion, exceptionLabel, message) __Require_String(!(assertion), exceptionLabel, message)
/** Like __Require_Action, with a message. */
#define __Require_Action_String(assertion, exceptionLabel, action, message) \
    CRL_ASSERT_OR_GOTO(CRL_ASSERT_HOLDS(assertion, #assertion, #exceptionLabel, message), exceptionLabel, action)
/** Like __nRequire_Action, with a message. */
#define __nRequire_Action_String(assertion, exceptionLabel, action, message) \
    __Require_Action_String(!(assertion), exceptionLabel, action, message)
/** Jumps to `exceptionLabel` when `errorCode` is not 0. */
#define __Require_noErr(errorCode, exceptionLabel) \
    CRL_ASSERT_OR_GOTO(CRL_ASSERT_IS_ZERO(errorCode, #errorCode " == 0", #exceptionLabel, ""), exceptionLabel, (void)0)
/** Like __Require_noErr, running `action` first. */
#define __Require_noErr_Action(errorCode, exceptionLabel, action) \
    CRL_ASSERT_OR_GOTO(CRL_ASSERT_IS_ZERO(errorCode, #errorCode " == 0", #exceptionLabel, ""), exceptionLabel, action)
/** Like __Require_noErr, without a report. */
#define __Require_noErr_Quiet(errorCode, exceptionLabel) CRL_ASSERT_OR_GOTO((errorCode) == 0, exceptionLabel, (void)0)
/** Like __Require_noErr_Action, without a report. */
#define __Require_noErr_Action_Quiet(errorCode, exceptionLabel, action) CRL_ASSERT_OR_GOTO((errorCode) == 0, exceptionLabel, action)
/** Like __Require_noErr, with a message. */
#define __Require_noErr_String(errorCode, exceptionLabel, message) \
    CRL_ASSERT_OR_GOTO(CRL_ASSERT_IS_ZERO(errorCode, #errorCode " == 0", #exceptionLabel, message), exceptionLabel, (void)0)
/** Like __Require_noErr_Action, with a message. */
#define __Require_noErr_Action_String(errorCode, exceptionLabel, action, message) \
    CRL_ASSERT_OR_GOTO(CRL_ASSERT_IS_ZERO(errorCode, #errorCode " == 0", #exceptionLabel, message), exceptionLabel, action)

#if __ASSERT_MACROS_DEFINE_VERSIONS_WITHOUT_UNDERSCORES
#define debug_string(message) __Debug_String(message)
#define check(assertion) __Check(assertion)
#define ncheck(assertion) __nCheck(assertion)
#define check_string(assertion, message) __Check_String(assertion, message)
#define ncheck_string(assertion, message) __nCheck_String(assertion, message)
#define check_noerr(errorCode) __Check_noErr(errorCode)
#define check_noerr_string(errorCode, message) __Check_noErr_String(errorCode, message)
#define verify(assertion) __Verify(assertion)
#define nverify(assertion) __nVerify(assertion)
#define verify_string(assertion, message) __Verify_String(assertion, message)
#define nverify_string(assertion, message) __nVerify_String(assertion, message)
#define verify_noerr(errorCode) __Verify_noErr(errorCode)
#define verify_noerr_string(errorCode, message) __Verify_noErr_String(errorCode, message)
#define verify_action(assertion, action) __Verify_Action(assertion, action)
#define verify_noerr_action(errorCode, action) __Verify_noErr_Action(errorCode, action)
#define require(assertion, exceptionLabel) __Require(assertion, exceptionLabel)
#define nrequire(assertion, exceptionLabel) __nRequire(assertion, exceptionLabel)
#define require_action(assertion, exceptionLabel, action) __Require_Action(assertion, exceptionLabel, action)
#define nrequire_action(assertion, exceptionLabel, action) __nRequire_Action(assertion, exceptionLabel, action)
#define require_quiet(assertion, exceptionLabel) __Require_Quiet(assertion, exceptionLabel)
#define nrequire_quiet(assertion, exceptionLabel) __nRequire_Quiet(assertion, exceptionLabel)
#define require_action_quiet(assertion, exceptionLabel, action) __Require_Action_Quiet(assertion, exceptionLabel, action)
#define nrequire_action_quiet(assertion, exceptionLabel, action) __nRequire_Action_Quiet(assertion, exceptionLabel, action)
#define require_string(assertion, exceptionLabel, message) __Require_String(assertion, exceptionLabel, message)
#define nrequire_string(assertion, exceptionLabel, message) __nRequire_String(assertion, exceptionLabel, message)
#define require_action_string(assertion, exceptionLabel, action, message) \
    __Require_Action_String(assertion, exceptionLabel, action, message)
#define nrequire_action_string(assertion, exceptionLabel, action, message) \
    __nRequire_Action_String(assertion, exceptionLabel, action, message)
#define require_noerr(errorCode, exceptionLabel) __Require_noErr(errorCode, exceptionLabel)
#define require_noerr_action(errorCode, exceptionLabel, action) __Require_noErr_Action(errorCode, exceptionLabel, action)
#define require_noerr_quiet(errorCode, exceptionLabel) __Require_noErr_Quiet(errorCode, exceptionLabel)
#define require_noerr_action_quiet(errorCode, exceptionLabel, action) __Require_noErr_Action_Quiet(errorCode, exceptionLabel, action)
#define require_noerr_string(errorCode, exceptionLabel, message) __Require_noErr_String(errorCode, exceptionLabel, message)
#define require_noerr_action_string(errorCode, exceptionLabel, action, message) \
    __Require_noErr_Action_String(errorCode, exceptionLabel, action, message)
#endif

#endif /* ! __ASSERTMACROS__ */
