/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the properties of streams, their values, and the domains of their errors. Constants. */
#include "CFNetwork/CFSocketStream.h"
#include "CoreFoundation/CFStream.h"

const CFStreamPropertyKey kCFStreamPropertyDataWritten = CFSTR("kCFStreamPropertyDataWritten");
const CFStreamPropertyKey kCFStreamPropertyAppendToFile = CFSTR("kCFStreamPropertyAppendToFile");
const CFStreamPropertyKey kCFStreamPropertyFileCurrentOffset = CFSTR("kCFStreamPropertyFileCurrentOffset");
const CFStreamPropertyKey kCFStreamPropertySocketNativeHandle = CFSTR("kCFStreamPropertySocketNativeHandle");
const CFStreamPropertyKey kCFStreamPropertySocketRemoteHostName = CFSTR("kCFStreamPropertySocketRemoteHostName");
const CFStreamPropertyKey kCFStreamPropertySocketRemotePortNumber = CFSTR("kCFStreamPropertySocketRemotePortNumber");
const CFStringRef kCFStreamPropertyShouldCloseNativeSocket = CFSTR("kCFStreamPropertyShouldCloseNativeSocket");
const CFStringRef kCFStreamPropertySocketSecurityLevel = CFSTR("kCFStreamPropertySocketSecurityLevel");
const CFStringRef kCFStreamSocketSecurityLevelNone = CFSTR("kCFStreamSocketSecurityLevelNone");
const CFStringRef kCFStreamSocketSecurityLevelSSLv2 = CFSTR("kCFStreamSocketSecurityLevelSSLv2");
const CFStringRef kCFStreamSocketSecurityLevelSSLv3 = CFSTR("kCFStreamSocketSecurityLevelSSLv3");
const CFStringRef kCFStreamSocketSecurityLevelTLSv1 = CFSTR("kCFStreamSocketSecurityLevelTLSv1");
const CFStringRef kCFStreamSocketSecurityLevelNegotiatedSSL = CFSTR("kCFStreamSocketSecurityLevelNegotiatedSSL");
const CFStringRef kCFStreamPropertySSLSettings = CFSTR("kCFStreamPropertySSLSettings");
const CFStringRef kCFStreamPropertySOCKSProxy = CFSTR("kCFStreamPropertySOCKSProxy");
const CFStringRef kCFStreamPropertySOCKSProxyHost = CFSTR("SOCKSProxy");
const CFStringRef kCFStreamPropertySOCKSProxyPort = CFSTR("SOCKSPort");
const CFStringRef kCFStreamPropertySOCKSVersion = CFSTR("kCFStreamPropertySOCKSVersion");
const CFStringRef kCFStreamSocketSOCKSVersion4 = CFSTR("kCFStreamSocketSOCKSVersion4");
const CFStringRef kCFStreamSocketSOCKSVersion5 = CFSTR("kCFStreamSocketSOCKSVersion5");
const CFStringRef kCFStreamPropertySOCKSUser = CFSTR("kCFStreamPropertySOCKSUser");
const CFStringRef kCFStreamPropertySOCKSPassword = CFSTR("kCFStreamPropertySOCKSPassword");
const int kCFStreamErrorDomainSSL = 3;
const int kCFStreamErrorDomainSOCKS = 5;
const int kCFStreamErrorDomainNetDB = 12;
const CFStringRef kCFStreamSSLLevel = CFSTR("kCFStreamSSLLevel");
const CFStringRef kCFStreamSSLPeerName = CFSTR("kCFStreamSSLPeerName");
const CFStringRef kCFStreamSSLValidatesCertificateChain = CFSTR("kCFStreamSSLValidatesCertificateChain");
const CFStringRef kCFStreamSSLAllowsExpiredCertificates = CFSTR("kCFStreamSSLAllowsExpiredCertificates");
const CFStringRef kCFStreamSSLAllowsExpiredRoots = CFSTR("kCFStreamSSLAllowsExpiredRoots");
const CFStringRef kCFStreamSSLAllowsAnyRoot = CFSTR("kCFStreamSSLAllowsAnyRoot");
const CFStringRef kCFStreamSSLCertificates = CFSTR("kCFStreamSSLCertificates");
const CFStringRef kCFStreamSSLIsServer = CFSTR("kCFStreamSSLIsServer");
const CFStringRef kCRLStreamSSLAnchorCertificates = CFSTR("kCRLStreamSSLAnchorCertificates");
const CFStringRef kCRLStreamSSLProtocols = CFSTR("kCRLStreamSSLProtocols");
const CFStringRef kCRLStreamSocketSecurityLevelTLSv1_2 = CFSTR("kCFStreamSocketSecurityLevelTLSv1_2");
const CFStringRef kCRLStreamSocketSecurityLevelTLSv1_3 = CFSTR("kCFStreamSocketSecurityLevelTLSv1_3");
const CFStringRef kCFStreamPropertySSLPeerCertificates = CFSTR("kCFStreamPropertySSLPeerCertificates");
const CFStringRef kCRLStreamPropertySSLProtocol = CFSTR("kCRLStreamPropertySSLProtocol");
const CFStringRef kCRLStreamPropertySSLVersion = CFSTR("kCRLStreamPropertySSLVersion");
const CFStringRef kCRLStreamPropertyOpeningTimeout = CFSTR("kCRLStreamPropertyOpeningTimeout");
