/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns each thread's pool of lent objects. A pool is touched by its own thread only.
 *
 * Draining takes the objects out one at a time, so that a finalizer may lend further objects; those are released by the same drain. A
 * thread's end drains through a pthread key, whose destructor the system calls again if another destructor lent something later.
 */
#include "Runtime/Object/autorelease.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "CoreFoundation/CFBase.h"
#include "Runtime/Object/object.h"
#include "Support/fault.h"

enum { capacity_first = 16 };

struct pool {
    CFTypeRef *objects;
    size_t count;
    size_t capacity;
};

static __thread struct pool *thread_pool __attribute__((tls_model("initial-exec")));
static pthread_key_t end_of_thread;
static bool has_end_of_thread;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void autorelease_drain(void)
{
    struct pool *pool = thread_pool;

    while (pool != NULL && pool->count > 0) {
        pool->count--;
        CFRelease(pool->objects[pool->count]);
    }
}

bool autorelease_has_objects(void)
{
    return thread_pool != NULL && thread_pool->count > 0;
}

static void pool_free(void *pool)
{
    autorelease_drain();
    thread_pool = NULL;
    free(((struct pool *)pool)->objects);
    free(pool);
}

static void make_key(void)
{
    has_end_of_thread = pthread_key_create(&end_of_thread, pool_free) == 0;
}

static struct pool *pool_of_thread(void)
{
    if (thread_pool != NULL) {
        return thread_pool;
    }
    pthread_once(&once, make_key);
    struct pool *pool = has_end_of_thread ? calloc(1, sizeof *pool) : NULL;
    if (pool == NULL || pthread_setspecific(end_of_thread, pool) != 0) {
        free(pool);
        return NULL;
    }
    thread_pool = pool;
    return pool;
}

static bool pool_add(struct pool *pool, CFTypeRef object)
{
    if (pool->count == pool->capacity) {
        size_t capacity = pool->capacity == 0 ? capacity_first : pool->capacity * 2;
        CFTypeRef *objects = realloc(pool->objects, capacity * sizeof *objects);

        if (objects == NULL) {
            return false;
        }
        pool->objects = objects;
        pool->capacity = capacity;
    }
    pool->objects[pool->count++] = object;
    return true;
}

CFTypeRef CFAutorelease(CFTypeRef object)
{
    static atomic_flag logged = ATOMIC_FLAG_INIT;

    object_class_of(object, "CFAutorelease");
    struct pool *pool = pool_of_thread();
    if (pool == NULL || !pool_add(pool, object)) {
        fault_log_once(&logged, "CFAutorelease: no memory for the pool; the object is never freed");
    }
    return object;
}
