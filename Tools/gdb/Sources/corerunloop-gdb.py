# SPDX-License-Identifier: Apache-2.0
"""What gdb knows of run loops: the command crl-loops, and how references to loops, sources, timers, observers and strings are printed.

gdb loads this file with libcorerunloop.so by itself; for a program that has the static library, type `source` and its path. It reads memory
and calls nothing in the process, so it works for core files, too. It needs the library's debugging information (-g).
"""
import itertools
import re
import time

import gdb
import gdb.printing
import gdb.types

ACTIVITIES = ((1, "Entry"), (2, "BeforeTimers"), (4, "BeforeSources"), (32, "BeforeWaiting"), (64, "AfterWaiting"), (128, "Exit"))
NEVER = 2**63 - 1
MOST = 100000  # of one list: memory that is damaged may make it a circle


def type_of(name):
    return gdb.lookup_type(name)


def bits(enumeration):
    """The values of an enumeration of the library, by name."""
    return gdb.types.make_enum_dict(type_of("enum " + enumeration))


def look_up(name):
    return gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name)


def constant(name):
    """The value of an enumerator whose enumeration has no name."""
    return int(look_up(name).value())


def container(link, type_name, field):
    """The structure that a link or node is a member of."""
    whole = type_of(type_name)
    inside = next(one for one in whole.fields() if one.name == field)
    return gdb.Value(int(link) - inside.bitpos // 8).cast(whole.pointer()).dereference()


def plain(value):
    """The value of a field that is atomic: gdb refuses some operations on those."""
    return value.cast(value.type.strip_typedefs().unqualified())


def chain(first, field="next"):
    value, count = first, 0
    while int(value) != 0 and count < MOST:
        yield value.dereference()
        value, count = plain(value[field]), count + 1


def links(head):
    """The links of a list; `head` is the link in its owner."""
    link, count = head["next"], 0
    while int(link) != int(head.address) and count < MOST:
        yield link
        link, count = link["next"], count + 1


def word(address, size=4):
    return int.from_bytes(gdb.selected_inferior().read_memory(address, size).tobytes(), byte_order())


def byte_order():
    return "big" if "big" in gdb.execute("show endian", to_string=True) else "little"


def text_of(string):
    """The text of a CFStringRef, or None if it is not one that this file knows."""
    address = int(string)
    if address == 0:
        return None
    if word(address) & 1:  # a literal of gcc
        characters = []
        for at in itertools.count(address + 4, 4):
            character = word(at)
            if character == 0 or len(characters) == MOST:
                return "".join(characters)
            characters.append(chr(character) if character < 0x110000 else "?")
    stored = gdb.Value(address).cast(type_of("struct string").pointer()).dereference()
    length = int(stored["length"])
    wide = int(stored["object"]["info"]) & bits("string_flag")["string_is_utf16"]
    if length == 0:
        return ""
    data = gdb.selected_inferior().read_memory(int(stored["units"]), min(length, MOST) * (2 if wide else 1)).tobytes()
    return data.decode(("utf-16-" + byte_order()[0] + "e") if wide else "latin-1", "replace")


def name_of(function):
    address = int(function)
    if address == 0:
        return "(none)"
    try:
        block = gdb.block_for_pc(address)
        while block and not block.function:
            block = block.superblock
        if block and int(block.start) == address:
            return block.function.print_name
    except (gdb.error, RuntimeError):
        pass
    said = gdb.execute(f"info symbol {address:#x}", to_string=True)
    return place_of(address) if said.startswith("No symbol") else said.split(" in section")[0].strip()


def place_of(address):
    """program+0x11b7: the file and the place in it."""
    base, place = {}, "code without a file"
    for line in gdb.execute("info proc mappings", to_string=True).splitlines():
        found = re.match(r"\s*0x([0-9a-f]+)\s+0x([0-9a-f]+)\s.*?(/.*)$", line)
        if found:
            begin, end, file = int(found[1], 16), int(found[2], 16), found[3]
            base.setdefault(file, begin)
            if begin <= address < end:
                is_fixed = word(base[file] + 16, 2) == 2  # ET_EXEC: the file has the addresses of the process
                place = f"{file.rsplit('/', 1)[-1]}+{address if is_fixed else address - base[file]:#x}"
    return place


def now(clock):
    """The time on a clock, or None for a core file, whose clocks have stopped."""
    inferior = gdb.selected_inferior()
    connection = getattr(inferior, "connection", None)
    is_live = connection is not None and connection.type == "native"
    return time.clock_gettime_ns(clock) if is_live else None


# What a source of the library itself calls: the file of its `perform`, the type of its object, and the field with the function.
OWNERS = {"CFFileDescriptor.c": ("__CFFileDescriptor", "callout"), "CFSocket.c": ("__CFSocket", "callout"),
          "CFMachPort.c": ("__CFMachPort", "callout"), "local_port.c": ("__CFMessagePort", "side.local.callout")}


def callout_of(source, perform):
    """The program's function: the source's own, or that of the object that it belongs to."""
    try:
        file = gdb.block_for_pc(int(perform)).function.symtab.filename.rsplit("/", 1)[-1]
        owner, path = OWNERS[file]
        found = source["context_info"].cast(type_of("struct " + owner).pointer()).dereference()
        for field in path.split("."):
            found = found[field]
        return found
    except (gdb.error, RuntimeError, AttributeError, KeyError):
        return perform


def instant(ns, clock):
    if ns == NEVER:
        return "never"
    current = now(clock)
    if current is None:
        return f"at {ns / 1e9:.6f} s"
    return f"in {(ns - current) / 1e9:.6f} s" if ns >= current else f"{(current - ns) / 1e9:.6f} s ago"


def yes(value):
    return "Yes" if value else "No"


# ---- items ----

def describe_source(source):
    marks, kinds = bits("mark_state"), bits("source_kind")
    info, mark = int(source["object"]["info"]), int(plain(source["mark"])) & marks["mark_state_mask"]
    kind, is_valid = info >> constant("source_kind_shift") & 0xff, mark != marks["mark_invalid"]
    version = 0 if kind == kinds["source_manual"] or info & constant("source_version_0_bit") else 1
    perform = source["callbacks"][0] if info & 1 else 0
    is_signalled = mark not in [marks[name] for name in ("mark_clear", "mark_coalesced", "mark_invalid")]
    words = [f"version = {version}", f"valid = {yes(is_valid)}", f"signalled = {yes(is_signalled)}", f"order = {int(source['order'])}"]
    if kind != kinds["source_manual"] and is_valid:
        behind = int(source["callbacks"].address) + (info >> constant("source_count_shift") & 15) * type_of("void").pointer().sizeof
        words.append(f"descriptor = {int(gdb.Value(behind).cast(type_of('struct source_descriptor_part').pointer())['descriptor'])}")
    words.append(f"callout = {name_of(callout_of(source, perform))}")
    return f"<CFRunLoopSource {int(source.address):#x}>{{{', '.join(words)}}}"


def describe_timer(timer):
    flags, info = bits("timer_flag"), int(timer["object"]["info"])
    extra = timer["own"]["extra"].dereference() if info & flags["timer_has_extra"] else None
    words = [f"valid = {yes(info & flags['timer_is_valid'])}", f"firing = {yes(info & flags['timer_is_firing'])}",
             f"next fire date = {instant(int(timer['fire_ns']), time.CLOCK_BOOTTIME)}", f"interval = {float(timer['interval']):g}",
             f"tolerance = {float(extra['tolerance']) if extra else 0:g}", f"order = {int(extra['order']) if extra else 0}",
             f"callout = {name_of(timer['callout'])}"]
    return f"<CFRunLoopTimer {int(timer.address):#x}>{{{', '.join(words)}}}"


def describe_observer(observer):
    activities = int(observer["activities"])
    names = "|".join(name for bit, name in ACTIVITIES if activities & bit) or "none"
    is_valid = int(plain(observer["state"])) & bits("observer_state")["observer_valid"]
    words = [f"valid = {yes(is_valid)}", f"activities = {names}", f"repeats = {yes(bool(observer['repeats']))}",
             f"order = {int(observer['order'])}", f"callout = {name_of(observer['callout'])}"]
    return f"<CFRunLoopObserver {int(observer.address):#x}>{{{', '.join(words)}}}"


def sources_of(mode):
    sources = mode["sources"]
    if int(sources["buckets"]) == 0:
        firsts = [sources["first"]]
    else:
        firsts = (sources["buckets"][i] for i in range(min(int(sources["bucket_count"]), MOST)))
    found = [member["binding"]["source"].dereference() for first in firsts for member in chain(first, "chain")]
    return sorted(found, key=lambda source: int(source["order"]))


def timer_of_node(node):
    member = container(node, "struct timer_member", "node")
    if int(node["tag"]) & bits("timer_member_tag")["timer_member_is_further"]:
        return container(member.address, "struct timer_further_member", "member")["timer"].dereference()
    return container(member.address, "struct __CFRunLoopTimer", "first_member")


def modes_of(timer):
    """The addresses of the modes that a timer is in."""
    members = [timer["first_member"]]
    if int(timer["object"]["info"]) & bits("timer_flag")["timer_has_extra"]:
        members += [further["member"] for further in chain(timer["own"]["extra"]["further"])]
    return [int(member["mode"]) for member in members]


def firing_in(loop):
    """The loop's timers in callout, innermost first: they stand in no heap, and one that hangs is looked for most of all."""
    at, count = int(loop["firing"]), 0
    while at != 0 and count < MOST:
        timer = gdb.Value(at).cast(type_of("struct __CFRunLoopTimer").pointer()).dereference()
        yield timer
        at, count = int(timer["first_member"]["node"]["sequence"]), count + 1


def timers_of(loop, mode):
    heap = mode["timers"]
    timers = [timer_of_node(heap["block"]["entries"][i]["node"]) for i in range(min(int(heap["count"]), MOST))]
    timers += [timer for timer in firing_in(loop) if int(mode.address) in modes_of(timer)]
    found = {int(timer.address): timer for timer in timers}  # one that joins a mode in its callout is in both
    return sorted(found.values(), key=lambda timer: int(timer["fire_ns"]))


def observers_of(mode):
    found = {}
    first, last = mode["observers"].type.range()
    for activity in range(first, last + 1):
        observers = mode["observers"][activity]
        for i in range(min(int(observers["count"]), MOST) if int(observers) else 0):
            found[int(observers["observers"][i])] = observers["observers"][i].dereference()
    return sorted(found.values(), key=lambda observer: int(observer["order"]))


# ---- loops ----

def all_loops():
    """Each loop of the process, in the order in which they were made."""
    if gdb.selected_inferior().pid == 0:
        raise gdb.GdbError("crl-loops: no process with libcorerunloop is being debugged, and no core file of one")
    names = ("crl_thread_loops", "thread_loops")  # by its name for the linker, or in the source, as compilers differ
    found = next((one for one in map(look_up, names) if one), None)
    if found is None:
        raise gdb.GdbError("crl-loops: the process has no libcorerunloop with debugging information")
    for link in links(found.value()["all"]):
        yield container(link, "struct __CFRunLoop", "registry_link")


def thread_of(loop):
    """The words for gdb's thread of a loop."""
    if bool(loop["is_dead"]):
        return "thread that has ended"
    try:
        thread = gdb.selected_inferior().thread_from_handle(plain(loop["thread"]))
    except (gdb.error, RuntimeError):
        thread = None
    name = f", {thread.name}" if thread and thread.name else ""  # a core file has none
    return f"thread {thread.num} (LWP {thread.ptid[1]}{name})" if thread else "thread unknown to gdb"


def runs_of(loop):
    return [text_of(run["mode"]["name"]) for run in chain(loop["innermost_run"], "outer")]


def local_ports():
    """The valid local ports of the process, by name: the loop that has the port's source, or 0."""
    found = {}
    buckets = gdb.parse_and_eval("'port_table.c'::buckets")
    first, last = buckets.type.range()
    for number in range(first, last + 1):
        for link in links(buckets[number]):
            port = container(link, "struct __CFMessagePort", "table_link")
            source = port["side"]["local"]["source"]
            if not port["is_remote"] and plain(port["is_valid"]):
                found[port["name"]["bytes"].string()] = int(plain(source["first_binding"]["loop"])) if int(source) else 0
    return found


def request_of(loop):
    """What the thread of a loop waits for in a request: the port's name, the message's number if it is known, and since when; or None."""
    if bool(loop["is_dead"]) or int(loop["innermost_run"]) == 0:
        return None
    selected, port, since, message = gdb.selected_thread(), None, 0, None
    try:
        gdb.selected_inferior().thread_from_handle(plain(loop["thread"])).switch()
        frame = gdb.newest_frame()
        for _ in range(MOST):
            if frame is None or (port and message is not None):
                break
            name = frame.name() or ""
            if port is None and name.endswith(("reply_wait_run", "await_local_reply", "local_request_send", "socket_request_send")):
                port, since = wait_in(frame)
            if port is not None and name.endswith("request_send"):
                message = number_in(frame)
            frame = frame.older()
    except (gdb.error, RuntimeError, AttributeError):
        pass  # the thread has gone, or its stack cannot be read further
    finally:
        selected.switch()
    return (port, message, since) if port else None


def variable_of(frame, name):
    try:
        value = frame.read_var(name)
        return None if value.is_optimized_out else value
    except (gdb.error, ValueError):
        return None


def wait_in(frame):
    wait = variable_of(frame, "wait")
    if wait is None or "reply_wait" not in str(wait.type):
        return None, 0
    try:
        wait = wait.dereference() if wait.type.strip_typedefs().code == gdb.TYPE_CODE_PTR else wait
        return wait["port"]["name"]["bytes"].string(), int(wait["now_ns"])
    except gdb.error:
        return None, 0


def number_in(frame):
    request = variable_of(frame, "request")
    try:
        return int(request["message_id"]) if request is not None else None
    except gdb.error:
        return None


def describe_request(loop):
    """", waits for a reply from a, message 2, since 3.000000 s, which waits for b: a deadlock", or ""."""
    request = request_of(loop)
    if not request:
        return ""
    port, message, since = request
    current = now(time.CLOCK_MONOTONIC)
    words = f", waits for a reply from {port}" + ("" if message is None else f", message {message}")
    words += f", since {(current - since) / 1e9:.6f} s" if current and since else ""
    ports, seen = local_ports(), set()
    while port in ports and ports[port] and port not in seen:
        if ports[port] == int(loop.address):
            return words + ": a deadlock"
        seen.add(port)
        other = request_of(gdb.Value(ports[port]).cast(type_of("struct __CFRunLoop").pointer()).dereference())
        if not other:
            break
        port = other[0]
        words += f", which waits for {port}"
    return words


def state_of(loop):
    runs = runs_of(loop)
    words = "runs mode " + " inside ".join(runs) if runs else "does not run"
    if int(loop["waiting"]):
        limit = int(loop["sleep_limit_ns"])
        words = f"waits in mode {text_of(loop['waiting']['name'])}"
        words += f", wakes {instant(limit, time.CLOCK_MONOTONIC)}" if limit != NEVER else ""
        words += "" if len(runs) < 2 else ", inside " + " inside ".join(runs[1:])
        words += describe_request(loop)
    return words


def describe_loop(loop):
    return f"<CFRunLoop {int(loop.address):#x}>{{{'main' if bool(loop['is_main']) else 'secondary'}, {thread_of(loop)}, {state_of(loop)}}}"


def blocks_in(queue):
    return sum(1 for _ in chain(queue["head"]))


def describe_mode(mode):
    words = f"mode {text_of(mode['name'])}{', common' if bool(mode['is_common']) else ''}"
    count = blocks_in(mode["blocks"])
    return words + (f", blocks = {count}" if count else "")


def lines_of(loop):
    yield describe_loop(loop)
    shared = blocks_in(loop["common_blocks"]) + blocks_in(loop["listed_blocks"])
    if shared:
        yield f"    blocks for several modes = {shared}"
    for mode in chain(loop["modes"]):
        if bool(mode["is_declared"]):
            items = [describe_source(one) for one in sources_of(mode)] + [describe_timer(one) for one in timers_of(loop, mode)]
            items += [describe_observer(one) for one in observers_of(mode)]
            yield f"    {describe_mode(mode)}{':' if items else ': no items'}"
            yield from ("        " + item for item in items)


class Loops(gdb.Command):
    """List all run loops of the process or core file, with their modes and what is in each.

Usage: crl-loops [LOOP]
With LOOP, an expression whose value is a CFRunLoopRef, only that one."""

    def __init__(self):
        super().__init__("crl-loops", gdb.COMMAND_STATUS, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        if argument.strip():
            loops = [gdb.Value(int(gdb.parse_and_eval(argument))).cast(type_of("struct __CFRunLoop").pointer()).dereference()]
        else:
            loops = all_loops()
        count = 0
        for loop in loops:
            count += 1
            try:
                for line in lines_of(loop):
                    gdb.write(line + "\n")
            except gdb.MemoryError as error:
                gdb.write(f"    cannot be read further: {error}\n")
        if count == 0:
            gdb.write("no run loop has been made\n")


# ---- pretty-printers ----

class Described:
    def __init__(self, value, describe):
        self.value, self.describe = value, describe

    def to_string(self):
        return self.describe(self.value)


STRUCTURES = {"__CFRunLoop": describe_loop, "__CFRunLoopSource": describe_source, "__CFRunLoopTimer": describe_timer,
              "__CFRunLoopObserver": describe_observer}
POINTERS = {"CFRunLoopRef": ("__CFRunLoop", describe_loop), "CFRunLoopSourceRef": ("__CFRunLoopSource", describe_source),
            "CFRunLoopTimerRef": ("__CFRunLoopTimer", describe_timer), "CFRunLoopObserverRef": ("__CFRunLoopObserver", describe_observer)}
TEXTS = ("CFStringRef", "CFMutableStringRef", "CFRunLoopMode")


class Reference:
    """A reference by the name of its type: CFRunLoopTimerRef and so on."""

    def __init__(self, value, structure, describe):
        self.value, self.structure, self.describe = value, structure, describe

    def to_string(self):
        if int(self.value) == 0:
            return "NULL"
        whole = gdb.Value(int(self.value)).cast(type_of("struct " + self.structure).pointer()).dereference()
        return self.describe(whole)


class TextReference:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        text = text_of(self.value)
        return "NULL" if text is None else f"{int(self.value):#x} \"{text}\""


class Printers(gdb.printing.PrettyPrinter):
    def __init__(self):
        super().__init__("corerunloop")

    def __call__(self, value):
        name = value.type.unqualified().name
        if name in POINTERS:
            return Reference(value, *POINTERS[name])
        if name in TEXTS:
            return TextReference(value)
        tag = value.type.unqualified().strip_typedefs().tag
        if tag in STRUCTURES and value.address is not None:
            return Described(value, STRUCTURES[tag])
        if tag == "mode" and value.address is not None and any(field.name == "is_declared" for field in value.type.fields()):
            return Described(value, describe_mode)
        return None


Loops()
gdb.printing.register_pretty_printer(gdb.current_objfile(), Printers(), replace=True)
