/* SPDX-License-Identifier: Apache-2.0 */
/* Taking over what peers hand to a local port; see line_intake.h. */
#include "Port/line_intake.h"

#include <errno.h>

#include "Kernel/kernel.h"
#include "Kernel/kernel_ports.h"
#include "Port/message_port.h"

/* The end of a line that the packet brings, which is the line's from then on. NULL, and the packet is as it was: it is none. */
static struct server_line *take_end(struct packet *packet, const struct wire_frame *frame, bool is_control)
{
    struct server_line *line = NULL;

    if (kernel_ports.is_line(packet->descriptors[0])) {
        line = server_line_create(frame->line, frame->token, packet->pid, packet->descriptors[0], is_control);
    }
    if (line) {
        (void)packet_take(packet, 0);
    }
    return line;
}

bool line_intake_control(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame)
{
    struct local_port *local = &port->side.local;
    struct server_line *line;
    void *page = NULL;
    int result = shared_page_adopt(packet->descriptors[1], &page);

    if (result < 0) {
        if (result != -EINVAL) {
            packet_close(packet); /* the client finds its line hung up, and does without */
        }
        return result != -EINVAL;
    }
    line = take_end(packet, frame, true);
    if (!line) {
        shared_page_release(page);
        return false;
    }
    line->acks = page;
    packet_close(packet);
    port_lock(port);
    line_table_sweep(&local->lines);
    if (local->lines.control_count >= line_control_max) {
        line_table_drop(&local->lines, line_table_some_control(&local->lines));
    }
    if (line_table_find(&local->lines, frame->line, frame->token, packet->pid, true) || !line_table_keep(&local->lines, line)) {
        server_line_free(line);
    }
    port_unlock(port);
    return true;
}

/* The line that a page is for, if it may have one; or NULL. P */
static struct server_line *line_for_page(struct local_port *local, const struct packet *packet, const struct wire_frame *frame)
{
    struct server_line *line = line_table_find(&local->lines, frame->line, frame->token, packet->pid, false);

    return line && line_table_has_room_for_page(&local->lines, line) ? line : NULL;
}

bool line_intake_page(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame)
{
    struct local_port *local = &port->side.local;
    struct server_line *line;
    struct reply_page *page;
    int result = -ENOSPC;
    int bell;

    port_lock(port);
    line = line_for_page(local, packet, frame);
    port_unlock(port);
    if (line) {
        result = reply_page_adopt(packet->descriptors[0], packet->descriptors[1], &page, &bell);
    }
    if (result == 0) {
        port_lock(port);
        line = line_for_page(local, packet, frame); /* it may have gone meanwhile */
        if (line) {
            line_table_give_page(&local->lines, line, page, bell);
        }
        port_unlock(port);
    }
    if (result == 0 && !line) {
        (void)kernel.close(bell);
        reply_page_release(page);
    }
    if (result != -EINVAL) {
        packet_close(packet);
    }
    return result != -EINVAL;
}

struct server_line *line_intake_reply_line(CFMessagePortRef port, struct packet *packet, const struct wire_frame *frame, bool *ret_keeps)
{
    struct local_port *local = &port->side.local;
    struct server_line *line = take_end(packet, frame, false);

    if (!line) {
        return NULL;
    }
    server_line_begin(line);
    port_lock(port);
    line_table_sweep(&local->lines);
    *ret_keeps = !line_table_find(&local->lines, frame->line, frame->token, packet->pid, false) && line_table_keep(&local->lines, line);
    port_unlock(port);
    return line;
}
