// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let package = Package(
    name: "CoreRunLoop",
    products: [
        // Apple's C API, imported with Darwin's spellings.
        .library(name: "CCoreRunLoop", targets: ["CCoreRunLoop"])
    ],
    targets: [
        .systemLibrary(name: "CLibBSD", pkgConfig: "libbsd", providers: [.apt(["libbsd-dev"])]),
        .target(
            name: "CCoreRunLoop",
            dependencies: ["CLibBSD"],
            path: ".",
            sources: ["Sources/CCoreRunLoop"],
            publicHeadersPath: "Headers",
            cSettings: [.headerSearchPath("Sources/CCoreRunLoop")],
            linkerSettings: [.linkedLibrary("m")]
        ),
        .testTarget(name: "CCoreRunLoopTests", dependencies: ["CCoreRunLoop"]),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .gnu11
)
