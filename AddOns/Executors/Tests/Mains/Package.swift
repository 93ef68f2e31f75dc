// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
//
// Programs with every kind of main, which only link CoreRunLoopMain. MAINS names one more product. NIO is the path of a checkout of
// SwiftNIO, for the benchmark.
import PackageDescription

let extra = Context.environment["MAINS"]
let nio = Context.environment["NIO"]
let root = "CoreRunLoop"
func product(_ name: String) -> Target.Dependency { .product(name: name, package: root) }
let loop = [product("CoreRunLoopMain"), product("CoreRunLoop"), "Checks"] + (extra.map { [product($0)] } ?? [])
let jobsOnLoop: [SwiftSetting] = extra == "CoreRunLoopExecutors" ? [.define("JOBS_ON_LOOP")] : []
/// The runtime's unfinished interface for executors.
let unavailable: [SwiftSetting] = [.unsafeFlags(["-Xfrontend", "-disable-availability-checking"])]

let package = Package(
    name: "Mains",
    products: [.library(name: "DynamicMain", type: .dynamic, targets: ["DynamicMain"])],
    dependencies: [.package(name: root, path: "../../../..")] + (nio.map { [.package(name: "swift-nio", path: $0)] } ?? []),
    targets: [
        .target(name: "FirstThread"),
        .target(name: "Checks", dependencies: ["FirstThread"]),
        .executableTarget(name: "async-main", dependencies: loop, path: "Sources/AsyncMain", swiftSettings: jobsOnLoop),
        .executableTarget(
            name: "hops",
            dependencies: loop + (nio == nil ? [] : ["NIOCore", "NIOPosix"].map { .product(name: $0, package: "swift-nio") }),
            path: "Sources/Hops", swiftSettings: nio == nil ? [] : [.define("NIO")]),
        .executableTarget(name: "top-level", dependencies: loop, path: "Sources/TopLevel"),
        .executableTarget(name: "synchronous-main", dependencies: loop, path: "Sources/SynchronousMain"),
        .executableTarget(name: "own-executor", dependencies: loop, path: "Sources/OwnExecutor", swiftSettings: unavailable),
        .executableTarget(name: "replaced-executor", dependencies: loop, path: "Sources/ReplacedExecutor", swiftSettings: unavailable),
        .target(name: "Forks"),
        .executableTarget(name: "forking", dependencies: loop + ["Forks"], path: "Sources/Forking"),
        .target(name: "OtherHookSetter"),
        .executableTarget(
            name: "other-hook", dependencies: loop + ["OtherHookSetter"], path: "Sources/OtherHook", swiftSettings: jobsOnLoop),
        // The product as a shared library.
        .target(name: "DynamicMain", dependencies: [product("CoreRunLoopMain")]),
        .testTarget(name: "LoopTests", dependencies: loop),
        .testTarget(name: "XCTests", dependencies: loop),
    ]
        + (extra == "CoreRunLoopExecutors"
            ? [.executableTarget(name: "pool", dependencies: loop, path: "Sources/Pool")] : [])
)
