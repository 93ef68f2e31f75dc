// SPDX-License-Identifier: Apache-2.0
//
// Threads that call a method of a target.

extension Thread {
    /// Makes a thread that calls a method of `target` when it is started.
    ///
    /// - Parameters:
    ///   - target: Kept until the thread ends.
    ///   - action: A method as `Class.method`, with one parameter.
    ///   - argument: The argument for the method.
    @preconcurrency
    public convenience init<Target: AnyObject & Sendable, Argument: Sendable>(
        target: Target, selector action: @escaping @Sendable (Target) -> @isolated(any) (Argument) -> Void, object argument: Argument
    ) {
        self.init { callOrSend(action, of: target, with: argument) }
    }

    /// Makes a thread that calls a method of `target` that has no parameter.
    ///
    /// - Parameters:
    ///   - target: Kept until the thread ends.
    ///   - action: A method as `Class.method`.
    ///   - object: Without a meaning; `nil`.
    @preconcurrency
    public convenience init<Target: AnyObject & Sendable>(
        target: Target, selector action: @escaping @Sendable (Target) -> @isolated(any) () -> Void, object: Never? = nil
    ) {
        self.init { callOrSend(action, of: target) }
    }

    /// Starts a thread that calls a method of `target` with `argument`.
    @preconcurrency
    public static func detachNewThreadSelector<Target: AnyObject & Sendable, Argument: Sendable>(
        _ action: @escaping @Sendable (Target) -> @isolated(any) (Argument) -> Void, toTarget target: Target, with argument: Argument
    ) {
        Thread(target: target, selector: action, object: argument).start()
    }

    /// Starts a thread that calls a method of `target` that has no parameter.
    @preconcurrency
    public static func detachNewThreadSelector<Target: AnyObject & Sendable>(
        _ action: @escaping @Sendable (Target) -> @isolated(any) () -> Void, toTarget target: Target, with object: Never? = nil
    ) {
        Thread(target: target, selector: action).start()
    }
}
