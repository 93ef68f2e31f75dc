/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the core its functions for names (c-ares) and TLS (OpenSSL) when the library is loaded. */
#include "CRLNetwork.h"

#include <ares.h>
#include <pthread.h>

#include "CRLStreamNetwork.h"
#include "query.h"
#include "session.h"

static const CRLStreamNetwork network = {
    .version = 1,
    .resolve = query_resolve,
    .resolveAddress = query_resolve_address,
    .scheduleQuery = query_schedule,
    .unscheduleQuery = query_unschedule,
    .waitForQuery = query_wait,
    .freeQuery = query_free,
    .createSession = session_create,
    .handshake = session_handshake,
    .receive = session_receive,
    .send = session_send,
    .look = session_look,
    .holdsBytes = session_holds_bytes,
    .copyProperty = session_copy_property,
    .freeSession = session_free,
    .advanceQuery = query_advance,
    .queryDescriptor = query_descriptor,
};

static void install_network(void)
{
    (void)ares_library_init(ARES_LIB_INIT_ALL); /* a program may call it as well: c-ares counts the calls */
    CRLStreamSetNetwork(&network);
}

__attribute__((constructor)) void CRLNetworkInstall(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, install_network);
}
