/* SPDX-License-Identifier: Apache-2.0 */
/* The name registry of CFSocket: its calls fail, its port number can be set, its keys have their documented words. */
#include <sys/socket.h>

#include "CoreFoundation/CoreFoundation.h"
#include "harness.h"

TEST(the_registry_of_socket_names_is_gone, "270 273a")
{
    CFPropertyListRef value = CFSTR("untouched");
    CFSocketSignature signature = {PF_INET, SOCK_STREAM, 0, NULL};

    EXPECT_EQ(CFSocketRegisterValue(NULL, 1, CFSTR("x"), CFSTR("y")), kCFSocketError);
    EXPECT_EQ(CFSocketCopyRegisteredValue(NULL, 1, CFSTR("x"), &value, NULL), kCFSocketError);
    EXPECT(value == CFSTR("untouched") || CFEqual(value, CFSTR("untouched")));
    EXPECT_EQ(CFSocketRegisterSocketSignature(&signature, 1, CFSTR("x"), &signature), kCFSocketError);
    EXPECT_EQ(CFSocketCopyRegisteredSocketSignature(&signature, 1, CFSTR("x"), &signature, NULL), kCFSocketError);
    EXPECT_EQ(CFSocketUnregister(NULL, 1, CFSTR("x")), kCFSocketError);
    EXPECT_EQ(CFSocketGetDefaultNameRegistryPortNumber(), 2454);
    CFSocketSetDefaultNameRegistryPortNumber(4242);
    EXPECT_EQ(CFSocketGetDefaultNameRegistryPortNumber(), 4242);
}

TEST(socket_keys_are_the_words_of_the_registry, "")
{
    EXPECT(CFEqual(kCFSocketCommandKey, CFSTR("Command")));
    EXPECT(CFEqual(kCFSocketNameKey, CFSTR("Name")));
    EXPECT(CFEqual(kCFSocketValueKey, CFSTR("Value")));
    EXPECT(CFEqual(kCFSocketResultKey, CFSTR("Result")));
    EXPECT(CFEqual(kCFSocketErrorKey, CFSTR("Error")));
    EXPECT(CFEqual(kCFSocketRegisterCommand, CFSTR("Register")));
    EXPECT(CFEqual(kCFSocketRetrieveCommand, CFSTR("Retrieve")));
    EXPECT_EQ(sizeof(CFSocketContext), 5 * sizeof(void *));
}
