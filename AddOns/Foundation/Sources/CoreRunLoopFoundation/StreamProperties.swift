// SPDX-License-Identifier: Apache-2.0
//
// Values of streams' properties: Foundation's objects as objects of this package's C library, and back.

import CoreRunLoop
import Foundation

private func uncounted<Object>(_ object: Object) -> CFTypeRef { unsafe unsafeBitCast(object, to: CFTypeRef.self) }

/// A new reference to what `object` is in C; `nil` for a type that no property has. A value of a type with raw values, such as
/// `StreamSocketSecurityLevel`, is its raw value, as on Darwin.
private func copied(_ object: Any) -> CFTypeRef? {
    switch object {
    case let text as String: return unsafe retained(text.cfString)
    case let data as Data: return unsafe retained(data.cfData)
    case is NSNull: return unsafe retained(kCFNull)
    case let number as NSNumber: return unsafe copied(number)
    case let list as [Any]: return unsafe copied(list)
    case let table as [AnyHashable: Any]: return unsafe copied(table)
    case let named as any RawRepresentable: return unsafe copied(named.rawValue)
    default: return nil
    }
}

private func retained<Object>(_ object: Object) -> CFTypeRef {
    unsafe withExtendedLifetime(object) { unsafe CFRetain(uncounted(object)) }
}

private func copied(_ number: NSNumber) -> CFTypeRef? {
    switch unsafe String(cString: number.objCType) {
    case "c": return unsafe retained(number.boolValue ? kCFBooleanTrue : kCFBooleanFalse)
    case "d", "f":
        var value = number.doubleValue
        let made: CFNumber? = unsafe CFNumberCreate(nil, .doubleType, &value)
        return unsafe made.map { unsafe retained($0) }
    default:
        var value = number.int64Value
        let made: CFNumber? = unsafe CFNumberCreate(nil, .sInt64Type, &value)
        return unsafe made.map { unsafe retained($0) }
    }
}

private func copied(_ list: [Any]) -> CFTypeRef? {
    let array = unsafe withUnsafePointer(to: kCFTypeArrayCallBacks) { unsafe CFArrayCreateMutable(nil, 0, $0) }
    guard let array else { return nil }
    for element in list {
        guard let value = unsafe copied(element) else { return nil }
        unsafe CFArrayAppendValue(array, value)
        unsafe CFRelease(value)
    }
    return unsafe retained(array)
}

private func copied(_ table: [AnyHashable: Any]) -> CFTypeRef? {
    let made = unsafe withUnsafePointer(to: kCFTypeDictionaryKeyCallBacks) { keys in
        unsafe withUnsafePointer(to: kCFTypeDictionaryValueCallBacks) { values in unsafe CFDictionaryCreateMutable(nil, 0, keys, values) }
    }
    guard let made else { return nil }
    for (key, element) in table {
        guard let name = key.base as? String ?? (key.base as? any RawRepresentable)?.rawValue as? String,
            let value = unsafe copied(element)
        else { return nil }
        let text = name.cfString
        withExtendedLifetime(text) { unsafe CFDictionarySetValue(made, uncounted(text), value) }
        unsafe CFRelease(value)
    }
    return unsafe retained(made)
}

/// Calls `use` with what `object` is in C. Returns false for a type that no property has.
func withCFObject(_ object: AnyObject?, _ use: (CFTypeRef?) -> Bool) -> Bool {
    guard let object else { return use(nil) }
    guard let value = unsafe copied(object) else { return false }
    defer { unsafe CFRelease(value) }
    return unsafe use(value)
}

/// What `value` is in Foundation; `nil` for other types than text, data, numbers and arrays of them. Releases `value`.
func foundationObject(taking value: CFTypeRef?) -> AnyObject? {
    guard let value = unsafe value else { return nil }
    defer { unsafe CFRelease(value) }
    return unsafe foundationObject(value)
}

private func foundationObject(_ value: CFTypeRef) -> AnyObject? {
    switch unsafe CFGetTypeID(value) {
    case CFStringGetTypeID(): return unsafe NSString(string: String(unsafeBitCast(value, to: CFString.self)))
    case CFDataGetTypeID(): return unsafe NSData(data: Data(unsafeBitCast(value, to: CFData.self)))
    case CFBooleanGetTypeID(): return unsafe NSNumber(value: CFBooleanGetValue(unsafeBitCast(value, to: CFBoolean.self)))
    case CFNumberGetTypeID():
        let number = unsafe unsafeBitCast(value, to: CFNumber.self)
        var (whole, real): (Int64, Double) = (0, 0)
        if CFNumberIsFloatType(number) {
            unsafe CFNumberGetValue(number, .doubleType, &real)
            return NSNumber(value: real)
        }
        unsafe CFNumberGetValue(number, .sInt64Type, &whole)
        return NSNumber(value: whole)
    case CFArrayGetTypeID():
        let array = unsafe unsafeBitCast(value, to: CFArray.self)
        let elements = (0..<CFArrayGetCount(array)).map { index in
            unsafe CFArrayGetValueAtIndex(array, index).flatMap { unsafe foundationObject($0) }
        }
        return NSArray(array: elements.compactMap { $0 })
    default: return nil
    }
}
