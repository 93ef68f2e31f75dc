// SPDX-License-Identifier: Apache-2.0

/// What happens to one file or folder.
public struct FileChanges: OptionSet, Sendable, Hashable {
    /// The bits of `CRLFileEvents`.
    public let rawValue: UInt

    /// Creates a set from the bits of `CRLFileEvents`.
    public init(rawValue: UInt) {
        self.rawValue = rawValue
    }

    /// Its last name is gone. Nothing more is told.
    public static let deleted = FileChanges(rawValue: 1 << 0)
    /// Bytes were written, or it was cut. A folder: what is in it came, went, or has another name.
    public static let written = FileChanges(rawValue: 1 << 1)
    /// It became longer. A folder: something was moved in or out, or renamed.
    public static let extended = FileChanges(rawValue: 1 << 2)
    /// Its owner, rights, times or extended attributes changed.
    public static let attributes = FileChanges(rawValue: 1 << 3)
    /// The number of its names changed. A folder: of the folders in it.
    public static let linked = FileChanges(rawValue: 1 << 4)
    /// It has another name, or is in another folder.
    public static let renamed = FileChanges(rawValue: 1 << 5)
    /// Its file system was unmounted. Nothing more is told.
    public static let revoked = FileChanges(rawValue: 1 << 6)
}
