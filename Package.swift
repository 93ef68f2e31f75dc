// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
    name: "CoreRunLoop",
    products: [
        // Apple's C API, imported with Darwin's spellings.
        .library(name: "CCoreRunLoop", targets: ["CCoreRunLoop"]),
        // The same for C: `#include <CoreFoundation/CoreFoundation.h>`. Not for Swift targets, as the folder stands in the way of the
        // toolchain's own CoreFoundation.
        .library(name: "CoreFoundationHeaders", targets: ["CoreFoundationHeaders"]),
        // The overlay: safe classes, threads, ports, executors. Without Foundation.
        .library(name: "CoreRunLoop", targets: ["CoreRunLoop"]),
        // Date, Data and TimeInterval in the overlay's calls.
        .library(name: "CoreRunLoopFoundation", targets: ["CoreRunLoopFoundation"]),
        // XCTest and Foundation with this package's loops, by one import.
        .library(name: "CoreRunLoopXCTest", targets: ["CoreRunLoopXCTest"]),
        // Names of hosts and TLS for streams: to be linked besides. It needs c-ares and OpenSSL.
        .library(name: "CCoreRunLoopNet", targets: ["CCoreRunLoopNet"]),
        // Distributed actors of several processes, over message ports. Without Foundation.
        .library(name: "CoreRunLoopDistributed", targets: ["CoreRunLoopDistributed"]),
        // JSON as the coding of their calls. It needs Foundation.
        .library(name: "CoreRunLoopDistributedJSON", targets: ["CoreRunLoopDistributedJSON"]),
        // Ports of other machines by a NATS server: CRLNats.h. It needs cnats.
        .library(name: "CCoreRunLoopNats", targets: ["CCoreRunLoopNats"]),
        // The same in Swift. It needs cnats.
        .library(name: "CoreRunLoopNats", targets: ["CoreRunLoopNats"]),
        // Property lists in XML and binary: CFPropertyList.h.
        .library(name: "CCoreRunLoopPropertyLists", targets: ["CCoreRunLoopPropertyLists"]),
        // The same in Swift, with Codable. Without Foundation.
        .library(name: "CoreRunLoopPropertyLists", targets: ["CoreRunLoopPropertyLists"]),
        // What the system tells of files and folders: CRLFileSource.h.
        .library(name: "CCoreRunLoopServices", targets: ["CCoreRunLoopServices"]),
        // The same in Swift.
        .library(name: "CoreRunLoopServices", targets: ["CoreRunLoopServices"]),
        // The main loop runs while an asynchronous main is suspended: to be linked, no more.
        .library(name: "CoreRunLoopMain", targets: ["CoreRunLoopMain"]),
        // All tasks on loops: to be linked, no more.
        .library(name: "CoreRunLoopExecutors", targets: ["CoreRunLoopExecutors"]),
        // A loop inside the loop of GLib, as of GTK, or of libuv, as of Node: the program has its host, and this package needs none.
        .library(name: "CoreRunLoopGLib", targets: ["CoreRunLoopGLib"]),
        .library(name: "CoreRunLoopLibuv", targets: ["CoreRunLoopLibuv"]),
        // The same for C and C++ targets, and Qt: `#include <CRLHostQt.h>`.
        .library(name: "CoreRunLoopHostHeaders", targets: ["CoreRunLoopHostHeaders"]),
        // For test suites: a clock moved by hand, a trait that runs a test on a loop, and tests by seed.
        .library(name: "CoreRunLoopTesting", targets: ["CoreRunLoopTesting"]),
    ],
    targets: [
        .target(
            name: "CCoreRunLoop",
            path: ".",
            sources: ["Sources/CCoreRunLoop"],
            publicHeadersPath: "Headers/Swift",
            cSettings: [
                .headerSearchPath("Headers"), .headerSearchPath("Sources/CCoreRunLoop"), .headerSearchPath("Sources/WithoutBSD"),
            ],
            linkerSettings: [.linkedLibrary("BlocksRuntime"), .linkedLibrary("rt")]
        ),
        // No system library is a target: SwiftPM would ask for those of all targets, whichever a package uses. The headers in Needed say
        // which package is missing.
        .target(
            name: "CCoreRunLoopNet", dependencies: ["CCoreRunLoop"], path: "AddOns/Net/Sources/CCoreRunLoopNet",
            cSettings: [
                .headerSearchPath("../Needed"), .headerSearchPath("../../../../Headers"),
                .headerSearchPath("../../../../Sources/CCoreRunLoop"),
            ],
            linkerSettings: [.linkedLibrary("cares"), .linkedLibrary("ssl"), .linkedLibrary("crypto")]),
        .target(
            name: "CCoreRunLoopNats", dependencies: ["CCoreRunLoop"], path: "AddOns/Nats/Sources/CCoreRunLoopNats",
            cSettings: [
                .headerSearchPath("."), .headerSearchPath("../Needed"), .headerSearchPath("../../../../Headers"),
                .headerSearchPath("../../../../Sources/CCoreRunLoop"), .headerSearchPath("../../../../Sources/WithoutBSD"),
            ],
            linkerSettings: [.linkedLibrary("nats")]),
        .target(
            name: "CCoreRunLoopPropertyLists", dependencies: ["CCoreRunLoop"],
            path: "AddOns/PropertyLists/Sources/CCoreRunLoopPropertyLists",
            cSettings: [
                .headerSearchPath("."), .headerSearchPath("../../../../Headers"), .headerSearchPath("../../../../Sources/CCoreRunLoop"),
                .headerSearchPath("../../../../Sources/WithoutBSD"),
            ]),
        .target(
            name: "CCoreRunLoopServices", dependencies: ["CCoreRunLoop"], path: "AddOns/Services/Sources/CCoreRunLoopServices",
            cSettings: [
                .headerSearchPath("."), .headerSearchPath("../../../../Headers"), .headerSearchPath("../../../../Sources/CCoreRunLoop"),
                .headerSearchPath("../../../../Sources/WithoutBSD"),
            ]),
        // No sources: the folder of the headers, for C targets.
        .target(name: "CoreFoundationHeaders", dependencies: ["CCoreRunLoop"], path: "Headers", publicHeadersPath: "."),
        // System calls and thread-local words that Swift cannot spell, and the few private functions of the C library that the overlay
        // needs.
        .target(
            name: "CoreRunLoopShims", dependencies: ["CCoreRunLoop"],
            cSettings: [.headerSearchPath("../../Headers"), .headerSearchPath("../CCoreRunLoop")]),
        .target(name: "CoreRunLoop", dependencies: ["CCoreRunLoop", "CoreRunLoopShims"], swiftSettings: strict),
        // The few functions of the toolchain's Core Foundation by which the two loops of a thread wait as one.
        .target(
            name: "CoreRunLoopFoundationShims", dependencies: ["CCoreRunLoop"],
            path: "AddOns/Foundation/Sources/CoreRunLoopFoundationShims",
            cSettings: [.headerSearchPath("../../../../Headers"), .headerSearchPath("../../../../Sources/CCoreRunLoop")]),
        .target(
            name: "CoreRunLoopFoundation", dependencies: ["CoreRunLoop", "CoreRunLoopFoundationShims"],
            path: "AddOns/Foundation/Sources/CoreRunLoopFoundation", swiftSettings: strict),
        .target(
            name: "CoreRunLoopXCTest", dependencies: ["CoreRunLoopFoundation"], path: "AddOns/Foundation/Sources/CoreRunLoopXCTest",
            swiftSettings: strict),
        .target(
            name: "CoreRunLoopDistributed", dependencies: ["CoreRunLoop", "CoreRunLoopShims"],
            path: "AddOns/Distributed/Sources/CoreRunLoopDistributed", swiftSettings: strict),
        .target(
            name: "CoreRunLoopDistributedJSON", dependencies: ["CoreRunLoopDistributed"],
            path: "AddOns/Distributed/Sources/CoreRunLoopDistributedJSON", swiftSettings: strict),
        .target(
            name: "CoreRunLoopNats", dependencies: ["CoreRunLoop", "CoreRunLoopShims", "CCoreRunLoopNats"],
            path: "AddOns/Nats/Sources/CoreRunLoopNats", swiftSettings: strict),
        .target(
            name: "CoreRunLoopPropertyLists", dependencies: ["CoreRunLoop", "CCoreRunLoopPropertyLists"],
            path: "AddOns/PropertyLists/Sources/CoreRunLoopPropertyLists", swiftSettings: strict),
        .target(
            name: "CoreRunLoopServices", dependencies: ["CoreRunLoop", "CoreRunLoopShims", "CCoreRunLoopServices"],
            path: "AddOns/Services/Sources/CoreRunLoopServices", swiftSettings: strict),
        .target(name: "CoreRunLoopMainHook", path: "AddOns/Executors/Sources/CoreRunLoopMainHook"),
        .target(
            name: "CoreRunLoopMain", dependencies: ["CoreRunLoop", "CoreRunLoopMainHook"], path: "AddOns/Executors/Sources/CoreRunLoopMain",
            swiftSettings: strict),
        .target(
            name: "CoreRunLoopExecutorsShims", dependencies: ["CoreRunLoopMainHook"],
            path: "AddOns/Executors/Sources/CoreRunLoopExecutorsShims"),
        .target(
            name: "CoreRunLoopExecutors",
            dependencies: ["CoreRunLoop", "CoreRunLoopMain", "CoreRunLoopShims", "CoreRunLoopExecutorsShims", "CoreRunLoopSwiftRuntime"],
            path: "AddOns/Executors/Sources/CoreRunLoopExecutors", swiftSettings: strict),
        .target(
            name: "CoreRunLoopGLibShims", dependencies: ["CCoreRunLoop"], path: "AddOns/Hosts/Sources/CoreRunLoopGLibShims",
            cSettings: [.headerSearchPath("../../../../Headers")]),
        .target(
            name: "CoreRunLoopGLib", dependencies: ["CoreRunLoop", "CoreRunLoopGLibShims"],
            path: "AddOns/Hosts/Sources/CoreRunLoopGLib", swiftSettings: strict),
        .target(
            name: "CoreRunLoopLibuvShims", dependencies: ["CCoreRunLoop"], path: "AddOns/Hosts/Sources/CoreRunLoopLibuvShims",
            cSettings: [.headerSearchPath("../../../../Headers")]),
        .target(
            name: "CoreRunLoopLibuv", dependencies: ["CoreRunLoop", "CoreRunLoopLibuvShims"],
            path: "AddOns/Hosts/Sources/CoreRunLoopLibuv", swiftSettings: strict),
        .target(
            name: "CoreRunLoopHostHeaders", dependencies: ["CCoreRunLoop"], path: "AddOns/Hosts/Headers", publicHeadersPath: "."),
        // What the runtime takes for its executors: for CoreRunLoopExecutors and CoreRunLoopTesting.
        .target(
            name: "CoreRunLoopSwiftRuntime", dependencies: ["CoreRunLoopMainHook", "CoreRunLoopExecutorsShims"],
            path: "AddOns/Executors/Sources/CoreRunLoopSwiftRuntime", swiftSettings: strict),
        // Functions that stand before those of the runtime and of the C library in the process of a test.
        .target(name: "CoreRunLoopTestingShims", dependencies: ["CoreRunLoopShims"]),
        .target(
            name: "CoreRunLoopTesting",
            dependencies: ["CoreRunLoop", "CoreRunLoopShims", "CoreRunLoopTestingShims", "CoreRunLoopSwiftRuntime"],
            swiftSettings: strict),
        .executableTarget(name: "swift-service", dependencies: ["CoreRunLoop"], path: "Examples/swift-service"),
        .executableTarget(name: "swift-sources", dependencies: ["CoreRunLoop"], path: "Examples/swift-sources"),
        .executableTarget(name: "swift-chat", dependencies: ["CoreRunLoop"], path: "Examples/swift-chat"),
        .executableTarget(name: "swift-fetch", dependencies: ["CoreRunLoop"], path: "Examples/swift-fetch"),
        .executableTarget(name: "swift-jobs", dependencies: ["CoreRunLoopDistributed"], path: "Examples/swift-jobs", exclude: ["machines"]),
        // Benchmarks of the overlay, and a count of what it allocates.
        .target(
            name: "Allocations", dependencies: ["CCoreRunLoop"], path: "Benchmarks/Allocations", publicHeadersPath: "include",
            cSettings: [.headerSearchPath("../../Headers")]),
        .executableTarget(
            name: "bench-swift", dependencies: ["CoreRunLoop", "Allocations"], path: "Benchmarks/Swift",
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .executableTarget(
            name: "bench-foundation", dependencies: ["CoreRunLoopFoundation", "Allocations"], path: "AddOns/Foundation/Benchmarks",
            swiftSettings: [.swiftLanguageMode(.v5)]),
        .executableTarget(
            name: "bench-distributed", dependencies: ["CoreRunLoopDistributed", "Allocations"], path: "AddOns/Distributed/Benchmarks",
            exclude: ["grpc.cpp", "echo.proto"], swiftSettings: [.swiftLanguageMode(.v5)]),
        // What needs a process's first thread: a program that is a test.
        .executableTarget(name: "requests", dependencies: ["CoreRunLoop", "CoreRunLoopShims"], path: "Tests/Requests"),
        .executableTarget(name: "actors", dependencies: ["CoreRunLoopDistributed"], path: "AddOns/Distributed/Tests/Actors"),
        .executableTarget(name: "main-thread", dependencies: ["CoreRunLoop"], path: "Tests/MainThread"),
        .executableTarget(
            name: "main-thread-foundation", dependencies: ["CoreRunLoopFoundation"], path: "AddOns/Foundation/Tests/MainThreadFoundation"),
        // Linked with the add-on library, which the tests of the overlay are to do without.
        .executableTarget(
            name: "secure-streams", dependencies: ["CoreRunLoopFoundation", "CCoreRunLoopNet"],
            path: "AddOns/Foundation/Tests/SecureStreams"),
        .executableTarget(name: "network", dependencies: ["CoreRunLoop", "CCoreRunLoopNet"], path: "AddOns/Net/Tests/Network"),
        // Linked with the add-on library, and in several processes.
        .executableTarget(name: "bridges", dependencies: ["CoreRunLoopNats", "CoreRunLoopDistributed"], path: "AddOns/Nats/Tests/Bridges"),
        .testTarget(name: "CCoreRunLoopTests", dependencies: ["CCoreRunLoop"]),
        .testTarget(name: "CoreRunLoopTests", dependencies: ["CoreRunLoop", "CoreRunLoopTesting"]),
        .testTarget(name: "CoreRunLoopTestingTests", dependencies: ["CoreRunLoop", "CoreRunLoopTesting"]),
        // A protocol of distributed actors that is in another module than the actors.
        .target(
            name: "ActorProtocols", dependencies: ["CoreRunLoopDistributed"], path: "AddOns/Distributed/Tests/ActorProtocols",
            swiftSettings: strict),
        .testTarget(
            name: "CoreRunLoopDistributedTests", dependencies: ["ActorProtocols", "CoreRunLoopDistributed", "CoreRunLoopDistributedJSON"],
            path: "AddOns/Distributed/Tests/CoreRunLoopDistributedTests"),
        .testTarget(
            name: "CoreRunLoopPropertyListsTests", dependencies: ["CoreRunLoopPropertyLists"],
            path: "AddOns/PropertyLists/Tests/CoreRunLoopPropertyListsTests"),
        .testTarget(
            name: "CoreRunLoopServicesTests", dependencies: ["CoreRunLoop", "CoreRunLoopServices"],
            path: "AddOns/Services/Tests/CoreRunLoopServicesTests"),
        .testTarget(
            name: "CoreRunLoopFoundationTests", dependencies: ["CoreRunLoop", "CoreRunLoopFoundation"],
            path: "AddOns/Foundation/Tests/CoreRunLoopFoundationTests"),
        .testTarget(
            name: "CoreRunLoopXCTestTests", dependencies: ["CoreRunLoopXCTest"], path: "AddOns/Foundation/Tests/CoreRunLoopXCTestTests"),
        // The articles' Swift, in the language mode that is nearest to theirs.
        .testTarget(
            name: "ListingTests",
            dependencies: ["CoreRunLoop", "CoreRunLoopFoundation"],
            path: "Tests/Listings/Swift",
            swiftSettings: [.swiftLanguageMode(.v5)]
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .gnu11
)

// For `make bench-swift NIO=PATH` alone: echoes by SwiftNIO beside those of this package.
if let nio = Context.environment["NIO"], !nio.isEmpty, let bench = package.targets.first(where: { $0.name == "bench-swift" }) {
    package.dependencies.append(.package(name: "swift-nio", path: nio))
    bench.dependencies += [.product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio")]
    bench.swiftSettings? += [.define("HAS_NIO")]
}
