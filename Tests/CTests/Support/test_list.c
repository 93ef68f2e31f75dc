/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive lists: order, removal in and out of walks, and moving a whole list. */
#include "Support/list.h"
#include "harness.h"

struct element {
    int value;
    struct link link;
};

static void expect_values(const struct link *head, int count, const int *values)
{
    int i = 0;

    list_for_each(link, head) {
        REQUIRE(i < count);
        EXPECT_EQ(container_of(link, struct element, link)->value, values[i]);
        EXPECT(link->next->prev == link && link->prev->next == link);
        i++;
    }
    EXPECT_EQ(i, count);
}

static void fill(struct link *head, struct element *elements, int count)
{
    link_init(head);
    for (int i = 0; i < count; i++) {
        elements[i].value = i;
        link_init(&elements[i].link);
        list_append(head, &elements[i].link);
    }
}

TEST(a_list_keeps_its_order, "")
{
    struct element elements[3];
    struct link head;

    fill(&head, elements, 3);
    expect_values(&head, 3, (const int[]){0, 1, 2});
    list_remove(&elements[1].link);
    EXPECT(!link_is_linked(&elements[1].link));
    list_remove(&elements[1].link); /* twice is harmless */
    expect_values(&head, 2, (const int[]){0, 2});
    list_insert_after(&head, &elements[1].link);
    expect_values(&head, 3, (const int[]){1, 0, 2});
    EXPECT(!list_is_empty(&head));
}

TEST(elements_may_leave_during_a_walk, "")
{
    struct element elements[5];
    struct link head;
    int seen = 0;

    fill(&head, elements, 5);
    list_for_each_removable(link, &head) {
        seen++;
        if (container_of(link, struct element, link)->value % 2 == 0) {
            list_remove(link);
        }
    }
    EXPECT_EQ(seen, 5);
    expect_values(&head, 2, (const int[]){1, 3});
}

TEST(a_whole_list_moves, "")
{
    struct element elements[2];
    struct element others[2];
    struct link head;
    struct link other;

    fill(&head, elements, 2);
    fill(&other, others, 2);
    list_append_all(&head, &other);
    EXPECT(list_is_empty(&other));
    expect_values(&head, 4, (const int[]){0, 1, 0, 1});
    list_append_all(&head, &other);
    expect_values(&head, 4, (const int[]){0, 1, 0, 1});
    list_append_all(&other, &head);
    EXPECT(list_is_empty(&head));
    expect_values(&other, 4, (const int[]){0, 1, 0, 1});
}
