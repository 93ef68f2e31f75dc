/* SPDX-License-Identifier: Apache-2.0 */
/* Questions for routes and their answers, without a kernel. */
#include <linux/rtnetlink.h>
#include <string.h>

#include "Reachability/own_network.h"
#include "Reachability/route_message.h"
#include "harness.h"

/* ---- an answer ---- */

struct answer {
    struct nlmsghdr header;
    struct rtmsg route;
    char attributes[128];
};

static struct answer make_answer(unsigned char type)
{
    struct answer answer;

    memset(&answer, 0, sizeof answer);
    answer.header.nlmsg_type = RTM_NEWROUTE;
    answer.header.nlmsg_len = NLMSG_LENGTH(sizeof answer.route);
    answer.route.rtm_type = type;
    return answer;
}

static void add(struct answer *answer, unsigned short type, unsigned short length, unsigned value)
{
    const struct rtattr attribute = {.rta_len = length, .rta_type = type};
    char *place = (char *)answer + answer->header.nlmsg_len;

    memcpy(place, &attribute, sizeof attribute);
    memcpy(place + sizeof attribute, &value, sizeof value);
    answer->header.nlmsg_len += sizeof attribute + sizeof value;
}

static bool reads(const struct answer *answer, struct route_answer *ret_answer)
{
    return route_answer_read(ret_answer, answer, answer->header.nlmsg_len);
}

TEST(an_answer_says_how_the_way_begins, "2233")
{
    struct answer answer = make_answer(RTN_UNICAST);
    struct route_answer read;

    EXPECT(reads(&answer, &read) && !read.is_local && !read.has_gateway && read.interface == 0);
    add(&answer, RTA_OIF, 8, 7);
    EXPECT(reads(&answer, &read) && !read.has_gateway && read.interface == 7);
    add(&answer, RTA_PRIORITY, 8, 9);
    add(&answer, RTA_GATEWAY, 8, 1);
    EXPECT(reads(&answer, &read) && read.has_gateway && read.interface == 7);
    answer = make_answer(RTN_LOCAL);
    add(&answer, RTA_VIA, 8, 1);
    EXPECT(reads(&answer, &read) && read.is_local && read.has_gateway);
}

TEST(what_is_no_answer_is_none, "2239")
{
    struct answer answer = make_answer(RTN_UNICAST);
    struct route_answer read;

    add(&answer, RTA_OIF, 8, 7);
    EXPECT(!route_answer_read(&read, &answer, 0));
    EXPECT(!route_answer_read(&read, &answer, sizeof answer.header));
    EXPECT(!route_answer_read(&read, &answer, answer.header.nlmsg_len - 1));
    answer.header.nlmsg_len = sizeof answer.header;
    EXPECT(!route_answer_read(&read, &answer, sizeof answer));
    answer = make_answer(RTN_UNICAST);
    answer.header.nlmsg_type = NLMSG_ERROR;
    EXPECT(!reads(&answer, &read));
    answer = make_answer(RTN_UNICAST);
    add(&answer, RTA_OIF, 3, 7);
    EXPECT(!reads(&answer, &read));
    answer = make_answer(RTN_UNICAST);
    add(&answer, RTA_OIF, 9, 7);
    EXPECT(!reads(&answer, &read));
    answer = make_answer(RTN_UNICAST);
    add(&answer, RTA_OIF, 5, 7); /* too small for a number, and what follows begins at its end */
    EXPECT(reads(&answer, &read) && read.interface == 0);
}

TEST(a_question_names_both_ends, "2233")
{
    char question[route_question_most];
    struct sockaddr_storage address = own_network_address("fe80::1");
    union route_end remote;
    union route_end none;
    struct nlmsghdr header;
    struct rtmsg route;
    size_t size;

    memset(&none, 0, sizeof none);
    memcpy(&remote, &address, sizeof remote);
    size = route_question_make(question, &none, &remote);
    memcpy(&header, question, sizeof header);
    memcpy(&route, question + NLMSG_HDRLEN, sizeof route);
    EXPECT(header.nlmsg_len == size && header.nlmsg_type == RTM_GETROUTE);
    EXPECT(route.rtm_family == AF_INET6 && route.rtm_dst_len == 128 && route.rtm_src_len == 0);
    remote.ipv6.sin6_scope_id = 3;
    EXPECT_EQ(route_question_make(question, &none, &remote), size + 8);
    EXPECT_EQ(route_question_make(question, &remote, &remote), size + 8 + 20);
    memcpy(&route, question + NLMSG_HDRLEN, sizeof route);
    EXPECT_EQ(route.rtm_src_len, 128);
}
