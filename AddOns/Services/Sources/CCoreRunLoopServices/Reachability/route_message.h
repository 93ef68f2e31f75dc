/* SPDX-License-Identifier: Apache-2.0 */
/* A question for one route in the kernel's protocol, and its answer. Pure: no state, no calls. */
#ifndef CRL_SERVICES_ROUTE_MESSAGE_H
#define CRL_SERVICES_ROUTE_MESSAGE_H

#include "services_link_names.h"

#include <stdbool.h>
#include <stddef.h>

#include "Reachability/route_kernel.h"

enum { route_question_most = 128, route_answer_most = 1024 };

struct route_answer {
    bool is_local; /* the address is the machine's own */
    bool has_gateway;
    unsigned interface; /* 0: not said */
};

/* Writes the question for the way to `remote`, from `local` if it has an address, both of one family. Returns its size. */
size_t route_question_make(char question[route_question_most], const union route_end *local, const union route_end *remote);
/* Returns false for what is no answer with a route. */
bool route_answer_read(struct route_answer *ret_answer, const void *bytes, size_t size);

#endif
