/* SPDX-License-Identifier: Apache-2.0 */
/* A program as a test case for Tests/CTests/Loop/Run/test_regressions.c, in the style of those: probes, actions, EXPECT_LOG. */
#include "print.h"

static const char *const modes[] = {"kCFRunLoopDefaultMode", "CFSTR(\"X\")", "CFSTR(\"Y\")",
                                    "kCFRunLoopCommonModes", "modes_x_y()",  "modes_x_common()"};
static const char *const mode_texts[] = {"kCFRunLoopDefaultMode", "X", "Y", "kCFRunLoopCommonModes"};
static const char *const activities[] = {"kCFRunLoopEntry",         "kCFRunLoopBeforeTimers", "kCFRunLoopBeforeSources",
                                         "kCFRunLoopBeforeWaiting", "kCFRunLoopAfterWaiting", "kCFRunLoopExit"};
static const char *const activity_texts[] = {"E", "BT", "BS", "BW", "AW", "X"};
static const char *const results[] = {"?", "F", "S", "TO", "HS"};
static const char letters[] = "sotb";
static const char *const classes[] = {"Source", "Observer", "Timer"};
static const char *const class_words[] = {"source", "observer", "timer"};

static void print_observer(FILE *file, const struct program *program, int item)
{
    const char *bar = "";

    fprintf(file, "probe_observer(&o%d, ", item);
    for (int i = 0; i < activity_choices; i++) {
        if (program->observer_activities[item] & (1 << i)) {
            fprintf(file, "%s%s", bar, activities[i]);
            bar = " | ";
        }
    }
    fprintf(file, "%s, %s, %d);\n", *bar ? "" : "0", program->observer_repeats[item] ? "true" : "false", program->observer_order[item]);
}

static void print_creation(FILE *file, const struct program *program, const struct op *op)
{
    switch ((enum item_class)op->class) {
    case class_source:
        if (program->has_port && op->item == port_item) {
            fprintf(file, "probe_port_source(&s%d, 0, probe_event());\n", op->item);
            break;
        }
        fprintf(file, "probe_source(&s%d, %d);\n", op->item, program->source_order[op->item]);
        break;
    case class_observer:
        print_observer(file, program, op->item);
        break;
    default:
        fprintf(file, "probe_timer_at(&t%d, in_ticks(%d), ticks(%d));\n", op->item, (int)op->value, (int)program->timer_interval[op->item]);
        break;
    }
}

/* Before a call. */
static void print_repetition(FILE *file, const struct program *program)
{
    if (program->has_floods) {
        fprintf(file, "for (int i = 0; i < %d; i++) ", calls_of_a_flood);
    }
}

static void print_op(FILE *file, const struct program *program, const struct op *op)
{
    const char *class = classes[op->class < class_block ? op->class : 0];
    const char *word = class_words[op->class < class_block ? op->class : 0];
    char letter = letters[op->class];
    const char *mode = modes[op->mode];

    switch ((enum op_kind)op->kind) {
    case op_create:
        print_creation(file, program, op);
        break;
    case op_release:
        fprintf(file, "CFRelease(%c%d.item);\n", letter, op->item);
        break;
    case op_add:
    case op_remove:
        fprintf(file, "CFRunLoop%s%s(LOOP, probe_%s_of(&%c%d), %s);\n", op->kind == op_add ? "Add" : "Remove", class, word, letter,
                op->item, mode);
        break;
    case op_contains:
        fprintf(file, "answer(CFRunLoopContains%s(LOOP, probe_%s_of(&%c%d), %s));\n", class, word, letter, op->item, mode);
        break;
    case op_invalidate:
        fprintf(file, "probe_invalidate(&%c%d);\n", letter, op->item);
        break;
    case op_is_valid:
        fprintf(file, "answer(probe_is_valid(&%c%d));\n", letter, op->item);
        break;
    case op_signal:
        if (program->has_port && op->item == port_item) {
            fprintf(file, "probe_event_post(s%d.descriptor);\n", op->item);
            break;
        }
        print_repetition(file, program);
        fprintf(file, "CFRunLoopSourceSignal(probe_source_of(&s%d));\n", op->item);
        break;
    case op_is_signalled:
        fprintf(file, "answer(CFRunLoopSourceIsSignalled(probe_source_of(&s%d)));\n", op->item);
        break;
    case op_set_date:
        fprintf(file, "CFRunLoopTimerSetNextFireDate(probe_timer_of(&t%d), in_ticks(%d));\n", op->item, (int)op->value);
        break;
    case op_get_date:
        fprintf(file, "answer_date(CFRunLoopTimerGetNextFireDate(probe_timer_of(&t%d)));\n", op->item);
        break;
    case op_next_date:
        fprintf(file, "answer_date(CFRunLoopGetNextTimerFireDate(LOOP, %s));\n", mode);
        break;
    case op_add_common_mode:
        fprintf(file, "CFRunLoopAddCommonMode(LOOP, %s);\n", mode);
        break;
    case op_wake:
        print_repetition(file, program);
        fprintf(file, "CFRunLoopWakeUp(LOOP);\n");
        break;
    case op_stop:
        fprintf(file, "CFRunLoopStop(LOOP);\n");
        break;
    case op_perform:
        fprintf(file, "queue_block(&b%d, %s);\n", op->item, mode);
        break;
    case op_run:
        if (op->value < 0) {
            fprintf(file, "probe_run(%s, 1e10, %s);\n", mode, op->flag ? "true" : "false");
        } else {
            fprintf(file, "probe_run(%s, ticks(%d), %s);\n", mode, (int)op->value, op->flag ? "true" : "false");
        }
        break;
    case op_busy:
        fprintf(file, "spend_ticks(%d);\n", (int)op->value);
        break;
    case op_suspend:
        fprintf(file, "fake_kernel_suspend(%d * INT64_C(%d));\n", (int)op->value, tick_ns);
        break;
    case op_current_mode:
        fprintf(file, "probe_note_current_mode(\"mode\", LOOP);\n");
        break;
    case op_all_modes:
        fprintf(file, "answer(probe_mode_exists(LOOP, CFSTR(\"X\")) * 2 + probe_mode_exists(LOOP, CFSTR(\"Y\")) * 4 + 1);\n");
        break;
    case op_is_waiting:
        fprintf(file, "answer(CFRunLoopIsWaiting(LOOP));\n");
        break;
    case op_asleep:
        fprintf(file, "when_asleep(asleep_%d);\n", op->item);
        break;
    case op_kinds:
        break;
    }
}

static bool has_ops(const struct program *program, enum place place, int owner)
{
    for (int i = 0; i < program->op_count; i++) {
        if (program->ops[i].place == place && program->ops[i].owner == owner) {
            return true;
        }
    }
    return false;
}

static bool is_used(const struct program *program, enum item_class class, int item)
{
    for (int i = 0; i < program->op_count; i++) {
        const struct op *op = &program->ops[i];

        if ((op->kind == op_create && op->class == class && op->item == item) ||
            (op->kind == op_perform && class == class_block && op->item == item)) {
            return true;
        }
    }
    return false;
}

static void print_calls(FILE *file, const struct program *program, enum place place, int owner)
{
    for (int nth = 0; nth < call_count; nth++) {
        bool any = false;

        for (int i = 0; i < program->op_count; i++) {
            const struct op *op = &program->ops[i];

            if (op->place == place && op->owner == owner && op->nth == nth) {
                if (!any) {
                    fprintf(file, "    if (probe->calls == %d) {\n", nth + 1);
                    any = true;
                }
                fprintf(file, "        ");
                print_op(file, program, op);
            }
        }
        if (any) {
            fprintf(file, "    }\n");
        }
    }
}

static void print_actions(FILE *file, const struct program *program)
{
    static const enum place places[] = {place_source, place_observer, place_timer, place_block};
    static const char *const notes[] = {"", "    probe_notes_activity(probe);\n", "    notes_ticks(probe);\n", ""};

    for (int class = 0; class < class_choices; class++) {
        for (int item = 0; item < item_count; item++) {
            if (is_used(program, (enum item_class)class, item)) {
                fprintf(file, "static void %c%d_action(struct probe *probe)\n{\n%s", letters[class], item, notes[class]);
                print_calls(file, program, places[class], item);
                fprintf(file, "    (void)probe;\n}\n\n");
            }
        }
    }
    for (int item = 0; item < item_count; item++) {
        if (has_ops(program, place_membership, item)) {
            fprintf(file, "/* In schedule or cancel of s%d (probes have no action there; write it by hand): */\n", item);
            fprintf(file, "static void s%d_membership(struct probe *probe)\n{\n", item);
            print_calls(file, program, place_membership, item);
            fprintf(file, "}\n\n");
        }
        if (has_ops(program, place_asleep, item)) {
            fprintf(file, "static void asleep_%d(void)\n{\n", item);
            for (int i = 0; i < program->op_count; i++) {
                if (program->ops[i].place == place_asleep && program->ops[i].owner == item) {
                    fprintf(file, "    ");
                    print_op(file, program, &program->ops[i]);
                }
            }
            fprintf(file, "}\n\n");
        }
    }
}

static void print_probes(FILE *file, const struct program *program)
{
    static const char *const logging[] = {"probe_logs_membership", "probe_is_silent", "probe_is_silent", "probe_logs_callbacks"};

    for (int class = 0; class < class_choices; class++) {
        for (int item = 0; item < item_count; item++) {
            if (is_used(program, (enum item_class)class, item)) {
                fprintf(file, "static struct probe %c%d;\n", letters[class], item);
            }
        }
    }
    fprintf(file, "\n");
    print_actions(file, program);
    for (int class = 0; class < class_choices; class++) {
        for (int item = 0; item < item_count; item++) {
            if (is_used(program, (enum item_class)class, item)) {
                fprintf(file, "static struct probe %c%d = {.name = \"%c%d\", .action = %c%d_action, .logging = %s};\n", letters[class],
                        item, letters[class] - 'a' + 'A', item, letters[class], item, logging[class]);
            }
        }
    }
    fprintf(file, "\n");
}

static void print_event(FILE *file, const struct event *event)
{
    switch ((enum event_kind)event->kind) {
    case event_source:
        fprintf(file, "S%d ", event->item);
        break;
    case event_schedule:
        fprintf(file, "S%d+%s ", event->item, mode_texts[event->detail]);
        break;
    case event_cancel:
        fprintf(file, "S%d-%s ", event->item, mode_texts[event->detail]);
        break;
    case event_observer:
        fprintf(file, "O%d:%s ", event->item, activity_texts[event->detail]);
        break;
    case event_timer:
        fprintf(file, "T%d@%lld ", event->item, (long long)event->value);
        break;
    case event_block:
        fprintf(file, "B%d ", event->item);
        break;
    case event_result:
        fprintf(file, "%s ", results[event->detail]);
        break;
    case event_answer:
        fprintf(file, "?%lld ", (long long)event->value);
        break;
    case event_sleeps_for_ever:
        fprintf(file, "for-ever ");
        break;
    case event_done:
    case event_run:
    case event_thread_ends:
    case event_wrong:
        break;
    }
}

void program_print(FILE *file, const struct program *program, const char *name, const struct trace *expected)
{
    fprintf(file, "\n");
    print_probes(file, program);
    fprintf(file, "TEST(%s, \"\")\n{\n    ticks_start();\n", name);
    for (int i = 0; i < program->op_count; i++) {
        if (program->ops[i].place == place_main) {
            fprintf(file, "    ");
            print_op(file, program, &program->ops[i]);
        }
    }
    fprintf(file, "    EXPECT_LOG(\"");
    for (int i = 0; i < expected->count && expected->events[i].kind != event_thread_ends; i++) {
        print_event(file, &expected->events[i]);
    }
    fprintf(file, "\");\n}\n\n");
}
