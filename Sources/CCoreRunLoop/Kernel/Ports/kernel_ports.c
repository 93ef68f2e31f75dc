/* SPDX-License-Identifier: Apache-2.0 */
/* The table of message ports as Linux fills it: what other files of this layer do, and the calls on the process itself. No state. */
#define _GNU_SOURCE
#include "Kernel/Ports/kernel_ports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "Kernel/Ports/kernel_port_files.h"
#include "Kernel/Ports/kernel_port_sockets.h"
#include "Kernel/kernel_clocks.h"
#include "Kernel/kernel_descriptors.h"
#include "Kernel/kernel_result.h"
#include "Support/random_bytes.h"
#include "Support/uncancelled.h"

static uid_t effective_uid(void)
{
    return geteuid();
}

static pid_t process_id(void)
{
    return getpid();
}

static const char *environment(const char *name)
{
    return secure_getenv(name);
}

static void random_bytes(void *ret_bytes, size_t size)
{
    random_bytes_fill(ret_bytes, size);
}

static size_t descriptor_limit(void)
{
    struct rlimit limit;
    int saved = errno;
    int result = result_of(getrlimit(RLIMIT_NOFILE, &limit), saved);

    return result < 0 ? 0 : limit.rlim_cur > SIZE_MAX ? SIZE_MAX : (size_t)limit.rlim_cur;
}

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static int duplicate(int descriptor)
{
    int saved = errno;

    return kernel_above_streams(result_of(fcntl(descriptor, F_DUPFD_CLOEXEC, 0), saved));
}

static int replace(int from, int number)
{
    int saved = errno;

    return result_of(dup3(from, number, O_CLOEXEC), saved);
}

static void pause_for(int64_t duration_ns)
{
    int saved = errno;
    struct timespec duration = {(time_t)(duration_ns / kernel_second_ns), (long)(duration_ns % kernel_second_ns)};

    (void)uncancelled(nanosleep(&duration, NULL));
    errno = saved;
}

#define KERNEL_PORTS_LINUX                                    \
    {                                                         \
        .effective_uid = effective_uid,                       \
        .process_id = process_id,                             \
        .environment = environment,                           \
        .random_bytes = random_bytes,                         \
        .descriptor_limit = descriptor_limit,                 \
        .page_size = page_size,                               \
        .directory_open = kernel_port_directory_open,         \
        .directory_make = kernel_port_directory_make,         \
        .directory_list = kernel_port_directory_list,         \
        .file_open = kernel_port_file_open,                   \
        .file_status = kernel_port_file_status,               \
        .path_status = kernel_port_path_status,               \
        .file_lock = kernel_port_file_lock,                   \
        .file_replace = kernel_port_file_replace,             \
        .file_read = kernel_port_file_read,                   \
        .file_rename = kernel_port_file_rename,               \
        .file_unlink = kernel_port_file_unlink,               \
        .datagram_create = kernel_port_datagram_create,       \
        .datagram_bind = kernel_port_datagram_bind,           \
        .datagram_connect = kernel_port_datagram_connect,     \
        .channel_create = kernel_port_channel_create,         \
        .send_room = kernel_port_send_room,                   \
        .send = kernel_port_send,                             \
        .send_message = kernel_port_send_message,             \
        .send_in_turn = kernel_port_send_in_turn,             \
        .receive_message = kernel_port_receive_message,       \
        .identify_senders = kernel_port_identify_senders,     \
        .process_number = kernel_port_process_number,         \
        .is_channel = kernel_port_is_channel,                 \
        .hang_up = kernel_port_hang_up,                       \
        .refuse_descriptors = kernel_port_refuse_descriptors, \
        .stop_receiving = kernel_port_stop_receiving,         \
        .stop_lingering = kernel_port_stop_lingering,         \
        .duplicate = duplicate,                               \
        .replace = replace,                                   \
        .wait = kernel_port_wait,                             \
        .pause = pause_for,                                   \
        .memory_create = kernel_port_memory_create,           \
        .memory_write = kernel_port_memory_write,             \
        .memory_is_fixed = kernel_port_memory_is_fixed,       \
        .memory_size = kernel_port_memory_size,               \
        .memory_map = kernel_port_memory_map,                 \
        .memory_unmap = kernel_port_memory_unmap,             \
    }

struct kernel_ports kernel_ports = KERNEL_PORTS_LINUX;
#if defined(CRL_TESTING)
const struct kernel_ports kernel_ports_linux = KERNEL_PORTS_LINUX;
#endif
