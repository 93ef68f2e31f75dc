/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name registry of CFSocket, a protocol of 1999 whose servers nobody runs. The keys and the port number are there for programs that
 * name them; the calls fail.
 *
 * Any thread. The port number is an atomic variable of its own.
 */
#include "CoreFoundation/CFSocket.h"

enum { default_registry_port = 2454 };

const CFStringRef kCFSocketCommandKey = CFSTR("Command");
const CFStringRef kCFSocketNameKey = CFSTR("Name");
const CFStringRef kCFSocketValueKey = CFSTR("Value");
const CFStringRef kCFSocketResultKey = CFSTR("Result");
const CFStringRef kCFSocketErrorKey = CFSTR("Error");
const CFStringRef kCFSocketRegisterCommand = CFSTR("Register");
const CFStringRef kCFSocketRetrieveCommand = CFSTR("Retrieve");

static _Atomic UInt16 registry_port = default_registry_port;

CFSocketError CFSocketRegisterValue(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout, CFStringRef name,
                                    CFPropertyListRef value)
{
    (void)nameServerSignature, (void)timeout, (void)name, (void)value;
    return kCFSocketError;
}

CFSocketError CFSocketCopyRegisteredValue(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout, CFStringRef name,
                                          CFPropertyListRef *value, CFDataRef *nameServerAddress)
{
    (void)nameServerSignature, (void)timeout, (void)name, (void)value, (void)nameServerAddress;
    return kCFSocketError;
}

CFSocketError CFSocketRegisterSocketSignature(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout, CFStringRef name,
                                              const CFSocketSignature *signature)
{
    (void)nameServerSignature, (void)timeout, (void)name, (void)signature;
    return kCFSocketError;
}

CFSocketError CFSocketCopyRegisteredSocketSignature(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout, CFStringRef name,
                                                    CFSocketSignature *signature, CFDataRef *nameServerAddress)
{
    (void)nameServerSignature, (void)timeout, (void)name, (void)signature, (void)nameServerAddress;
    return kCFSocketError;
}

CFSocketError CFSocketUnregister(const CFSocketSignature *nameServerSignature, CFTimeInterval timeout, CFStringRef name)
{
    (void)nameServerSignature, (void)timeout, (void)name;
    return kCFSocketError;
}

void CFSocketSetDefaultNameRegistryPortNumber(UInt16 port)
{
    registry_port = port;
}

UInt16 CFSocketGetDefaultNameRegistryPortNumber(void)
{
    return registry_port;
}
