#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ZeroMQ's descriptor in a run loop, over loopback and over a Unix socket.

Rules: 278 279 286
"""
import os

from server import example, expect, folder, run

zeromq = example("zeromq")
with folder() as where:
    for endpoint in ("tcp://127.0.0.1:*", "ipc://" + os.path.join(where, "zeromq")):
        expect("2000 requests, 2000 right answers" in run(zeromq, "2000", endpoint), "every request was answered")
