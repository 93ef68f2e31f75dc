/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beginning, ending, cancelling and telling in every order.
 *
 * Each of them is one step under the lock of all work. So what threads can do is a sequence of these steps, and all sequences of a length
 * are gone through, with three pieces of work and two threads; then all is brought to its end. A model says what became of each.
 */
#include "work_probe.h"

enum { pieces = 3, threads = 2, length = 6 };

/* Taking by a thread that has none, or finishing by one that has; cancelling a piece; a pass of the loop; the loop gives work. */
enum { step_thread = 0, step_cancel = step_thread + threads, step_pass = step_cancel + pieces, step_give, steps };

struct world {
    struct work_probe probes[pieces];
    bool is_given[pieces];
    bool is_cancelled[pieces]; /* by the model: before it began */
    bool has_begun[pieces];
    CRLWorkRef taken[threads];
    int told; /* ends that a pass has to have told */
    int ended;
};

static int number_of(const struct world *world, CRLWorkRef work)
{
    for (int i = 0; i < pieces; i++) {
        if (work && world->probes[i].work == work) {
            return i;
        }
    }
    return -1;
}

static void step_of_thread(struct world *world, int thread)
{
    CRLWorkRef work = world->taken[thread];
    int number;

    if (work) {
        world->taken[thread] = NULL;
        work_step_finish(work);
        world->ended++;
        return;
    }
    work = work_step_take();
    number = number_of(world, work);
    for (int i = 0; i < pieces; i++) { /* the first that waits */
        bool waits = world->is_given[i] && !world->has_begun[i] && !world->is_cancelled[i];

        if (waits) {
            EXPECT_EQ(number, i);
            world->has_begun[i] = true;
            world->taken[thread] = work;
            return;
        }
    }
    EXPECT_EQ(number, -1);
}

static void step_to_cancel(struct world *world, int number)
{
    bool expected = world->is_given[number] && !world->has_begun[number] && !world->is_cancelled[number];

    if (world->is_given[number]) {
        EXPECT_EQ(CRLWorkCancel(world->probes[number].work), expected);
        world->is_cancelled[number] |= expected;
        world->ended += expected;
    }
}

static void pass(struct world *world)
{
    int told = 0;

    (void)CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false);
    for (int i = 0; i < pieces; i++) {
        told += world->probes[i].ends;
    }
    EXPECT_EQ(told, world->ended);
}

static void give_next(struct world *world)
{
    for (int i = 0; i < pieces; i++) {
        if (!world->is_given[i]) {
            EXPECT(work_probe_give(&world->probes[i], CFRunLoopGetCurrent(), kCFRunLoopDefaultMode));
            world->is_given[i] = true;
            return;
        }
    }
}

static void make_step(struct world *world, int step)
{
    if (step == step_give) {
        give_next(world);
    } else if (step == step_pass) {
        pass(world);
    } else if (step >= step_cancel) {
        step_to_cancel(world, step - step_cancel);
    } else {
        step_of_thread(world, step - step_thread);
    }
}

static void bring_to_an_end(struct world *world)
{
    for (int i = 0; i < pieces * 2; i++) {
        step_of_thread(world, 0);
        step_of_thread(world, 1);
    }
    pass(world);
    EXPECT_EQ(CFRunLoopRunInMode(kCFRunLoopDefaultMode, 0, false), kCFRunLoopRunFinished);
    for (int i = 0; i < pieces; i++) {
        struct work_probe *probe = &world->probes[i];

        if (world->is_given[i]) {
            EXPECT_EQ(probe->ends, 1);
            EXPECT_EQ(probe->end == kCRLWorkCancelled, world->is_cancelled[i]);
            EXPECT_EQ(probe->runs, world->has_begun[i]);
            work_probe_release(probe);
            EXPECT_EQ(probe->releases, 1);
        }
    }
}

TEST_LIMIT(work_begins_ends_and_is_cancelled_in_every_order, "", 600)
{
    unsigned long sequences = 1;

    work_steps_begin(0);
    for (int i = 0; i < length; i++) {
        sequences *= steps;
    }
    for (unsigned long sequence = 0; sequence < sequences; sequence++) {
        struct world world = {0};
        unsigned long left = sequence;

        give_next(&world);
        for (int i = 0; i < length; i++) {
            make_step(&world, (int)(left % steps));
            left /= steps;
        }
        bring_to_an_end(&world);
    }
    work_steps_end();
}
