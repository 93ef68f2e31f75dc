#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libCoreFoundation.so, whose symbols are Apple's plain names, as a foreign function interface sees it: a timer, a source and an observer
on a loop, through ctypes alone.

usage: test_plain_names.py LIBRARY
Rules: 1 37a 85
"""
import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
pointer = ctypes.c_void_p
FINISHED, STOPPED, TIMED_OUT, HANDLED_SOURCE = 1, 2, 3, 4

TimerCallBack = ctypes.CFUNCTYPE(None, pointer, pointer)
ObserverCallBack = ctypes.CFUNCTYPE(None, pointer, ctypes.c_ulong, pointer)
Perform = ctypes.CFUNCTYPE(None, pointer)


class SourceContext(ctypes.Structure):
    _fields_ = [("version", ctypes.c_long), ("info", pointer), ("retain", pointer), ("release", pointer), ("copyDescription", pointer),
                ("equal", pointer), ("hash", pointer), ("schedule", pointer), ("cancel", pointer), ("perform", Perform)]


def declare(name, result, *arguments):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


CFRunLoopGetCurrent = declare("CFRunLoopGetCurrent", pointer)
CFRunLoopRunInMode = declare("CFRunLoopRunInMode", ctypes.c_int32, pointer, ctypes.c_double, ctypes.c_bool)
CFRunLoopStop = declare("CFRunLoopStop", None, pointer)
CFRunLoopAddTimer = declare("CFRunLoopAddTimer", None, pointer, pointer, pointer)
CFRunLoopAddSource = declare("CFRunLoopAddSource", None, pointer, pointer, pointer)
CFRunLoopAddObserver = declare("CFRunLoopAddObserver", None, pointer, pointer, pointer)
CFRunLoopTimerCreate = declare("CFRunLoopTimerCreate", pointer, pointer, ctypes.c_double, ctypes.c_double, ctypes.c_ulong, ctypes.c_long,
                               TimerCallBack, pointer)
CFRunLoopSourceCreate = declare("CFRunLoopSourceCreate", pointer, pointer, ctypes.c_long, ctypes.POINTER(SourceContext))
CFRunLoopSourceSignal = declare("CFRunLoopSourceSignal", None, pointer)
CFRunLoopSourceInvalidate = declare("CFRunLoopSourceInvalidate", None, pointer)
CFRunLoopObserverCreate = declare("CFRunLoopObserverCreate", pointer, pointer, ctypes.c_ulong, ctypes.c_bool, ctypes.c_long,
                                  ObserverCallBack, pointer)
CFAbsoluteTimeGetCurrent = declare("CFAbsoluteTimeGetCurrent", ctypes.c_double)
CFGetRetainCount = declare("CFGetRetainCount", ctypes.c_long, pointer)
CFRelease = declare("CFRelease", None, pointer)
CFStringCreateWithCString = declare("CFStringCreateWithCString", pointer, pointer, ctypes.c_char_p, ctypes.c_uint32)
CFStringGetCString = declare("CFStringGetCString", ctypes.c_bool, pointer, ctypes.c_char_p, ctypes.c_long, ctypes.c_uint32)
default_mode = pointer.in_dll(library, "kCFRunLoopDefaultMode")

events = []
loop = CFRunLoopGetCurrent()
assert loop and loop == CFRunLoopGetCurrent()
assert CFRunLoopRunInMode(default_mode, 0.0, False) == FINISHED, "an empty mode is finished at once"


@Perform
def perform(info):
    events.append("source")


@TimerCallBack
def fire(timer, info):
    events.append("timer")
    if events.count("timer") == 2:
        CFRunLoopStop(loop)
    else:
        CFRunLoopSourceSignal(source)


@ObserverCallBack
def observe(observer, activity, info):
    events.append({1: "entry", 128: "exit"}[activity])


context = SourceContext(perform=perform)
source = CFRunLoopSourceCreate(None, 0, ctypes.byref(context))
timer = CFRunLoopTimerCreate(None, CFAbsoluteTimeGetCurrent() + 0.01, 0.02, 0, 0, fire, None)
observer = CFRunLoopObserverCreate(None, 1 | 128, True, 0, observe, None)
CFRunLoopAddObserver(loop, observer, default_mode)
CFRunLoopAddSource(loop, source, default_mode)
CFRunLoopAddTimer(loop, timer, default_mode)
assert CFRunLoopRunInMode(default_mode, 10.0, False) == STOPPED
assert events == ["entry", "timer", "source", "timer", "exit"], events

CFRunLoopSourceSignal(source)
assert CFRunLoopRunInMode(default_mode, 10.0, True) == HANDLED_SOURCE
assert CFRunLoopRunInMode(default_mode, 0.001, False) == TIMED_OUT
CFRunLoopSourceInvalidate(source)
assert CFGetRetainCount(source) == 1, "the loop has let go of it"
for item in (source, timer, observer):
    CFRelease(item)

text = "naïve ☃".encode()
string = CFStringCreateWithCString(None, text, 0x08000100)
copy = ctypes.create_string_buffer(64)
assert CFStringGetCString(string, copy, 64, 0x08000100) and copy.value == text
CFRelease(string)

assert not hasattr(library, "crl_CFRunLoopRun"), "the library has Apple's names only"
print("check-plain: passed")
