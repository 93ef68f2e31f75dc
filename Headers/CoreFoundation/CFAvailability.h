/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * The availability and enumeration macros that sources written for Apple's systems use.
 *
 * Availability is a statement about Apple's releases and has no meaning here: those macros accept their arguments and expand to nothing.
 * The enumeration macros keep their meaning: a type of a stated width, closed or open, and an option set.
 */

#if !defined(__COREFOUNDATION_CFAVAILABILITY__)
#define __COREFOUNDATION_CFAVAILABILITY__ 1

#include "../TargetConditionals.h"
#if defined(__swift__)
#include "../Swift/CRLSwiftNames.h"
#endif

/* The macros below take a variable number of arguments as Apple's do, of which strict C89 would warn in every file that includes this. */
#pragma GCC system_header

#if !defined(__has_attribute)
#define __has_attribute(x) 0
#endif
#if !defined(__has_include)
#define __has_include(x) 0
#endif

/* Availability: accepted, without effect. */
#if !defined(API_AVAILABLE)
#define API_AVAILABLE(...)
#define API_DEPRECATED(...)
#define API_DEPRECATED_WITH_REPLACEMENT(...)
#define API_UNAVAILABLE(...)
#endif
#define CF_AVAILABLE(_mac, _ios)
#define CF_AVAILABLE_MAC(_mac)
#define CF_AVAILABLE_IOS(_ios)
#define CF_DEPRECATED(_macIntro, _macDep, _iosIntro, _iosDep, ...)
#define CF_DEPRECATED_MAC(_macIntro, _macDep, ...)
#define CF_DEPRECATED_IOS(_iosIntro, _iosDep, ...)
#define CF_ENUM_AVAILABLE(_mac, _ios)
#define CF_ENUM_AVAILABLE_MAC(_mac)
#define CF_ENUM_AVAILABLE_IOS(_ios)
#define CF_ENUM_DEPRECATED(_macIntro, _macDep, _iosIntro, _iosDep, ...)

#if __has_attribute(enum_extensibility)
#define CRL_ENUM_OPEN __attribute__((enum_extensibility(open)))
#define CRL_ENUM_CLOSED __attribute__((enum_extensibility(closed)))
#define CRL_ENUM_FLAGS __attribute__((flag_enum, enum_extensibility(open)))
#else
#define CRL_ENUM_OPEN
#define CRL_ENUM_CLOSED
#define CRL_ENUM_FLAGS
#endif

/*
 * CF_ENUM(type, name) and CF_OPTIONS(type, name), as in `typedef CF_ENUM(SInt32, Colour) { red, green };`.
 * Where the language lets an enumeration have an underlying type (C++11, C23, Swift), the enumeration is that type; elsewhere the typedef
 * is the integer type itself and the enumerators are plain constants, so that sizes agree everywhere. The typedef that comes first takes up
 * the `typedef` before the macro: an enumeration cannot be declared with its type and named in one declaration.
 */
#if defined(__cplusplus)
#define CRL_ENUM_IS_TYPED (__cplusplus >= 201103L)
#elif defined(__swift__)
#define CRL_ENUM_IS_TYPED 1
#elif defined(__STDC_VERSION__)
#define CRL_ENUM_IS_TYPED (__STDC_VERSION__ >= 202311L)
#else
#define CRL_ENUM_IS_TYPED 0
#endif

#if CRL_ENUM_IS_TYPED
#define CRL_ENUM_WITH_TYPE(_attributes, _type, _name) \
    _type CRL_ENUM_JOIN(CRLEnumType, _name);          \
    enum _attributes _name : _type;                   \
    typedef enum _name _name;                         \
    enum _name : _type
#define CRL_ENUM_WITHOUT_NAME(_type) enum : _type
#else
#define CRL_ENUM_WITH_TYPE(_attributes, _type, _name) \
    _type _name;                                      \
    enum
#define CRL_ENUM_WITHOUT_NAME(_type) enum
#endif
#define CRL_ENUM_JOIN(_one, _other) _one##_other

#define CRL_ENUM_CHOOSE(_1, _2, _chosen, ...) _chosen
#define CRL_ENUM_NAMED(_type, _name) CRL_ENUM_WITH_TYPE(CRL_ENUM_OPEN, _type, _name)
#define CF_ENUM(...) CRL_ENUM_CHOOSE(__VA_ARGS__, CRL_ENUM_NAMED, CRL_ENUM_WITHOUT_NAME, 0)(__VA_ARGS__)
#define CF_CLOSED_ENUM(_type, _name) CRL_ENUM_WITH_TYPE(CRL_ENUM_CLOSED, _type, _name)
#if defined(__cplusplus)
/* In C++ an option set is the integer itself, so that `a | b` needs no cast. */
#define CF_OPTIONS(_type, _name) \
    _type _name;                 \
    CRL_ENUM_WITHOUT_NAME(_type)
#else
#define CF_OPTIONS(_type, _name) CRL_ENUM_WITH_TYPE(CRL_ENUM_FLAGS, _type, _name)
#endif

#define CF_STRING_ENUM
#define CF_EXTENSIBLE_STRING_ENUM
#define CF_TYPED_ENUM
#define CF_TYPED_EXTENSIBLE_ENUM

#endif /* ! __COREFOUNDATION_CFAVAILABILITY__ */
