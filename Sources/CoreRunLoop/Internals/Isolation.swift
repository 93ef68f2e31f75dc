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
// of SE-0431. Until it is there, the functions `unbound` remove `@isolated(any)` from the type, as the standard library's
// `assumeIsolated` removes `@MainActor`: a function's actor is one of its captures, and no part of its calling convention.
// IsolationTests.swift calls through them. One that is generic, with a parameter pack, serves most shapes. Seven have casts of their own: a
// closure that passes through a pack gets two thunks and their allocations, which the callouts of a loop would pay each time; packs cannot
// hold an `inout` argument; and with a typed `throws` beside the pack the compiler crashes (Swift 6.3).

import CoreRunLoopShims
import Synchronization

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

// MARK: Removing the isolation from the type

private struct Bound<each Argument, Result> { let call: @isolated(any) (repeat each Argument) -> Result }
private struct Unbound<each Argument, Result> { let call: @Sendable (repeat each Argument) -> Result }

/// Returns the closure without `@isolated(any)`. Its callers see to the isolation, and, if it was not `@Sendable`, to its thread.
private func unboundByThunks<each Argument, Result>(
    _ closure: @escaping @isolated(any) (repeat each Argument) -> Result
) -> @Sendable (repeat each Argument) -> Result {
    unsafe unsafeBitCast(Bound(call: closure), to: Unbound<repeat each Argument, Result>.self).call
}

/// For timers. Structures are cast, because a cast function would be called through two thunks.
private func unbound(_ closure: @escaping @isolated(any) (Timer) -> Void) -> @Sendable (Timer) -> Void {
    struct Bound { let call: @isolated(any) (Timer) -> Void }
    struct Unbound { let call: @Sendable (Timer) -> Void }
    return unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
}

/// For event handlers of streams.
private func unbound(_ closure: @escaping @isolated(any) @Sendable (ByteStream.Event) -> Void) -> @Sendable (ByteStream.Event) -> Void {
    struct Bound { let call: @isolated(any) @Sendable (ByteStream.Event) -> Void }
    struct Unbound { let call: @Sendable (ByteStream.Event) -> Void }
    return unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
}

/// For observers.
private func unbound(
    _ closure: @escaping @isolated(any) (RunLoop.Observer, RunLoop.Activity) -> Void
) -> @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void {
    struct Bound { let call: @isolated(any) (RunLoop.Observer, RunLoop.Activity) -> Void }
    struct Unbound { let call: @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void }
    return unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
}

private struct BoundToCommands<Command> { let call: @isolated(any) ([Command]) -> Void }
private struct UnboundToCommands<Command> { let call: @Sendable ([Command]) -> Void }

/// For input sources.
private func unbound<Command>(_ closure: @escaping @isolated(any) ([Command]) -> Void) -> @Sendable ([Command]) -> Void {
    unsafe unsafeBitCast(BoundToCommands(call: closure), to: UnboundToCommands<Command>.self).call
}

/// For closures that are queued.
private func unbound(_ closure: @escaping @isolated(any) () -> Void) -> @Sendable () -> Void {
    struct Bound { let call: @isolated(any) () -> Void }
    struct Unbound { let call: @Sendable () -> Void }
    return unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
}

/// For request handlers that read the bytes in place.
private func unbound(
    _ closure: @escaping @isolated(any) (Int32, RawSpan, inout MessagePort.Reply) -> Void
) -> @Sendable (Int32, RawSpan, inout MessagePort.Reply) -> Void {
    struct Bound { let call: @isolated(any) (Int32, RawSpan, inout MessagePort.Reply) -> Void }
    struct Unbound { let call: @Sendable (Int32, RawSpan, inout MessagePort.Reply) -> Void }
    return unsafe unsafeBitCast(Bound(call: closure), to: Unbound.self).call
}

// MARK: Closures that may leave their thread

/// Returns a closure that calls `closure` in its actor's isolation.
func onActorOf<each Argument: Sendable>(
    _ closure: @escaping @isolated(any) @Sendable (repeat each Argument) -> Void
) -> @Sendable (repeat each Argument) -> Void { sendingToActor(closure) }

/// The overloads for the shapes that have casts of their own.
func onActorOf(_ closure: @escaping @isolated(any) @Sendable (Timer) -> Void) -> @Sendable (Timer) -> Void {
    closure.isolation == nil ? unbound(closure) : sendingToActor(closure)
}

func onActorOf(
    _ closure: @escaping @isolated(any) @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void
) -> @Sendable (RunLoop.Observer, RunLoop.Activity) -> Void {
    closure.isolation == nil ? unbound(closure) : sendingToActor(closure)
}

func onActorOf<Command: Sendable>(_ closure: @escaping @isolated(any) @Sendable ([Command]) -> Void) -> @Sendable ([Command]) -> Void {
    closure.isolation == nil ? unbound(closure) : sendingToActor(closure)
}

func onActorOf(
    _ closure: @escaping @isolated(any) @Sendable (ByteStream.Event) -> Void
) -> @Sendable (ByteStream.Event) -> Void {
    closure.isolation == nil ? unbound(closure) : sendingToActor(closure)
}

func onActorOf(_ closure: @escaping @isolated(any) @Sendable () -> Void) -> @Sendable () -> Void {
    closure.isolation == nil ? unbound(closure) : sendingToActor(closure)
}

private func sendingToActor<each Argument: Sendable>(
    _ closure: @escaping @isolated(any) @Sendable (repeat each Argument) -> Void
) -> @Sendable (repeat each Argument) -> Void {
    let call = unboundByThunks(closure)
    guard let home = Home(closure.isolation) else { return call }
    return { (argument: repeat each Argument) in
        if home.isHere { return call(repeat each argument) }
        let arguments = (repeat each argument)
        home.send { await closure(repeat each arguments) }
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

/// Calls a method in its actor's isolation, or sends the call there.
func callOrSend<Target: Sendable, each Argument: Sendable>(
    _ method: @escaping @Sendable (Target) -> @isolated(any) (repeat each Argument) -> Void, of target: Target,
    with argument: repeat each Argument
) {
    let bound = method(target)
    guard let home = Home(bound.isolation), !home.isHere else { return unboundByThunks(bound)(repeat each argument) }
    let arguments = (repeat each argument)
    home.send { await method(target)(repeat each arguments) }
}

// MARK: Closures that stay on their thread

/// Returns a closure that answers requests, and calls `closure` in its actor's isolation. Answers are wanted before the call returns, so
/// that elsewhere the process stops.
func answeringOnActorOf<each Argument, Reply>(
    _ closure: @escaping @isolated(any) @Sendable (repeat each Argument) -> Reply
) -> @Sendable (repeat each Argument) -> Reply { staying(closure, "a closure for requests") }

/// The overload for request handlers that read the bytes in place.
func answeringOnActorOf(
    _ closure: @escaping @isolated(any) @Sendable (Int32, RawSpan, inout MessagePort.Reply) -> Void
) -> @Sendable (Int32, RawSpan, inout MessagePort.Reply) -> Void {
    let call = unbound(closure)
    guard let home = Home(closure.isolation) else { return call }
    return { number, bytes, reply in
        home.requireHere("a closure for requests")
        call(number, bytes, &reply)
    }
}

/// Returns a closure for a timer that stays on one thread. The closure's actor may be inferred from the surrounding code, and may occupy
/// the thread only for the length of a job. Elsewhere the process stops: the closure must not leave the thread.
func onActorOfThreadBound(_ closure: @escaping @isolated(any) (Timer) -> Void) -> (Timer) -> Void {
    if closure.isolation == nil { return unbound(closure) }
    return staying(closure, "the closure of a timer that stays on its thread,")
}

/// The overload for observers.
func onActorOfThreadBound(
    _ closure: @escaping @isolated(any) (RunLoop.Observer, RunLoop.Activity) -> Void
) -> (RunLoop.Observer, RunLoop.Activity) -> Void {
    if closure.isolation == nil { return unbound(closure) }
    return staying(closure, "the closure of an observer that stays on its thread,")
}

/// Returns a closure that stops the process elsewhere than in the isolation of `closure`.
private func staying<each Argument, Result>(
    _ closure: @escaping @isolated(any) (repeat each Argument) -> Result, _ what: StaticString
) -> @Sendable (repeat each Argument) -> Result {
    let call = unboundByThunks(closure)
    guard let home = Home(closure.isolation) else { return call }
    return { (argument: repeat each Argument) in
        home.requireHere(what)
        return call(repeat each argument)
    }
}

/// Calls a method, which stays on its thread: elsewhere than in its actor's isolation the process stops.
func call<each Argument>(_ method: @escaping @isolated(any) (repeat each Argument) -> Void, with argument: repeat each Argument) {
    Home(method.isolation)?.requireHere("a method")
    unboundByThunks(method)(repeat each argument)
}
