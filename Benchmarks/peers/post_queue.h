/* SPDX-License-Identifier: Apache-2.0 */
/* Posts for peers that have none: a list under a lock, and a wake-up, as their manuals advise. */
#ifndef POST_QUEUE_H
#define POST_QUEUE_H

#include <pthread.h>
#include <stdlib.h>

struct posted {
    struct posted *next;
    peer_function function;
    void *info;
};

struct post_queue {
    pthread_mutex_t lock;
    struct posted *first;
    struct posted **last;
};

static inline void post_queue_begin(struct post_queue *queue)
{
    (void)pthread_mutex_init(&queue->lock, NULL);
    queue->last = &queue->first;
}

static inline void post_queue_push(struct post_queue *queue, peer_function function, void *info)
{
    struct posted *posted = malloc(sizeof *posted);

    *posted = (struct posted){NULL, function, info};
    (void)pthread_mutex_lock(&queue->lock);
    *queue->last = posted;
    queue->last = &posted->next;
    (void)pthread_mutex_unlock(&queue->lock);
}

static inline void post_queue_run(struct post_queue *queue)
{
    struct posted *posted;

    (void)pthread_mutex_lock(&queue->lock);
    posted = queue->first;
    queue->first = NULL;
    queue->last = &queue->first;
    (void)pthread_mutex_unlock(&queue->lock);
    while (posted) {
        struct posted *next = posted->next;

        posted->function(posted->info);
        free(posted);
        posted = next;
    }
}

#endif
