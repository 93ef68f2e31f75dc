#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libcurl's multi-socket interface in a run loop, downloading from Python's own HTTP server on loopback.

Rules: 278 279 281 287 290
"""
import os
import random
import sys

from server import accepts, example, expect, folder, free_port, run, running

SIZES = {"empty": 0, "small": 10, "page": 5000, "large": 8 * 1024 * 1024}


def checksum(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


curl = example("curl")
with folder() as where:
    contents = {}
    for name, size in SIZES.items():
        contents[name] = random.Random(size).randbytes(size)
        with open(os.path.join(where, name), "wb") as file:
            file.write(contents[name])
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    with running([sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", where],
                 lambda: accepts(("127.0.0.1", port))):
        names = list(SIZES) * 5
        lines = run(curl, *[f"{base}/{name}" for name in names]).splitlines()
        expect(len(lines) == len(names), "every download ended")
        for name, data in contents.items():
            line = f"200 {len(data)} {checksum(data):016x} {base}/{name}"
            expect(lines.count(line) == 5, f"{name} arrived five times, whole")
        expect("404" in run(curl, f"{base}/nothing", status=1), "what is not there is told")
    expect("curl: " in run(curl, f"{base}/small", status=1), "a server that is gone is told")
