// SPDX-License-Identifier: Apache-2.0
//
// Lets a loop's thread call the program's closures and methods that may belong to an actor.
//
// The calling thread has no task, but it may be the actor's: in a run inside one of the actor's jobs, or because the actor's executor says
// so. There the closure is called at once. Elsewhere it is sent to the actor, in a task, if it may leave its thread; the calls
// for one actor keep their order. A closure that must stay on its thread stops the process with a sentence.
//
// Swift promises two calls of an `@isolated(any)` function: `await` in a task, which is how closures are sent, and `Task.immediate`, which
// allocates a task for each call and cannot hand over a borrowed argument. A direct call from the actor's own context is a future direction
// of SE-0431. Until it is there, the casts below remove `@isolated(any)` from the type, as the standard library's `assumeIsolated` removes
// `@MainActor`: a function's actor is one of its captures, and no part of its calling convention. IsolationTests.swift calls through them.

import CoreRunLoopShims

/// The actor of a closure, and the question whether the calling thread may use the actor's state at once.
struct Home: Sendable {
    private let actor: any Actor
    /// The loop of an actor of the overlay's kind, which knows its thread.
    private let runLoop: RunLoop?

    init?(_ actor: (any Actor)?) {
        guard let actor else { return nil }
        self.actor = actor
        runLoop = (actor as? any RunLoopActor)?.runLoop
    }

    private enum Answer { case inside, outside, unknown }

    /// Asks the actor's executor, without stopping the process.
    private var answer: Answer {
        if let runLoop { return runLoop.isIsolatingCurrentContext() == true ? .inside : .outside }
        return unsafe withUnsafeBytes(of: actor.unownedExecutor) { words in
            switch unsafe Int(shim_executor_isolates(words.baseAddress, words.count, actor is MainActor)) {
            case SHIM_ISOLATED: .inside
            case SHIM_NOT_ISOLATED: .outside
            default: .unknown
            }
        }
    }

    /// Whether the calling thread is in the actor's isolation. An executor that cannot say so without a stop counts as elsewhere.
    var isHere: Bool { answer == .inside }

    /// Stops the process if the calling thread is not in the actor's isolation.
    func requireHere(_ what: StaticString) {
        switch answer {
        case .inside: break
        case .outside: fault(stray(what))
        case .unknown: actor.preconditionIsolated(stray(what))  // the executor's own check, which stops the process
        }
    }

    /// Has a task call `call`, which awaits a closure of the actor's. Calls for one actor keep their order.
    func send(_ call: @escaping @Sendable () async -> Void) { Outbox.send(to: ObjectIdentifier(actor), call) }

    private func stray(_ what: StaticString) -> String {
        let place = Thread.current.title
        return "\(what) of the actor \(type(of: actor)) was called on \(place), which is not the actor's, and cannot be sent there"
    }
}

extension Thread {
    /// The thread in a sentence.
    fileprivate var title: String {
        let name = name ?? ""
        return "thread \(shim_thread_id())" + (name.isEmpty ? "" : " \"\(name)\"")
    }
}

/// The calls that were made outside of their actors. One task at a time takes the calls of an actor to it, in their order.
private enum Outbox {
    private static let waiting = Mutex<[ObjectIdentifier: [@Sendable () async -> Void]]>([:])

    static func send(to actor: ObjectIdentifier, _ call: @escaping @Sendable () async -> Void) {
        let begins = waiting.withLock { waiting in
            let isFirst = waiting[actor] == nil
            waiting[actor, default: []].append(call)
            return isFirst
        }
        if begins { Task { while let batch = takeBatch(actor) { for call in batch { await call() } } } }
    }

    /// The entry stays, and keeps others from beginning, until nothing is left to take.
    private static func takeBatch(_ actor: ObjectIdentifier) -> [@Sendable () async -> Void]? {
        waiting.withLock { waiting in
            guard let batch = waiting[actor], !batch.isEmpty else {
                waiting[actor] = nil
                return nil
            }
            waiting[actor] = []
            return batch
        }
    }
}

/// Returns a closure that calls `closure` in its actor's isolation.
func onActorOf<Argument: Sendable>(
    _ closure: @escaping @isolated(any) @Sendable (Argument) -> Void
) -> @Sendable (Argument) -> Void {
    let call = unsafe unsafeBitCast(closure, to: (@Sendable (Argument) -> Void).self)
    guard let home = Home(closure.isolation) else { return call }
    return { argument in if home.isHere { call(argument) } else { home.send { await closure(argument) } } }
}

/// The overload for timers. Like the next four it casts a structure, because a cast function would be called through two thunks.
func onActorOf(_ closure: @escaping @isolated(any) @Sendable (Timer) -> Void) -> @Sendable (Timer) -> Void {
    struct Bound { let call: @isolated(any) @Sendable (Timer) -> Void }
    struct Unbound { let call: @Sendable (Timer) -> Void }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let home = Home(closure.isolation) else { return call }
    return { argument in if home.isHere { call(argument) } else { home.send { await closure(argument) } } }
}

/// The overload for observers.
func onActorOf(
    _ closure: @escaping @isolated(any) @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void
) -> @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void {
    struct Bound { let call: @isolated(any) @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void }
    struct Unbound { let call: @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let home = Home(closure.isolation) else { return call }
    return { first, second in if home.isHere { call(first, second) } else { home.send { await closure(first, second) } } }
}

private struct BoundToCommands<Command> { let call: @isolated(any) @Sendable ([Command]) -> Void }
private struct UnboundToCommands<Command> { let call: @Sendable ([Command]) -> Void }

/// The overload for input sources.
func onActorOf<Command: Sendable>(_ closure: @escaping @isolated(any) @Sendable ([Command]) -> Void) -> @Sendable ([Command]) -> Void {
    let call = unsafe unsafeBitCast(BoundToCommands(call: closure), to: UnboundToCommands<Command>.self).call
    guard let home = Home(closure.isolation) else { return call }
    return { argument in if home.isHere { call(argument) } else { home.send { await closure(argument) } } }
}

/// The overload for two parameters.
func onActorOf<First: Sendable, Second: Sendable>(
    _ closure: @escaping @isolated(any) @Sendable (First, Second) -> Void
) -> @Sendable (First, Second) -> Void {
    let call = unsafe unsafeBitCast(closure, to: (@Sendable (First, Second) -> Void).self)
    guard let home = Home(closure.isolation) else { return call }
    return { first, second in if home.isHere { call(first, second) } else { home.send { await closure(first, second) } } }
}

/// The overload without parameters. It casts a structure too: most such closures are queued, and each thunk would cost an allocation.
func onActorOf(_ closure: @escaping @isolated(any) @Sendable () -> Void) -> @Sendable () -> Void {
    struct Bound { let call: @isolated(any) @Sendable () -> Void }
    struct Unbound { let call: @Sendable () -> Void }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let home = Home(closure.isolation) else { return call }
    return { if home.isHere { call() } else { home.send { await closure() } } }
}

/// The overload for the answers of requests, which are wanted before the call returns: elsewhere the process stops.
func answeringOnActorOf(
    _ closure: @escaping @isolated(any) @Sendable (Int32, [UInt8]) -> [UInt8]?
) -> @Sendable (Int32, [UInt8]) -> [UInt8]? {
    struct Bound { let call: @isolated(any) @Sendable (Int32, [UInt8]) -> [UInt8]? }
    struct Unbound { let call: @Sendable (Int32, [UInt8]) -> [UInt8]? }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let home = Home(closure.isolation) else { return call }
    return { number, bytes in
        home.requireHere("a closure for requests")
        return call(number, bytes)
    }
}

/// The overload for request handlers that read the bytes in place.
func answeringOnActorOf(
    _ closure: @escaping @isolated(any) @Sendable (Int32, RawSpan, inout MessagePort.Reply) -> Void
) -> @Sendable (Int32, RawSpan, inout MessagePort.Reply) -> Void {
    struct Bound { let call: @isolated(any) @Sendable (Int32, RawSpan, inout MessagePort.Reply) -> Void }
    struct Unbound { let call: @Sendable (Int32, RawSpan, inout MessagePort.Reply) -> Void }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let home = Home(closure.isolation) else { return call }
    return { number, bytes, reply in
        home.requireHere("a closure for requests")
        call(number, bytes, &reply)
    }
}

/// The overload for one request of a known kind.
func answeringOnActorOf<Request, Reply>(
    _ closure: @escaping @isolated(any) @Sendable (Request) -> Reply
) -> @Sendable (Request) -> Reply {
    let call = unsafe unsafeBitCast(closure, to: (@Sendable (Request) -> Reply).self)
    guard let home = Home(closure.isolation) else { return call }
    return { request in
        home.requireHere("a closure for requests")
        return call(request)
    }
}

/// Returns a closure that calls `work` in its actor's isolation, and then `done` with what came of it. That happens before the closure
/// returns, or later if `work` was sent to its actor.
func finishingOnActorOf<Result: Sendable>(
    _ work: @escaping @isolated(any) @Sendable () throws -> Result,
    _ done: @escaping @Sendable (Swift.Result<Result, any Error>) -> Void
) -> @Sendable () -> Void {
    let call = unsafe unsafeBitCast(work, to: (@Sendable () throws -> Result).self)
    guard let home = Home(work.isolation) else { return { done(.init(catching: call)) } }
    return {
        if home.isHere { return done(.init(catching: call)) }
        home.send { do { done(.success(try await work())) } catch { done(.failure(error)) } }
    }
}

/// Returns a closure for a timer that stays on one thread. The closure's actor may be inferred from the surrounding code, and may occupy
/// the thread only for the length of a job. Elsewhere the process stops: the closure must not leave the thread.
func onActorOfThreadBound(_ closure: @escaping @isolated(any) (Timer) -> Void) -> (Timer) -> Void {
    struct Bound { let call: @isolated(any) (Timer) -> Void }
    struct Unbound { let call: (Timer) -> Void }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let home = Home(closure.isolation) else { return call }
    return { timer in
        home.requireHere("the closure of a timer that stays on its thread,")
        call(timer)
    }
}

/// The overload for observers.
func onActorOfThreadBound(
    _ closure: @escaping @isolated(any) (RunLoop.Observer, RunLoop.Activity) -> Void
) -> (RunLoop.Observer, RunLoop.Activity) -> Void {
    struct Bound { let call: @isolated(any) (RunLoop.Observer, RunLoop.Activity) -> Void }
    struct Unbound { let call: (RunLoop.Observer, RunLoop.Activity) -> Void }
    let call = unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
    guard let home = Home(closure.isolation) else { return call }
    return { observer, activity in
        home.requireHere("the closure of an observer that stays on its thread,")
        call(observer, activity)
    }
}

/// Calls a method, which stays on its thread: elsewhere than in its actor's isolation the process stops.
func call<Argument>(_ method: @escaping @isolated(any) (Argument) -> Void, with argument: Argument) {
    Home(method.isolation)?.requireHere("a method")
    unsafe unsafeBitCast(method, to: ((Argument) -> Void).self)(argument)
}

/// Calls a method without parameters, in the same way.
func call(_ method: @escaping @isolated(any) () -> Void) {
    Home(method.isolation)?.requireHere("a method")
    unsafe unsafeBitCast(method, to: (() -> Void).self)()
}

/// Calls a method in its actor's isolation, or sends the call there.
func callOrSend<Target: Sendable, Argument: Sendable>(
    _ method: @escaping @Sendable (Target) -> @isolated(any) (Argument) -> Void, of target: Target, with argument: Argument
) {
    let bound = method(target)
    if let home = Home(bound.isolation), !home.isHere {
        home.send { await method(target)(argument) }
    } else {
        unsafe unsafeBitCast(bound, to: ((Argument) -> Void).self)(argument)
    }
}

/// Calls a method without parameters in its actor's isolation, or sends the call there.
func callOrSend<Target: Sendable>(_ method: @escaping @Sendable (Target) -> @isolated(any) () -> Void, of target: Target) {
    let bound = method(target)
    if let home = Home(bound.isolation), !home.isHere {
        home.send { await method(target)() }
    } else {
        unsafe unsafeBitCast(bound, to: (() -> Void).self)()
    }
}
