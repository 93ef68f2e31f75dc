// SPDX-License-Identifier: Apache-2.0
//
// A program's closures and methods that may belong to a global actor, as ones that a loop's thread calls. Swift itself calls what has an
// actor by way of a task only, which a callback has not; but the thread may be the actor's all the same, which is looked at in each call.
// What has no actor is called as it is. A function's actor is among what it captures, and changes nothing of how it is called: so the casts
// below, which take the actor out of its type.

import CoreRunLoopShims

extension Actor {
    /// Stops the process if the calling thread is not this actor's: with a sentence, where the runtime would have none.
    fileprivate nonisolated func requireCurrent() {
        let isKnownStray =
            self is MainActor ? !shim_is_main_thread() : (self as? any RunLoopActor)?.runLoop.isIsolatingCurrentContext() == false
        if isKnownStray { fault("a closure or a method of \(Self.self)'s was called on a thread that is not the actor's") }
        preconditionIsolated()
    }
}

/// `closure`, which stops the process in the place of being called on a thread that is not its actor's.
func checked<Argument, Result>(_ closure: @escaping @isolated(any) @Sendable (Argument) -> Result) -> @Sendable (Argument) -> Result {
    let call = unsafe unsafeBitCast(closure, to: (@Sendable (Argument) -> Result).self)
    guard let actor = closure.isolation else { return call }
    return { argument in
        actor.requireCurrent()
        return call(argument)
    }
}

/// The same of a timer's. Here and in the next four a structure is cast: a function by itself would be called by way of two others.
func checked(_ closure: @escaping @isolated(any) @Sendable (Timer) -> Void) -> @Sendable (Timer) -> Void {
    struct Bound { let call: @isolated(any) @Sendable (Timer) -> Void }
    struct Unbound { let call: @Sendable (Timer) -> Void }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let actor = closure.isolation else { return call }
    return { timer in
        actor.requireCurrent()
        call(timer)
    }
}

/// The same of an observer's.
func checked(
    _ closure: @escaping @isolated(any) @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void
) -> @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void {
    struct Bound { let call: @isolated(any) @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void }
    struct Unbound { let call: @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let actor = closure.isolation else { return call }
    return { observer, activity in
        actor.requireCurrent()
        call(observer, activity)
    }
}

private struct BoundToCommands<Command> { let call: @isolated(any) @Sendable ([Command]) -> Void }
private struct UnboundToCommands<Command> { let call: @Sendable ([Command]) -> Void }

/// The same of an input source's.
func checked<Command>(_ closure: @escaping @isolated(any) @Sendable ([Command]) -> Void) -> @Sendable ([Command]) -> Void {
    let call = unsafe unsafeBitCast(BoundToCommands(call: closure), to: UnboundToCommands<Command>.self).call
    guard let actor = closure.isolation else { return call }
    return { commands in
        actor.requireCurrent()
        call(commands)
    }
}

/// The same of one that answers requests with arrays.
func checked(
    _ closure: @escaping @isolated(any) @Sendable (Int32, [UInt8]) -> [UInt8]?
) -> @Sendable (Int32, [UInt8]) -> [UInt8]? {
    struct Bound { let call: @isolated(any) @Sendable (Int32, [UInt8]) -> [UInt8]? }
    struct Unbound { let call: @Sendable (Int32, [UInt8]) -> [UInt8]? }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let actor = closure.isolation else { return call }
    return { number, bytes in
        actor.requireCurrent()
        return call(number, bytes)
    }
}

/// The same of one that answers them where they lie.
func checked(
    _ closure: @escaping @isolated(any) @Sendable (Int32, RawSpan, inout MessagePort.Reply) -> Void
) -> @Sendable (Int32, RawSpan, inout MessagePort.Reply) -> Void {
    struct Bound { let call: @isolated(any) @Sendable (Int32, RawSpan, inout MessagePort.Reply) -> Void }
    struct Unbound { let call: @Sendable (Int32, RawSpan, inout MessagePort.Reply) -> Void }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let actor = closure.isolation else { return call }
    return { number, bytes, reply in
        actor.requireCurrent()
        call(number, bytes, &reply)
    }
}

/// The same of one with two parameters.
func checked<First, Second>(_ closure: @escaping @isolated(any) @Sendable (First, Second) -> Void) -> @Sendable (First, Second) -> Void {
    let call = unsafe unsafeBitCast(closure, to: (@Sendable (First, Second) -> Void).self)
    guard let actor = closure.isolation else { return call }
    return { first, second in
        actor.requireCurrent()
        call(first, second)
    }
}

/// The same of one without parameters, by way of a structure as well: most are queued, and each such way would cost an allocation.
func checked(_ closure: @escaping @isolated(any) @Sendable () -> Void) -> @Sendable () -> Void {
    struct Bound { let call: @isolated(any) @Sendable () -> Void }
    struct Unbound { let call: @Sendable () -> Void }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let actor = closure.isolation else { return call }
    return {
        actor.requireCurrent()
        call()
    }
}

/// The same of one that may throw.
func checked<Result>(_ closure: @escaping @isolated(any) @Sendable () throws -> Result) -> @Sendable () throws -> Result {
    let call = unsafe unsafeBitCast(closure, to: (@Sendable () throws -> Result).self)
    guard let actor = closure.isolation else { return call }
    return {
        actor.requireCurrent()
        return try call()
    }
}

/// A timer's closure of one thread's own: its actor, which may be that of the code around it, may have the thread for a job only.
func checkedOwn(_ closure: @escaping @isolated(any) (Timer) -> Void) -> (Timer) -> Void {
    struct Bound { let call: @isolated(any) (Timer) -> Void }
    struct Unbound { let call: (Timer) -> Void }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let actor = closure.isolation else { return call }
    return { timer in
        actor.requireCurrent()
        call(timer)
    }
}

/// The same of an observer's.
func checkedOwn(
    _ closure: @escaping @isolated(any) (RunLoop.Observer, RunLoop.Activity) -> Void
) -> (RunLoop.Observer, RunLoop.Activity) -> Void {
    struct Bound { let call: @isolated(any) (RunLoop.Observer, RunLoop.Activity) -> Void }
    struct Unbound { let call: (RunLoop.Observer, RunLoop.Activity) -> Void }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let actor = closure.isolation else { return call }
    return { observer, activity in
        actor.requireCurrent()
        call(observer, activity)
    }
}

/// Calls a method, or stops the process on a thread that is not its actor's.
func call<Argument>(_ method: @escaping @isolated(any) (Argument) -> Void, with argument: Argument) {
    method.isolation?.requireCurrent()
    unsafe unsafeBitCast(method, to: ((Argument) -> Void).self)(argument)
}

/// The same of one without parameters.
func call(_ method: @escaping @isolated(any) () -> Void) {
    method.isolation?.requireCurrent()
    unsafe unsafeBitCast(method, to: (() -> Void).self)()
}
