#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sd-bus in a run loop, on a bus of its own: a service, a client, answers and a signal.

Rules: 278 280 281 286
"""
import os

from server import accepts, example, expect, folder, run, running, tool

CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={path}</listen>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"""

dbus = example("dbus")
daemon = tool("dbus-daemon")
with folder() as where:
    path = os.path.join(where, "bus")
    configuration = os.path.join(where, "bus.conf")
    with open(configuration, "w", encoding="utf-8") as file:
        file.write(CONFIGURATION.format(path=path))
    environment = dict(os.environ, DBUS_SESSION_BUS_ADDRESS=f"unix:path={path}")
    with running([daemon, "--nofork", "--nopidfile", f"--config-file={configuration}"], lambda: accepts(path)):
        expect("1000 answers, and the signal" in run(dbus, "1000", env=environment), "every call was answered")
    expect("no session bus" in run(dbus, status=1, env=environment), "a bus that is gone is told")
