# SPDX-License-Identifier: Apache-2.0
import os

from conan import ConanFile


class Test(ConanFile):
    settings = "os", "arch", "compiler", "build_type"

    def layout(self):
        self.folders.build = self.folders.generators = os.path.join("..", "..", "..", "build", "conan")

    def requirements(self):
        self.requires(self.tested_reference_str)

    def test(self):
        used = self.dependencies["corerunloop"].cpp_info
        flags = " ".join([f"-I{used.includedir}", f"-L{used.libdir}", *("-l" + name for name in used.libs + used.system_libs)])
        program = os.path.join(self.build_folder, "program")
        source = os.path.join(self.recipe_folder, "..", "..", "..", "Tests", "Install", "main.c")
        self.run(f"mkdir -p {self.build_folder} && cc {source} {flags} -o {program} && LD_LIBRARY_PATH={used.libdir} {program}")
