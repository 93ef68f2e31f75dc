#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hiredis's own adapter for Core Foundation, unmodified, with a real redis-server, over a Unix socket and over loopback; and
with no server at all.

Rules: 251 254 255 262 265 267
"""
import os

from server import accepts, example, expect, folder, free_port, run, running, tool

redis = example("redis")
server = tool("redis-server")
with folder() as where:
    path = os.path.join(where, "redis.sock")
    port = free_port()
    with running([server, "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", path, "--save", "", "--dir", where],
                 lambda: accepts(path) and accepts(("127.0.0.1", port))):
        for arguments in ([path], ["127.0.0.1", str(port)]):
            said = run(redis, *arguments)
            expect("GET: from a run loop" in said and "INCR: 1000" in said, "every answer came")
    said = run(redis, "127.0.0.1", str(port), status=1)
    expect("refused" in said.lower(), "a connection that is refused is told")
