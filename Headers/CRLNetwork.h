/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * The add-on library libcorerunloop-net: names of hosts and TLS for the streams of sockets, and names for CFHost.
 *
 * A program that is linked with it needs no call: the library installs itself when it is loaded. `pkg-config --libs corerunloop-net` and
 * CMake's CoreRunLoop::Net link it in such a way that the linker keeps it although the program names nothing of it. It can also be loaded
 * by dlopen, or by LD_PRELOAD into a program that knows nothing of it.
 *
 * The child of a fork may ask for names and use TLS, whatever other threads did in this library: a fork waits until none of them is in
 * OpenSSL. Locks of OpenSSL that a thread holds because the program calls it directly stay taken in the child. A question that is under way
 * at the fork is asked again in the child, and both get their answer. A connection that is open is shared with the parent, as its socket
 * is: one of the two may use it, and the other lets go of it without closing it, as _exit and exec do.
 */

#if !defined(CRL_NETWORK_H)
#define CRL_NETWORK_H 1

#include "CoreFoundation/CFBase.h"

CF_EXTERN_C_BEGIN

/**
 * Installs the library's functions, as loading it does. A call also keeps a linker from leaving the library out.
 *
 * Threads: any. Further calls do nothing.
 */
CF_EXPORT void CRLNetworkInstall(void) CRL_LINK(CRLNetworkInstall);

CF_EXTERN_C_END

#endif /* ! CRL_NETWORK_H */
