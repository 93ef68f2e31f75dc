/* SPDX-License-Identifier: Apache-2.0 */
/* The words for errors of TLS and of names of hosts. Constant; no locks, so that the child of a fork has them as well. */
#ifndef CRL_RUNTIME_ERROR_REASON_H
#define CRL_RUNTIME_ERROR_REASON_H

#include "Runtime/link_names.h"

#include "CoreFoundation/CFBase.h"

/* For a code of CFNetwork/CFSocketStream.h; NULL for any other. */
const char *error_reason_of_tls(CFIndex code);
/* For a code of getaddrinfo; NULL for any other. gai_strerror takes locks on its way to a translation. */
const char *error_reason_of_name(CFIndex code);

#endif
