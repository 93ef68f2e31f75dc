# SPDX-License-Identifier: Apache-2.0
"""Conan 2: `conan create packaging/conan` builds the tree and a program that uses it."""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, load
from conan.tools.system import package_manager

# Each component with its library, what pkg-config calls it, and what it needs of the system.
ADD_ONS = {"net": ["cares", "ssl", "crypto"], "nats": ["nats"], "plist": []}
# What the linker keeps although no program asks for it.
KEPT = {"net": "crl_CRLNetworkInstall", "plist": "crl_CFStringGetListOfAvailableEncodings"}


class CoreRunLoop(ConanFile):
    name = "corerunloop"
    license = "Apache-2.0"
    description = "Core Foundation's run loops for Linux"
    topics = ("run-loop", "event-loop", "core-foundation")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    @property
    def _tree(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._tree, "Headers", "CRLRunLoop.h"))
        self.version = re.search(r'^#define CRL_VERSION_STRING "(.*)"', header, re.M).group(1)

    def export_sources(self):
        copy(self, "*", src=self._tree, dst=self.export_sources_folder, excludes=("build/*", ".build/*", ".git/*"))

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("CoreRunLoop is for Linux; Apple's systems have Core Foundation")

    def system_requirements(self):
        package_manager.Apt(self).install(["libbsd-dev", "pkgconf", "make", "python3"], check=True)

    def _make(self, target):
        flags = "-O0 -g" if self.settings.build_type == "Debug" else "-O2"
        places = f'PREFIX="{self.package_folder}" LIBDIR="{self.package_folder}/lib"'
        self.run(f'make -C "{self.source_folder}" -j2 {target} CFLAGS="{flags}" {places}')

    def build(self):
        self._make("all")

    def package(self):
        self._make("install")
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))
        folder = os.path.join(self.package_folder, "lib")
        for file in os.listdir(folder):
            if file.startswith("libcorerunloop") and (file.endswith(".a") if self.options.shared else ".so" in file):
                os.remove(os.path.join(folder, file))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "CoreRunLoop")
        core = self.cpp_info.components["corerunloop"]
        core.set_property("cmake_target_name", "CoreRunLoop::CoreRunLoop")
        core.set_property("pkg_config_name", "corerunloop")
        core.includedirs = ["include/corerunloop"]
        core.libs = ["corerunloop"]
        core.system_libs = ["bsd", "pthread", "rt", "m"]
        for name, needed in ADD_ONS.items():
            files = os.listdir(os.path.join(self.package_folder, "lib"))
            if not any(file.startswith(f"libcorerunloop-{name}.") for file in files):
                continue
            part = self.cpp_info.components[name]
            part.set_property("pkg_config_name", f"corerunloop-{name}")
            part.libs = [f"corerunloop-{name}"]
            part.system_libs = needed
            part.requires = ["corerunloop"]
            if name in KEPT:
                part.exelinkflags = part.sharedlinkflags = [f"-Wl,-u,{KEPT[name]}"]
