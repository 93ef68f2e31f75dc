// swift-tools-version: 5.9
// SPDX-License-Identifier: Apache-2.0
import PackageDescription
let package = Package(
    name: "user",
    dependencies: [.package(name: "CoreRunLoop", path: "../..")],
    targets: [
        .executableTarget(name: "plain", dependencies: [.product(name: "CoreRunLoop", package: "CoreRunLoop")]),
        .executableTarget(
            name: "beside",
            dependencies: [
                .product(name: "CoreRunLoop", package: "CoreRunLoop"), .product(name: "CoreRunLoopFoundation", package: "CoreRunLoop"),
            ]),
        .executableTarget(name: "foundation"),
        .executableTarget(name: "toolchain", dependencies: [.product(name: "CCoreRunLoop", package: "CoreRunLoop")]),
        .executableTarget(name: "headers", dependencies: [.product(name: "CoreFoundationHeaders", package: "CoreRunLoop")]),
    ]
)
