// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
//
// Programs whose main actor lives in a host's loop. HOSTS names the hosts that are here, and MAINS one more product.
import PackageDescription

let root = "CoreRunLoop"
func product(_ name: String) -> Target.Dependency { .product(name: name, package: root) }
let packages = ["GLib": "gio-unix-2.0", "Libuv": "libuv", "Qt": "Qt6Core"]
let sources = ["GLib": "glib.c", "Libuv": "libuv.c", "Qt": "qt.cpp"]
let hosts = (Context.environment["HOSTS"] ?? "GLib Libuv Qt").split(separator: " ").map(String.init)
let extra = Context.environment["MAINS"].map { [product($0)] } ?? []

func targets(of host: String) -> [Target] {
    let used: [Target.Dependency] =
        [product("CoreRunLoop"), product("CoreRunLoopMain"), "HostChecks", .target(name: host + "Adapter")] + extra
        + (host == "Qt" ? [] : [product("CoreRunLoop" + host)])
    return [
        .systemLibrary(name: "C" + host, path: "System/C" + host, pkgConfig: packages[host]),
        .target(
            name: host + "Adapter",
            dependencies: ["HostInterface", .target(name: "C" + host), product("CoreRunLoopHostHeaders")], path: "C/" + host,
            sources: [sources[host]!]),
        .executableTarget(name: "async-" + host, dependencies: used, path: "Swift/Async" + host),
        .executableTarget(name: "sync-" + host, dependencies: used, path: "Swift/Sync" + host),
    ] + (host == "GLib" ? [.executableTarget(name: "glib-in-loop", dependencies: used + ["CGLib"], path: "Swift/GLibInLoop")] : [])
}

let package = Package(
    name: "HostTests",
    dependencies: [.package(name: root, path: "../../..")],
    targets: [
        .target(name: "HostInterface", path: "C/Interface", publicHeadersPath: "."),
        .target(
            name: "HostChecks", dependencies: ["HostInterface", product("CoreRunLoop"), product("CoreRunLoopMain")],
            path: "Swift/HostChecks"),
    ] + hosts.flatMap(targets),
    cLanguageStandard: .gnu11, cxxLanguageStandard: .cxx17
)
