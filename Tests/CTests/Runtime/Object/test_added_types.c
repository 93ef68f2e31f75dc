/* SPDX-License-Identifier: Apache-2.0 */
/* Types that add-on libraries register. */
#include "CRLAddOn.h"
#include "harness.h"

static const CRLTypeFunctions functions = {.name = "Extra"};

TEST(an_object_of_an_added_type_says_what_it_is, "")
{
    CFTypeID type = CRLTypeRegister(&functions);
    CFTypeRef object = CRLTypeCreateObject(NULL, type, sizeof(CRLObjectHeader));
    CFStringRef name = CFCopyTypeIDDescription(type);

    REQUIRE(object && name);
    EXPECT_EQ(CFGetTypeID(object), type);
    EXPECT(CFEqual(name, CFSTR("Extra")));
    CFRelease(name);
    CFRelease(object);
}

TEST(types_beyond_the_table_and_objects_of_no_type_are_refused, "")
{
    int count = 0;

    EXPECT_EQ(CRLTypeCreateObject(NULL, 10000, sizeof(CRLObjectHeader)), NULL);
    EXPECT_EQ(CRLTypeCreateObject(NULL, CRLTypeRegister(&functions), sizeof(CRLObjectHeader) - 1), NULL);
    while (CRLTypeRegister(&functions) != 0 && count < 100) {
        count++;
    }
    EXPECT(count < 32);
}
