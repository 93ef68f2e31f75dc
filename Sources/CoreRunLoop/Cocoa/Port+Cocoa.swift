// SPDX-License-Identifier: Apache-2.0
//
// Cocoa's spellings of a port's making and of its delegate.

extension Port {
    /// Sets the delegate.
    public func setDelegate(_ delegate: (any PortDelegate)?) { self.delegate = delegate }
}

extension MachPort {
    /// Gets the port of this process with a number: the object that was made with it, as long as that lives, or one that can only send.
    public static func port(withMachPort number: UInt32) -> MachPort { shared(number) }
}
