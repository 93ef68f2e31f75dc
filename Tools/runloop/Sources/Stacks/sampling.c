/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See sampling.h. There is an event for each processor, because events that children inherit can have a ring only so. It samples by the
 * processor's clock, which needs no hardware, and tells of switches of threads, which needs no right but that to one's own processes.
 *
 * The kernel walks frame pointers. Time in the kernel belongs to the function that called it, where the kernel may be sampled (the
 * superuser), and is left out elsewhere. Addresses of the kernel are never taken.
 */
#include "Stacks/sampling.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "Stacks/stack_file.h"
#include "runloop.h"

enum {
    step_ns = 1003009, /* not in step with timers of whole milliseconds */
    ring_size = 512 << 10, /* with its first page all that a user may lock for a processor, as the kernel comes */
    look_ms = 100, /* rings are read so often, or when a quarter is full */
};

static const uint64_t marks_from = (uint64_t)-4095; /* of a call chain: what is no address, but says whose the next ones are */

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- opening ---- */

static int open_event(pid_t process, int processor, bool is_with_kernel)
{
    struct perf_event_attr wanted = {.type = PERF_TYPE_SOFTWARE,
                                     .size = sizeof wanted,
                                     .config = PERF_COUNT_SW_CPU_CLOCK,
                                     .sample_period = step_ns,
                                     .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
                                     .disabled = 1,
                                     .inherit = 1,
                                     .exclude_kernel = !is_with_kernel,
                                     .exclude_hv = 1,
                                     .enable_on_exec = 1,
                                     .watermark = 1,
                                     .wakeup_watermark = ring_size / 4,
                                     .sample_id_all = 1,
                                     .exclude_callchain_kernel = 1,
                                     .use_clockid = 1,
                                     .clockid = CLOCK_MONOTONIC,
                                     .context_switch = 1};

    return (int)syscall(SYS_perf_event_open, &wanted, process, processor, -1, PERF_FLAG_FD_CLOEXEC);
}

static int refuse(int error)
{
    FILE *setting = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    int paranoid;
    bool is_known = setting && fscanf(setting, "%d", &paranoid) == 1;

    if (setting) {
        (void)fclose(setting);
    }
    if ((error == EACCES || error == EPERM) && is_known) {
        return fail(exit_error,
                    "--stacks: perf_event_open: %s: kernel.perf_event_paranoid is %d, and has to be 2 or less (in a container its seccomp "
                    "filter has to let the call pass, too); without --stacks the program is traced all the same",
                    strerror(error), paranoid);
    }
    return fail(exit_error, "--stacks: perf_event_open: %s; without --stacks the program is traced all the same", strerror(error));
}

static int open_processor(struct sampling *sampling, pid_t process, int number)
{
    struct sampled_processor *own = &sampling->processors[sampling->count];

    own->event = open_event(process, number, true);
    if (own->event < 0 && (errno == EACCES || errno == EPERM)) {
        own->event = open_event(process, number, false);
    }
    if (own->event < 0) {
        return errno == ENODEV ? exit_success : refuse(errno); /* of ENODEV: the processor is switched off */
    }
    sampling->count++;
    own->ring = mmap(NULL, page_size() + ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, own->event, 0);
    if (own->ring == MAP_FAILED) {
        return fail(exit_error, "--stacks: a ring of %d bytes: %s (kernel.perf_event_mlock_kb)", ring_size, strerror(errno));
    }
    return exit_success;
}

int sampling_begin(struct sampling *sampling, pid_t process, const char *path)
{
    const int processors = (int)sysconf(_SC_NPROCESSORS_CONF);
    const struct stack_file_header header = {
        .version = stack_file_version, .order = stack_file_order, .step_ns = step_ns, .process = (int32_t)process};
    int status = exit_success;
    int file;

    (void)signal(SIGXFSZ, SIG_IGN); /* a file that becomes too large is an error to tell of */
    *sampling = (struct sampling){.processors = make_room((size_t)processors, sizeof *sampling->processors), .path = path};
    for (int i = 0; i < processors && status == exit_success; i++) {
        status = open_processor(sampling, process, i);
    }
    if (status != exit_success) {
        return status;
    }
    file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); /* as the trace: for nobody else */
    sampling->file = file >= 0 ? fdopen(file, "wb") : NULL;
    if (!sampling->file) {
        return fail(exit_error, "%s: %s", path, strerror(errno));
    }
    (void)fwrite(stack_file_magic, 1, sizeof stack_file_magic, sampling->file);
    (void)fwrite((const char *)&header + sizeof header.magic, 1, sizeof header - sizeof header.magic, sampling->file);
    sampling->written = sizeof header;
    return exit_success;
}

/* ---- writing ---- */

static void write_record(struct sampling *sampling, const struct stack_record *record, const uint64_t *numbers)
{
    const size_t size = sizeof *record + record->count * sizeof *numbers;

    invariant(record->count <= stack_frames_most);
    if (sampling->written + size > stack_file_most) {
        sampling->lost += record->kind == stack_lost ? numbers[0] : 1;
        return;
    }
    sampling->written += size;
    (void)fwrite(record, 1, sizeof *record, sampling->file); /* sampling_end tells of errors */
    (void)fwrite(numbers, sizeof *numbers, record->count, sampling->file);
}

/* The thread and the time as the kernel has them at the end of each record, and at the beginning of a sample. */
struct whose {
    uint32_t process;
    uint32_t thread;
    uint64_t time_ns;
};

static void write_sample(struct sampling *sampling, const unsigned char *record, size_t size)
{
    static uint64_t frames[stack_frames_most];
    struct whose whose;
    uint64_t left;
    uint32_t count = 0;
    size_t at = sizeof(struct perf_event_header) + sizeof whose + sizeof left;

    if (size < at) {
        return;
    }
    memcpy(&whose, record + sizeof(struct perf_event_header), sizeof whose);
    memcpy(&left, record + at - sizeof left, sizeof left);
    for (; left > 0 && size - at >= sizeof frames[0] && count < stack_frames_most; left--, at += sizeof frames[0]) {
        memcpy(&frames[count], record + at, sizeof frames[0]);
        count += frames[count] < marks_from;
    }
    if (count > 0) {
        write_record(sampling,
                     &(struct stack_record){(int64_t)whose.time_ns, (int32_t)whose.process, (int32_t)whose.thread, stack_sample, count},
                     frames);
    }
}

static enum stack_record_kind kind_of_switch(unsigned misc)
{
    if (!(misc & PERF_RECORD_MISC_SWITCH_OUT)) {
        return stack_begins_to_run;
    }
    return misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? stack_is_displaced : stack_begins_to_sleep;
}

static void write_from_kernel(struct sampling *sampling, const unsigned char *record)
{
    struct perf_event_header header;
    struct whose whose;
    struct stack_record own = {.kind = stack_record_kind_count};
    uint64_t number = 0;

    memcpy(&header, record, sizeof header);
    if (header.type == PERF_RECORD_SAMPLE) {
        write_sample(sampling, record, header.size);
        return;
    }
    if (header.size < sizeof header + 2 * sizeof number + sizeof whose && header.type == PERF_RECORD_LOST) {
        return;
    }
    if (header.type == PERF_RECORD_SWITCH && header.size >= sizeof header + sizeof whose) {
        own.kind = kind_of_switch(header.misc);
    } else if (header.type == PERF_RECORD_LOST) {
        own.kind = stack_lost;
        own.count = 1;
        memcpy(&number, record + sizeof header + sizeof number, sizeof number);
    } else {
        return; /* a process or a thread begins or ends */
    }
    memcpy(&whose, record + header.size - sizeof whose, sizeof whose);
    own.time_ns = (int64_t)whose.time_ns;
    own.process = (int32_t)whose.process;
    own.thread = (int32_t)whose.thread;
    write_record(sampling, &own, &number);
}

/* Copies from the ring, whose end goes on at its beginning. */
static void copy_from_ring(const unsigned char *ring, uint64_t at, unsigned char *bytes, size_t size)
{
    const size_t place = (size_t)(at % ring_size);
    const size_t first = size < ring_size - place ? size : ring_size - place;

    memcpy(bytes, ring + place, first);
    memcpy(bytes + first, ring, size - first);
}

static void write_processor(struct sampling *sampling, const struct sampled_processor *own)
{
    static unsigned char record[1 << 16];
    struct perf_event_mmap_page *page = own->ring;
    const unsigned char *ring = (const unsigned char *)own->ring + page_size();
    const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = page->data_tail;

    while (head - tail >= sizeof(struct perf_event_header)) {
        struct perf_event_header header;

        copy_from_ring(ring, tail, (unsigned char *)&header, sizeof header);
        if (header.size < sizeof header || header.size > head - tail) {
            break;
        }
        copy_from_ring(ring, tail, record, header.size);
        write_from_kernel(sampling, record);
        tail += header.size;
    }
    __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

static void write_all(struct sampling *sampling)
{
    for (size_t i = 0; i < sampling->count; i++) {
        write_processor(sampling, &sampling->processors[i]);
    }
}

/* What can be read from when the process has ended. -1: an older kernel has none, and its end is seen with the next look. */
static int open_process(pid_t process)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, process, 0);
#else
    (void)process;
    return -1;
#endif
}

static bool has_ended(pid_t process)
{
    siginfo_t status = {.si_pid = 0};

    return waitid(P_PID, (id_t)process, &status, WEXITED | WNOHANG | WNOWAIT) != 0 || status.si_pid == process;
}

void sampling_follow(struct sampling *sampling, pid_t process)
{
    struct pollfd *waited = make_room(sampling->count + 1, sizeof *waited);
    const int end = open_process(process);

    for (size_t i = 0; i < sampling->count; i++) {
        waited[i] = (struct pollfd){.fd = sampling->processors[i].event, .events = POLLIN};
    }
    waited[sampling->count] = (struct pollfd){.fd = end, .events = POLLIN};
    while (!has_ended(process)) {
        (void)poll(waited, sampling->count + 1, look_ms); /* a signal ends it early, and does no harm */
        for (size_t i = 0; i < sampling->count; i++) {
            waited[i].fd = waited[i].revents & POLLHUP ? -1 : waited[i].fd; /* nothing comes any more, and a poll would return at once */
        }
        write_all(sampling);
    }
    free(waited);
    if (end >= 0) {
        (void)close(end);
    }
}

int sampling_end(struct sampling *sampling)
{
    bool is_written;

    write_all(sampling);
    for (size_t i = 0; i < sampling->count; i++) {
        (void)munmap(sampling->processors[i].ring, page_size() + ring_size);
        (void)close(sampling->processors[i].event);
    }
    free(sampling->processors);
    if (sampling->lost > 0) {
        const struct stack_record record = {.kind = stack_lost, .count = 1};

        sampling->written = 0; /* there is room for this one */
        write_record(sampling, &record, &sampling->lost);
    }
    is_written = fflush(sampling->file) == 0 && !ferror(sampling->file);
    if (fclose(sampling->file) != 0 || !is_written) {
        return fail(exit_error, "%s cannot be written: %s", sampling->path, strerror(errno));
    }
    return exit_success;
}
