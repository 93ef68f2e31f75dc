// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
//
// Programs with every kind of main, which only link CoreRunLoopMain. MAINS names one more product.
import PackageDescription

let extra = Context.environment["MAINS"]
let root = "CoreRunLoop"
func product(_ name: String) -> Target.Dependency { .product(name: name, package: root) }
let loop = [product("CoreRunLoopMain"), product("CoreRunLoop"), "Checks"] + (extra.map { [product($0)] } ?? [])

let package = Package(
    name: "Mains",
    products: [.library(name: "DynamicMain", type: .dynamic, targets: ["DynamicMain"])],
    dependencies: [.package(name: root, path: "../../../..")],
    targets: [
        .target(name: "FirstThread"),
        .target(name: "Checks", dependencies: ["FirstThread"]),
        .executableTarget(
            name: "async-main", dependencies: loop, path: "Sources/AsyncMain",
            swiftSettings: extra == "CoreRunLoopExecutors" ? [.define("JOBS_ON_LOOP")] : []),
        .executableTarget(name: "hops", dependencies: loop, path: "Sources/Hops"),
        .executableTarget(name: "top-level", dependencies: loop, path: "Sources/TopLevel"),
        .executableTarget(name: "synchronous-main", dependencies: loop, path: "Sources/SynchronousMain"),
        .executableTarget(
            name: "own-executor", dependencies: loop, path: "Sources/OwnExecutor",
            swiftSettings: [.unsafeFlags(["-Xfrontend", "-disable-availability-checking"])]),
        .target(name: "OtherHookSetter"),
        .executableTarget(name: "other-hook", dependencies: loop + ["OtherHookSetter"], path: "Sources/OtherHook"),
        // The product as a shared library.
        .target(name: "DynamicMain", dependencies: [product("CoreRunLoopMain")]),
        .testTarget(name: "LoopTests", dependencies: loop),
        .testTarget(name: "XCTests", dependencies: loop),
    ]
        + (extra == "CoreRunLoopExecutors"
            ? [.executableTarget(name: "pool", dependencies: loop, path: "Sources/Pool")] : [])
)
