# SPDX-License-Identifier: Apache-2.0
"""Compiles small programs in Swift against the built package, and runs them.

For the scripts that compare what a program prints with what is promised.
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile
import threading
import tty

from documents import swift_options, testing_options

SECONDS = 60  # a limit that only a failure waits for
TEST_MAIN = "import Testing\n@main struct Main { static func main() async { await Testing.__swiftPMEntryPoint() as Never } }\n"
TARGETS = ("CCoreRunLoop", "CoreRunLoopShims", "CoreRunLoop", "CoreRunLoopTesting", "CoreRunLoopTestingShims", "CoreRunLoopSwiftRuntime",
           "CoreRunLoopExecutorsShims", "CoreRunLoopMainHook", "CCoreRunLoopServices", "CoreRunLoopServices")
FOUNDATION_TARGETS = ("CoreRunLoopFoundation", "CoreRunLoopFoundationShims")


class Failure(Exception):
    """Something that is promised and does not hold."""


def is_test(text):
    return "@Test" in text


def run_compiler(command, name):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0 or done.stderr:
        raise Failure("%s does not compile without a message\n%s" % (name, done.stderr))


class Package:
    """The built package as libraries, so that linking takes little time. A program that leaves Foundation out does not load it."""

    def __init__(self, binaries, folder):
        self.binaries, self.folder = binaries, folder
        self.library = self._library("CoreRunLoop", TARGETS, ["-lBlocksRuntime"])
        self.foundation_library = None
        self.lock = threading.Lock()

    def _library(self, name, targets, options):
        objects = [path for target in targets
                   for path in sorted(glob.glob(os.path.join(self.binaries, target + ".build", "**", "*.o"), recursive=True))]
        path = os.path.join(self.folder, "lib%sForPrograms.so" % name)
        run_compiler(["swiftc", "-emit-library", "-o", path] + objects + options, "the package")
        return path

    def _libraries(self, text):
        if not re.search(r"^import CoreRunLoopFoundation$", text, re.M):
            return [self.library]
        with self.lock:
            if not self.foundation_library:
                self.foundation_library = self._library("CoreRunLoopFoundation", FOUNDATION_TARGETS, [self.library])
        return [self.library, self.foundation_library]

    def build(self, name, source, result, options=()):
        """Makes the program `result` of the file `source`. Raises Failure if the compiler has anything to say."""
        with open(source, encoding="utf-8") as file:
            text = file.read()
        sources, more = [source], []
        if is_test(text):
            sources.append(result + "-entry.swift")
            with open(sources[1], "w", encoding="utf-8") as file:
                file.write(TEST_MAIN)
            more = ["-parse-as-library"] + testing_options()
        elif re.search(r"^@main", text, re.M):
            more = ["-parse-as-library"]
        command = ["swiftc", "-swift-version", "6", "-module-name", "Program", "-o", result] + sources + more + list(options)
        command += swift_options(self.binaries) + self._libraries(text) + ["-Xlinker", "-rpath", "-Xlinker", self.folder]
        run_compiler(command, name)


class Running:
    """A program that runs on a terminal of its own, in a folder of its own that also holds its ports' names."""

    def __init__(self, path, arguments=()):
        self.folder = tempfile.mkdtemp(prefix="crl-")
        # The standard output is a terminal, so that a program need not flush its lines.
        self.terminal, inside = os.openpty()
        tty.setraw(inside)
        environment = dict(os.environ, XDG_RUNTIME_DIR=self.folder)
        self.process = subprocess.Popen([path, *arguments], stdin=subprocess.DEVNULL, stdout=inside, stderr=subprocess.PIPE, text=True,
                                        cwd=self.folder, env=environment)
        os.close(inside)
        self.timer = threading.Timer(SECONDS, self.process.kill)
        self.timer.start()
        self.output, self.has_output, self.has_ended = "", threading.Condition(), False
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        while True:
            try:
                read = os.read(self.terminal, 65536)
            except OSError:  # nobody has the terminal open any more
                read = b""
            with self.has_output:
                self.output += read.decode("utf-8", "replace")
                self.has_ended = not read
                self.has_output.notify_all()
            if not read:
                return

    def first_line(self):
        with self.has_output:
            self.has_output.wait_for(lambda: "\n" in self.output or self.has_ended)
            return self.output.split("\n")[0]

    def end(self):
        """Waits for the end. The status, what was printed, and what came on the standard error output."""
        errors = self.process.stderr.read()
        status = self.process.wait()
        self.reader.join()
        self.timer.cancel()
        os.close(self.terminal)
        shutil.rmtree(self.folder, ignore_errors=True)
        return status, self.output, errors


def indent(text):
    return "".join("    " + line + "\n" for line in text.splitlines()).rstrip("\n")
