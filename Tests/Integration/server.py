# SPDX-License-Identifier: Apache-2.0
"""What the integration tests share: a server of somebody else's on loopback or a Unix socket, started and stopped by the test, and the
example that talks to it. A test that cannot have its server or its example ends with status 77 and says why in its last line.

The environment names the folder of the examples: INTEGRATION_PROGRAMS.
"""
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 30


def skip(reason):
    print(reason)
    sys.exit(77)


def example(name):
    path = os.path.join(os.environ.get("INTEGRATION_PROGRAMS", "build/gcc-release/examples"), name)
    if not os.path.exists(path):
        skip(f"the example {name} is not built: its library is not installed (make deps-integration)")
    return path


def tool(name, *folders):
    """The path of a program, looked for in PATH and then in `folders`."""
    places = [os.path.join(folder, name) for folder in folders]
    path = shutil.which(name) or next(filter(os.path.exists, places), None)
    if not path:
        skip(f"there is no {name} here (make deps-integration)")
    return path


@contextlib.contextmanager
def folder(owner=None):
    """A folder for sockets and data, gone at the end; short, as Unix sockets' paths are."""
    path = tempfile.mkdtemp(prefix="crl-", dir="/tmp")
    if owner:
        shutil.chown(path, owner)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(command, is_ready, **options):
    """Runs a server as long as the block lasts. `is_ready` is asked until it says so."""
    log = tempfile.TemporaryFile()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, **options)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                print(log.read().decode(errors="replace"))
                sys.exit(f"{command[0]} does not start")
            time.sleep(0.02)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def accepts(where):
    """Whether somebody accepts connections at (host, port) or at a path."""
    family = socket.AF_UNIX if isinstance(where, str) else socket.AF_INET
    with socket.socket(family) as probe:
        return probe.connect_ex(where) == 0


def run(*command, status=0, **options):
    """Runs an example to its end; what it printed. Any other status ends the test."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=PATIENCE_S, **options)
    print(done.stdout, end="")
    if done.returncode != status:
        sys.exit(f"{' '.join(command)}: ended with {done.returncode} instead of {status}")
    return done.stdout


def expect(condition, what):
    if not condition:
        sys.exit(f"does not hold: {what}")
