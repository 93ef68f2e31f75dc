#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libpq's asynchronous queries, LISTEN and NOTIFY, with a real PostgreSQL on a Unix socket. The server refuses root: then it runs as
somebody else.

Rules: 251 253 255 262 265 267
"""
import glob
import os
import pwd
import subprocess

from server import PATIENCE_S, example, expect, folder, run, running, skip, tool

postgres = example("postgres")
folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
initdb = tool("initdb", *folders)
server = tool("postgres", *folders)
user = None
if os.geteuid() == 0:
    user = next((name for name in ("postgres", "nobody") if name in {entry.pw_name for entry in pwd.getpwall()}), None)
    if not user:
        skip("this is root, and there is no other user to run PostgreSQL as")
as_user = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}
with folder(user) as where:
    data = os.path.join(where, "data")
    subprocess.run([initdb, "-D", data, "-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"], check=True, cwd=where,
                   stdout=subprocess.DEVNULL, timeout=4 * PATIENCE_S, **as_user)
    connection = f"host={where} user=tester dbname=postgres"

    def is_ready():
        # A server that still starts accepts connections to refuse them.
        return subprocess.run([tool("pg_isready", *folders), "-q", "-h", where, "-U", "tester"], check=False).returncode == 0

    with running([server, "-D", data, "-k", where, "-c", "listen_addresses=", "-c", "fsync=off"], is_ready, cwd=where, **as_user):
        said = run(postgres, connection)
        expect("sum: 5000050000" in said, "the query was answered")
        expect([line for line in said.splitlines() if line.startswith("notified")] == [f"notified: corerunloop {i}" for i in (1, 2, 3)],
               "the notifications came in order")
        expect("cannot connect" in run(postgres, f"host={where} user=nobody dbname=nowhere", status=1), "a refusal is told")
    expect("cannot connect" in run(postgres, connection, status=1), "a server that is gone is told")
