/* SPDX-License-Identifier: Apache-2.0 */
/* See background_file.h. */
#include "File/background_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "File/file_kernel.h"
#include "Support/invariant.h"
#include "Work/work.h"

/* ---- what is to be done ---- */

enum file_step { file_no_step, file_open, file_read, file_write, file_sync, file_close };

/* Nothing more is to be read, or written, so that the file can be closed. */
REQUIRES(the_service_lock) static bool is_over(const struct background_file *file)
{
    if (file->error) {
        return true;
    }
    return file->is_reader ? file->is_closed || file->is_at_end : (file->is_closed || file->is_finishing) && file->count == 0;
}

/* A writer makes its file even if it is closed at once. */
REQUIRES(the_service_lock) static enum file_step next_step(const struct background_file *file)
{
    if (!file->was_opened) {
        return file->error || (file->is_reader && file->is_closed) ? file_no_step : file_open;
    }
    if (file->descriptor < 0) {
        return file_no_step;
    }
    if (is_over(file)) {
        return file->syncs && !file->error ? file_sync : file_close;
    }
    if (file->is_reader) {
        return file_room - file->count >= file_block ? file_read : file_no_step; /* rather a block at a time than the program's pieces */
    }
    return file->count > 0 ? file_write : file_no_step;
}

/* What a stream tells of the file; see CRLStreamSetState. */
REQUIRES(the_service_lock) static CFIndex state_of(const struct background_file *file)
{
    if (!file->was_opened) {
        return 0;
    }
    if (file->is_reader && file->count > 0) {
        return kCFStreamEventHasBytesAvailable;
    }
    if (file->error) {
        return file->error;
    }
    if (file->is_at_end || (file->is_finishing && file->descriptor < 0)) {
        return kCFStreamEventEndEncountered;
    }
    return !file->is_reader && !file->is_finishing && file->count < file_room ? kCFStreamEventCanAcceptBytes : 0;
}

/* Returns whether it has changed. */
REQUIRES(the_service_lock) static bool note_state(struct background_file *file)
{
    CFIndex state = state_of(file);
    bool has_changed = file->state != state;

    file->state = state;
    if (has_changed && file->stream) {
        CRLStreamSetState(file->stream, state);
    }
    return has_changed;
}

/* Tells the stream, which background_file_forget waits for. Drops the lock meanwhile. */
REQUIRES(the_service_lock) static void tell_state(struct background_file *file)
{
    CFTypeRef stream = file->stream;

    if (stream) {
        file->tellers++;
        service_lock_drop(&file->lock);
        CRLStreamTellState(stream);
        service_lock_take(&file->lock);
        invariant(file->tellers > 0);
        file->tellers--;
        (void)pthread_cond_broadcast(&file->changed);
    }
}

/* ---- the steps ---- */

/* Returns the descriptor. */
static int open_at_start(const struct background_file *file)
{
    int flags = file->is_reader ? O_RDONLY : O_WRONLY | O_CREAT | (file->appends ? O_APPEND : O_TRUNC);
    int opened = file_kernel.open(file->path, flags);
    int64_t place = opened >= 0 && file->start > 0 ? file_kernel.seek(opened, file->start) : 0;

    if (place < 0) {
        (void)file_kernel.close(opened);
        return (int)place;
    }
    return opened;
}

/* The piece of the ring, from `place` on, up to `size` bytes and not round its end. */
static size_t straight(size_t place, size_t size)
{
    size_t most = file_room - place < file_block ? file_room - place : file_block;

    return size < most ? size : most;
}

/* Does the step, with the ring as it was when that was chosen. The descriptor is the caller's. */
static ssize_t do_step(struct background_file *file, enum file_step step, size_t begin, size_t count)
{
    size_t end = (begin + count) % file_room;

    switch (step) {
    case file_open:
        return open_at_start(file);
    case file_read:
        return file_kernel.read(file->descriptor, file->bytes + end, straight(end, file_room - count));
    case file_write:
        return file_kernel.write(file->descriptor, file->bytes + begin, straight(begin, count));
    case file_sync:
        return file_kernel.sync(file->descriptor);
    default:
        return file_kernel.close(file->descriptor);
    }
}

/* A close that fails has closed the file, and what was read from it stays good. */
REQUIRES(the_service_lock) static void take_result(struct background_file *file, enum file_step step, ssize_t result)
{
    if (step == file_close) {
        file->descriptor = -1;
    }
    if (result < 0) {
        file->error = file->error || (step == file_close && file->is_reader) ? file->error : (int)result;
        return;
    }
    switch (step) {
    case file_open:
        file->descriptor = (int)result;
        file->was_opened = true;
        break;
    case file_read:
        file->count += (size_t)result;
        file->is_at_end = result == 0;
        break;
    case file_write:
        file->begin = (file->begin + (size_t)result) % file_room;
        file->count -= (size_t)result;
        break;
    default:
        file->syncs = false;
        break;
    }
    invariant(file->count <= file_room && file->begin < file_room);
}

/* Does the next step. Drops the lock meanwhile. The caller has made itself the worker. */
REQUIRES(the_service_lock) static void make_step(struct background_file *file, enum file_step step)
{
    size_t begin = file->begin;
    size_t count = file->count;
    bool was_open = file->was_opened;
    ssize_t result;

    invariant(file->worker == file_has_worker && step != file_no_step);
    service_lock_drop(&file->lock);
    result = do_step(file, step, begin, count);
    service_lock_take(&file->lock);
    take_result(file, step, result);
    file->steps++;
    (void)pthread_cond_broadcast(&file->changed);
    if (note_state(file) || !was_open) {
        tell_state(file);
    }
}

/* ---- who works ---- */

REQUIRES(the_service_lock) static void make_all_steps(struct background_file *file)
{
    enum file_step step = next_step(file);

    file->worker = file_has_worker;
    while (step != file_no_step) {
        make_step(file, step);
        step = next_step(file);
    }
    file->worker = file_has_no_worker;
}

/* On a thread of the pool. */
static void work(void *info)
{
    struct background_file *file = info;

    service_lock_take(&file->lock);
    make_all_steps(file);
    service_lock_drop(&file->lock);
}

/* There may be something to do. Returns true if the work has to be given to the pool (give_work), once the lock is dropped. */
REQUIRES(the_service_lock) static bool calls_for_worker(struct background_file *file)
{
    bool calls = file->worker == file_has_no_worker && next_step(file) != file_no_step;

    if (calls) {
        file->worker = file_waits_for_worker;
    }
    return calls;
}

/* No thread is to be had: a stream that is open fails, and one that is closed does the rest here, for nobody is there to be told. */
EXCLUDES(the_service_lock) static void work_without_thread(struct background_file *file)
{
    service_lock_take(&file->lock);
    if (!file->is_closed) {
        file->error = -EAGAIN;
        (void)note_state(file);
    }
    make_all_steps(file);
    service_lock_drop(&file->lock);
}

EXCLUDES(the_service_lock) static void give_work(struct background_file *file, bool calls)
{
    if (calls && !work_give(file->work)) {
        work_without_thread(file);
    }
}

/* Takes the work back from the pool if that has not begun. Drops the lock meanwhile. */
REQUIRES(the_service_lock) static void take_back(struct background_file *file)
{
    bool is_back;

    service_lock_drop(&file->lock);
    is_back = work_take_back(file->work);
    if (is_back) {
        CFRelease(file->work);
    }
    service_lock_take(&file->lock);
    if (is_back) {
        file->worker = file_has_no_worker;
    }
}

/* Does the next step if nobody has begun to work, or waits for one. Drops the lock meanwhile. The work is in the pool if it is to be. */
REQUIRES(the_service_lock) static void await_step(struct background_file *file)
{
    unsigned seen = file->steps;
    int cancel_state = file->lock.cancel_state; /* of this thread: others have the lock meanwhile */

    if (file->worker == file_waits_for_worker) {
        take_back(file);
    }
    if (file->steps != seen) {
        return;
    }
    if (file->worker == file_has_no_worker) {
        file->worker = file_has_worker;
        make_step(file, next_step(file));
        file->worker = file_has_no_worker;
        return;
    }
    (void)pthread_cond_wait(&file->changed, &file->lock.mutex);
    file->lock.cancel_state = cancel_state;
}

/* ---- the program ---- */

/* The parent of a fork has the file, and the lock may be taken for ever. */
static bool is_ours(const struct background_file *file)
{
    return file->process == getpid();
}

/* Ends a call of the stream's, which looks at the state itself afterwards. Drops the lock. */
RELEASES(the_service_lock) static void end_call(struct background_file *file)
{
    bool calls = calls_for_worker(file);

    (void)note_state(file);
    service_lock_drop(&file->lock);
    give_work(file, calls);
}

int background_file_open(struct background_file *file, bool waits)
{
    bool calls;
    int result;

    if (!is_ours(file)) {
        return -ECHILD;
    }
    service_lock_take(&file->lock);
    calls = !file->has_begun && calls_for_worker(file);
    file->has_begun = true;
    service_lock_drop(&file->lock);
    give_work(file, calls);
    service_lock_take(&file->lock);
    while (waits && !file->was_opened && !file->error) {
        await_step(file);
    }
    result = file->was_opened ? 0 : file->error ? file->error : -EINPROGRESS;
    end_call(file);
    return result;
}

CFIndex background_file_read(struct background_file *file, UInt8 *bytes, size_t size)
{
    size_t begin;
    size_t count;
    size_t first;
    CFIndex result;

    if (!is_ours(file)) {
        return -ECHILD;
    }
    service_lock_take(&file->lock);
    while (file->count == 0 && !file->is_at_end && !file->error) {
        await_step(file);
    }
    begin = file->begin;
    count = size < file->count ? size : file->count;
    result = count > 0 ? (CFIndex)count : file->error;
    service_lock_drop(&file->lock);
    first = count < file_room - begin ? count : file_room - begin;
    memcpy(bytes, file->bytes + begin, first);
    memcpy(bytes + first, file->bytes, count - first);
    service_lock_take(&file->lock);
    file->begin = (begin + count) % file_room;
    file->count -= count;
    file->moved += (int64_t)count;
    end_call(file);
    return result;
}

CFIndex background_file_write(struct background_file *file, const UInt8 *bytes, size_t size)
{
    size_t end;
    size_t count;
    size_t first;
    CFIndex result;

    if (!is_ours(file)) {
        return -ECHILD;
    }
    service_lock_take(&file->lock);
    while (file->count == file_room && !file->is_finishing && !file->error) {
        await_step(file);
    }
    end = (file->begin + file->count) % file_room;
    count = size < file_room - file->count ? size : file_room - file->count;
    count = file->is_finishing || file->error ? 0 : count;
    result = file->error ? file->error : (CFIndex)count;
    service_lock_drop(&file->lock);
    first = count < file_room - end ? count : file_room - end;
    memcpy(file->bytes + end, bytes, first);
    memcpy(file->bytes, bytes + first, count - first);
    service_lock_take(&file->lock);
    file->count += count;
    file->moved += (int64_t)count;
    end_call(file);
    return result;
}

void background_file_close(struct background_file *file)
{
    if (is_ours(file)) {
        service_lock_take(&file->lock);
        file->stream = NULL;
        file->is_closed = true;
        end_call(file);
    }
}

void background_file_forget(struct background_file *file)
{
    int cancel_state;

    if (!is_ours(file)) {
        return;
    }
    service_lock_take(&file->lock);
    cancel_state = file->lock.cancel_state;
    file->stream = NULL;
    while (file->tellers > 0) {
        (void)pthread_cond_wait(&file->changed, &file->lock.mutex);
        file->lock.cancel_state = cancel_state;
    }
    service_lock_drop(&file->lock);
}

bool background_file_finish(struct background_file *file, bool syncs)
{
    bool begins;

    if (!is_ours(file)) {
        return false;
    }
    service_lock_take(&file->lock);
    begins = file->has_begun && !file->is_finishing && !file->is_closed && !file->error;
    file->is_finishing |= begins;
    file->syncs |= begins && syncs;
    end_call(file);
    return begins;
}

bool background_file_has_begun(struct background_file *file)
{
    bool has_begun;

    if (!is_ours(file)) {
        return true;
    }
    service_lock_take(&file->lock);
    has_begun = file->has_begun;
    service_lock_drop(&file->lock);
    return has_begun;
}

int64_t background_file_moved(struct background_file *file)
{
    int64_t moved;

    if (!is_ours(file)) {
        return 0;
    }
    service_lock_take(&file->lock);
    moved = file->moved;
    service_lock_drop(&file->lock);
    return moved;
}

/* ---- life ---- */

static void free_file(const void *info)
{
    struct background_file *file = (struct background_file *)(uintptr_t)info;

    if (file->descriptor >= 0) { /* in the child of a fork */
        (void)file_kernel.close(file->descriptor);
    }
    (void)pthread_cond_destroy(&file->changed);
    service_lock_destroy(&file->lock);
    free(file->path);
    free(file);
}

struct background_file *background_file_make(const char *path, bool is_reader)
{
    CRLSourceContext context = {.release = free_file};
    struct background_file *file = calloc(1, sizeof *file);

    if (!file) {
        return NULL;
    }
    context.info = file;
    file->process = getpid();
    file->is_reader = is_reader;
    file->descriptor = -1;
    service_lock_init(&file->lock);
    (void)pthread_cond_init(&file->changed, NULL);
    file->path = strdup(path);
    file->work = file->path ? work_make(work, NULL, &context) : NULL;
    if (!file->work) {
        free_file(file);
        return NULL;
    }
    return file;
}

void background_file_set_stream(struct background_file *file, CFTypeRef stream)
{
    service_lock_take(&file->lock);
    file->stream = stream;
    service_lock_drop(&file->lock);
}

void background_file_release(struct background_file *file)
{
    CFRelease(file->work);
}
