/* SPDX-License-Identifier: Apache-2.0 */
/* What JetStream is asked and answers, as texts. */
#include <string.h>

#include "harness.h"
#include "Wire/stream_api.h"

static struct api_answer read_text(const char *text)
{
    return api_read_answer(text, strlen(text));
}

TEST(answers_of_jetstream_are_understood, "1118")
{
    struct api_answer answer = read_text("{\"stream\":\"CRL\",\"seq\":12}");

    EXPECT(answer.is_answer && answer.is_stored && answer.error == 0);
    answer = read_text("{\"type\":\"io.nats.jetstream.api.v1.stream_create_response\"}");
    EXPECT(answer.is_answer && !answer.is_stored);
    answer = read_text("{\"type\":\"x\",\"error\":{\"code\":400,\"err_code\":10071,\"description\":\"wrong last sequence: 1\"},\"seq\":0}");
    EXPECT_EQ(answer.error, api_wrong_last_sequence);
    EXPECT(!answer.is_stored);
    EXPECT_STR(answer.description, "wrong last sequence: 1");
    answer = read_text("{\"error\":{\"code\":500}}");
    EXPECT_EQ(answer.error, 1);
}

TEST(what_is_no_answer_of_jetstream_is_none, "1118")
{
    static const char *const texts[] = {"", "{", "}", "[]", "OK", "{\"error\":", "CLRb"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        EXPECT(!read_text(texts[i]).is_answer);
    }
    EXPECT(read_text("{\"error\":{\"err_code\":99999999999999999999,\"description\":\"}").error != 0);
    EXPECT(read_text("{\"error\":}").error != 0);
}

TEST(a_consumer_has_a_name_that_no_other_subject_has, "1118")
{
    char first[consumer_name_max];
    char second[consumer_name_max];
    char longest[subject_max];

    api_consumer_name("crl.1.kept.a_b", first);
    api_consumer_name("crl.1.kept.a.b", second);
    EXPECT(strcmp(first, second) != 0);
    EXPECT(strpbrk(first, ".*> %") == NULL);
    api_consumer_name("crl.1.kept.a%20b", first);
    EXPECT(strpbrk(first, ".*> %") == NULL);
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    api_consumer_name(longest, first);
    EXPECT_EQ(strlen(first), 64);
}
