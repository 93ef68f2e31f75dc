// swift-tools-version: 6.3
// SPDX-License-Identifier: Apache-2.0
//
// Windows of GTK 4 and Qt 6 whose label a Swift task changes. WINDOWS names the toolkits that are here.
import PackageDescription

let root = "CoreRunLoop"
func product(_ name: String) -> Target.Dependency { .product(name: name, package: root) }
let loop = [product("CoreRunLoop"), product("CoreRunLoopMain")]
let toolkits: [String: [Target]] = [
    "Gtk": [
        .systemLibrary(name: "CGtk", path: "System/CGtk", pkgConfig: "gtk4", providers: [.apt(["libgtk-4-dev"])]),
        .executableTarget(name: "gtk-window", dependencies: loop + ["CGtk", product("CoreRunLoopGLib")], path: "Gtk"),
    ],
    "Qt": [
        .systemLibrary(name: "CQtWidgets", path: "System/CQtWidgets", pkgConfig: "Qt6Widgets", providers: [.apt(["qt6-base-dev"])]),
        .target(name: "QtWindow", dependencies: ["CQtWidgets", product("CoreRunLoopHostHeaders")], path: "QtWindow"),
        .executableTarget(name: "qt-window", dependencies: loop + ["QtWindow"], path: "Qt"),
    ],
]

let package = Package(
    name: "Windows",
    dependencies: [.package(name: root, path: "../../../..")],
    targets: (Context.environment["WINDOWS"] ?? "Gtk Qt").split(separator: " ").flatMap { toolkits[String($0)] ?? [] },
    cxxLanguageStandard: .cxx17
)
