/* SPDX-License-Identifier: Apache-2.0 */
/* The card of a port: "pid limit budget length features\nname\n". See port_card.h. */
#include "Port/Names/port_card.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"

enum { card_size = 64 + wire_name_max, queue_limit_default = 5 };

int port_card_write(int lock, const struct port_card *card)
{
    char text[card_size];
    int length = snprintf(text, sizeof text, "%d %u %llu %u %u\n%s\n", (int)kernel_ports.process_id(), (unsigned)card->queue_limit,
                          (unsigned long long)card->budget, (unsigned)card->name.length, (unsigned)card->features, card->name.bytes);

    return kernel_ports.file_replace(lock, text, (size_t)length);
}

static bool parse(char *text, size_t size, struct port_card *ret_card)
{
    int pid = 0;
    unsigned limit = 0;
    unsigned long long budget = 0;
    unsigned length = 0;
    unsigned features = 0;
    char *name = memchr(text, '\n', size);
    int numbers = 0;

    if (name) {
        *name = '\0'; /* otherwise the first digits of the name could be taken for the last number */
        numbers = sscanf(text, "%9d %9u %19llu %9u %9u", &pid, &limit, &budget, &length, &features);
    }
    if (numbers < 4 || length > size - (size_t)(name + 1 - text)) {
        return false;
    }
    ret_card->pid = pid;
    ret_card->queue_limit = limit > 0 && limit <= UINT16_MAX ? limit : queue_limit_default;
    ret_card->budget = budget;
    ret_card->features = features;
    return port_name_of_bytes(name + 1, length, &ret_card->name);
}

bool port_card_read(int directory, const char *leaf, struct port_card *ret_card)
{
    char text[card_size + 1];
    struct stat status;
    ssize_t size = -1;
    int descriptor = kernel_ports.file_open(directory, leaf, O_RDONLY | O_NONBLOCK);

    if (descriptor < 0) {
        return false;
    }
    if (kernel_ports.file_status(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        size = kernel_ports.file_read(descriptor, text, card_size, 0);
    }
    (void)kernel.close(descriptor);
    if (size <= 0) {
        return false;
    }
    text[size] = '\0';
    return parse(text, (size_t)size, ret_card);
}
