# SPDX-License-Identifier: Apache-2.0
# Packs the C library by the tree's own Makefile: `conan create packaging/conan --no-remote`.
import os
import re

from conan import ConanFile
from conan.tools.files import copy, load


class CoreRunLoop(ConanFile):
    name = "corerunloop"
    description = "Core Foundation's run loops for Linux"
    license = "Apache-2.0"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    @property
    def _tree(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._tree, "Headers/CRLRunLoop.h"))
        self.version = re.search(r'#define CRL_VERSION_STRING "(.*)"', header).group(1)

    def export_sources(self):
        copy(self, "*", src=self._tree, dst=self.export_sources_folder, excludes=("build/*", ".build/*", ".git/*"))

    def validate(self):
        if self.settings.os != "Linux":
            from conan.errors import ConanInvalidConfiguration
            raise ConanInvalidConfiguration("CoreRunLoop is for Linux; Apple's systems have Core Foundation")

    def build(self):
        # Without libbsd, which then need not be found by who uses the package; and without the wings, whose libraries Conan has its own of.
        self.run(f"make -j{os.cpu_count()} all man HAS_BSD= PKG_CONFIG_LIBDIR=/nonexistent", env=None)

    def package(self):
        self.run(f"make install HAS_BSD= PKG_CONFIG_LIBDIR=/nonexistent PREFIX=/ DESTDIR={self.package_folder}", env=None)
        copy(self, "LICENSE", src=self.source_folder, dst=os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.includedirs = ["include/corerunloop"]
        self.cpp_info.libs = ["corerunloop"] if self.options.shared else [":libcorerunloop.a"]
        self.cpp_info.system_libs = ["pthread", "rt", "m"]
