/* SPDX-License-Identifier: Apache-2.0 */
/* A program that the add-on library is linked with, and that names nothing of it: a stream then can have TLS. */
#include <CoreServices/CoreServices.h>

int main(void)
{
    CFReadStreamRef reader;
    Boolean is_set;

    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("host.invalid"), 443, &reader, NULL);
    is_set = CFReadStreamSetProperty(reader, kCFStreamPropertySocketSecurityLevel, kCFStreamSocketSecurityLevelNegotiatedSSL);
    CFRelease(reader);
    return is_set ? 0 : 1;
}
