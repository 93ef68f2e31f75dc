/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a request that is given after the callout has returned, on any thread.
 *
 * The callout defers the reply; then the request keeps its channel and its share of the port's budget until it is answered. Whoever defers
 * is told when nobody waits for the answer any more: the asker has given up or died, or the port has ended. That is noticed by the wait set
 * of the port's channels, which a source watches in a loop of the program's choice, and within the process by the asker itself.
 *
 * The port's lock guards the list of the deferred replies that are watched. No lock is held while the program is told.
 */
#ifndef CRL_PORT_ASYNC_DEFERRED_REPLY_H
#define CRL_PORT_ASYNC_DEFERRED_REPLY_H

#include "Port/link_names.h"

#include "Port/Message/received_message.h"

struct deferred_reply;

/*
 * Called in a callout, at most once: the reply to `message` comes later, and what the callout returns is not sent. Returns NULL if there is
 * no memory; then nothing has changed. deferred_reply_answer has to follow, also for a one-way message, whose answer goes nowhere.
 */
struct deferred_reply *received_message_defer(struct received_message *message);

/* Returns the instant after which the asker waits no more, or 0 if that is not known. */
int64_t deferred_reply_deadline(const struct deferred_reply *deferred);
/* Returns the port that has received the request; the deferred reply has the reference. */
CFMessagePortRef deferred_reply_port(const struct deferred_reply *deferred);

/*
 * Makes `asker_left` be called once if nobody waits for the answer any more, on any thread, perhaps in this call. If another thread answers
 * at the same time, it may come a little later than the answer. `release` gives `info` back when it cannot come any more.
 */
void deferred_reply_watch(struct deferred_reply *deferred, void (*asker_left)(void *info), void *info, void (*release)(void *info));

/*
 * Answers, on any thread, and gives the deferred reply up. `data` may be NULL. With a status, of enum wire_status, there is no answer, and
 * the data is a text that says why. If nobody waits any more, it is thrown away.
 */
void deferred_reply_answer(struct deferred_reply *deferred, uint32_t status, CFDataRef data);

/*
 * Makes the loop notice askers of the port that leave, in its default mode, until the port is invalid. Only the first call of a port does
 * anything. Returns false if there is no memory or descriptor: then only the end of a wait in this process is noticed.
 */
bool deferred_replies_listen(CFMessagePortRef port, CFRunLoopRef loop);
/* Takes the source out of its loop, before the wait set is closed. */
void deferred_replies_end_listening(CFMessagePortRef port);
/* Tells those whose askers have left. With `all` the port has ended, and nobody waits. */
void deferred_replies_tell(CFMessagePortRef port, bool all);

#endif
