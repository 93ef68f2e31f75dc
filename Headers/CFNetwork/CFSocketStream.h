/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * Streams to a CFHost, and TLS of the streams of sockets: the settings, what can be asked of a session, and its errors. TLS needs the
 * add-on library libcorerunloop-net (CRLNetwork.h) in the process.
 *
 * A program sets kCFStreamPropertySSLSettings, or kCFStreamPropertySocketSecurityLevel for all defaults, before it opens a pair, or on open
 * streams (STARTTLS). The peer's certificates are verified: against the system's authorities, for today, and for the name that the pair
 * connects to.
 */

#if !defined(__CFSOCKETSTREAM__)
#define __CFSOCKETSTREAM__ 1

#include "../CoreFoundation/CFStream.h"
#include "CFHost.h"

CF_EXTERN_C_BEGIN

/**
 * Creates a read and a write stream that connect to `port` of the host when one of them is opened, as CFStreamCreatePairWithSocketToHost.
 *
 * The addresses that the host has learned are used. If it has none, the streams ask for those of its name, and the host does not learn
 * them. What the host learns later does not count.
 * Ownership: the caller releases the streams.
 * Threads: any. The two streams may be used on two threads.
 * Errors: both are NULL when there is no memory. A host that is NULL, or of another type, stops the process.
 */
CF_EXPORT void CFStreamCreatePairWithSocketToCFHost(CFAllocatorRef alloc, CFHostRef host, SInt32 port, CFReadStreamRef *readStream,
                                                    CFWriteStreamRef *writeStream) CRL_LINK(CFStreamCreatePairWithSocketToCFHost);

/**
 * A property, beyond Apple: how long opening a pair may take, a CFNumber of seconds, up to 1e9. It is counted from the opening of the first
 * stream, and covers the question for a name, connecting and the handshake of TLS. A pair that is not open by then fails: ErrorOccurred,
 * with ETIMEDOUT in kCFStreamErrorDomainPOSIX. A handshake that begins on open streams gets as much for itself. Can be set until the
 * first stream is opened. 0, the default, leaves it to the system, which gives up connecting after about two minutes, and no handshake.
 */
CF_EXPORT const CFStringRef kCRLStreamPropertyOpeningTimeout CRL_LINK(kCRLStreamPropertyOpeningTimeout);

/* Keys of kCFStreamPropertySSLSettings. A value of another type than its comment says is refused; unknown keys are ignored. */

/**
 * Key: the security level, one of the constants of CFStream.h or below. NegotiatedSSL, the default, is TLS 1.2 or 1.3, and so is TLSv1.
 * SSLv2, SSLv3 and None are refused.
 */
CF_EXPORT const CFStringRef kCFStreamSSLLevel CRL_LINK(kCFStreamSSLLevel);
/** Key: the name that the peer's certificate must have, a CFString with a name or a numeric address. kCFNull accepts any name. */
CF_EXPORT const CFStringRef kCFStreamSSLPeerName CRL_LINK(kCFStreamSSLPeerName);
/** Key: a CFBoolean. False accepts every certificate, for every name: there is no protection against an active attacker. */
CF_EXPORT const CFStringRef kCFStreamSSLValidatesCertificateChain CRL_LINK(kCFStreamSSLValidatesCertificateChain);
/** Key: a CFBoolean. True accepts certificates that have expired. */
CF_EXPORT const CFStringRef kCFStreamSSLAllowsExpiredCertificates CRL_LINK(kCFStreamSSLAllowsExpiredCertificates);
/** Key: a CFBoolean. True accepts certificates of the peer whose authorities have expired. */
CF_EXPORT const CFStringRef kCFStreamSSLAllowsExpiredRoots CRL_LINK(kCFStreamSSLAllowsExpiredRoots);
/** Key: a CFBoolean. True accepts certificates of unknown authorities, self-signed ones too; the name and the time are still verified. */
CF_EXPORT const CFStringRef kCFStreamSSLAllowsAnyRoot CRL_LINK(kCFStreamSSLAllowsAnyRoot);
/**
 * Key: the own certificate and its private key, a CFArray of CFData. Together they are a text in PEM: one private key without a password,
 * the certificate for it, and then those of its authorities. A client needs it only if the server asks, a server always.
 */
CF_EXPORT const CFStringRef kCFStreamSSLCertificates CRL_LINK(kCFStreamSSLCertificates);
/** Key: a CFBoolean. True is the server's side of TLS, which asks the peer for no certificate. */
CF_EXPORT const CFStringRef kCFStreamSSLIsServer CRL_LINK(kCFStreamSSLIsServer);
/** Key, beyond Apple: the authorities to trust in place of the system's, a CFArray of CFData, each one or more certificates in PEM. */
CF_EXPORT const CFStringRef kCRLStreamSSLAnchorCertificates CRL_LINK(kCRLStreamSSLAnchorCertificates);
/** Key, beyond Apple: the application protocols to offer by ALPN, the best one first, a CFArray of CFString such as "h2". */
CF_EXPORT const CFStringRef kCRLStreamSSLProtocols CRL_LINK(kCRLStreamSSLProtocols);

/** A security level, beyond Apple's headers: TLS 1.2 and no other. */
CF_EXPORT const CFStringRef kCRLStreamSocketSecurityLevelTLSv1_2 CRL_LINK(kCRLStreamSocketSecurityLevelTLSv1_2);
/** A security level, beyond Apple's headers: TLS 1.3 and no other. */
CF_EXPORT const CFStringRef kCRLStreamSocketSecurityLevelTLSv1_3 CRL_LINK(kCRLStreamSocketSecurityLevelTLSv1_3);

/* What can be asked of an open stream with TLS. */

/** The certificates of the peer, its own first: a CFArray of CFData in DER. NULL when it has shown none. */
CF_EXPORT const CFStringRef kCFStreamPropertySSLPeerCertificates CRL_LINK(kCFStreamPropertySSLPeerCertificates);
/** Beyond Apple: the application protocol that both sides have agreed on by ALPN, a CFString; NULL if there is none. */
CF_EXPORT const CFStringRef kCRLStreamPropertySSLProtocol CRL_LINK(kCRLStreamPropertySSLProtocol);
/** Beyond Apple: the version of TLS, a CFString such as "TLSv1.3". */
CF_EXPORT const CFStringRef kCRLStreamPropertySSLVersion CRL_LINK(kCRLStreamPropertySSLVersion);

/** Errors in kCFStreamErrorDomainSSL. An alert is what the peer has told before it gave up. */
CF_ENUM(SInt32) {
    errSSLProtocol = -9800, /**< What came is not TLS, breaks its rules, or has no version in common. */
    errSSLNegotiation = -9801, /**< There is no cipher in common. */
    errSSLFatalAlert = -9802, /**< An alert that has no error of its own. */
    errSSLClosedAbort = -9806, /**< The peer went away in the handshake. */
    errSSLXCertChainInvalid = -9807, /**< The peer's certificates are refused for another reason than those below. */
    errSSLBadCert = -9808, /**< The peer's certificate, or a name of an authority, cannot be read. */
    errSSLInternal = -9810, /**< An error of the library that is none of the others. */
    errSSLUnknownRootCert = -9812, /**< The peer's certificate comes from an unknown authority, or is signed by itself. */
    errSSLNoRootCert = -9813, /**< An authority of the peer's certificate is missing. */
    errSSLCertExpired = -9814, /**< The peer's certificate, or one of its authorities, has expired. */
    errSSLCertNotYetValid = -9815, /**< The peer's certificate is not valid yet. */
    errSSLClosedNoNotify = -9816, /**< The connection ended without a farewell: bytes may be missing. */
    errSSLPeerUnexpectedMsg = -9819, /**< Alert: an unexpected message. */
    errSSLPeerBadRecordMac = -9820, /**< Alert: a damaged record. */
    errSSLPeerRecordOverflow = -9822, /**< Alert: a record too long. */
    errSSLPeerHandshakeFail = -9824, /**< Alert: there is nothing in common, or a certificate is missing. */
    errSSLPeerBadCert = -9825, /**< Alert: the certificate cannot be read. */
    errSSLPeerUnsupportedCert = -9826, /**< Alert: the certificate is of an unknown kind. */
    errSSLPeerCertRevoked = -9827, /**< Alert: the certificate was revoked. */
    errSSLPeerCertExpired = -9828, /**< Alert: the certificate has expired. */
    errSSLPeerCertUnknown = -9829, /**< Alert: the certificate is refused for another reason, or is missing. */
    errSSLIllegalParam = -9830, /**< Alert: a value that is not allowed. */
    errSSLPeerUnknownCA = -9831, /**< Alert: the certificate's authority is unknown. */
    errSSLPeerAccessDenied = -9832, /**< Alert: the certificate gives no access. */
    errSSLPeerDecodeError = -9833, /**< Alert: a message cannot be read. */
    errSSLPeerDecryptError = -9834, /**< Alert: a signature is wrong. */
    errSSLPeerProtocolVersion = -9836, /**< Alert: there is no version in common. */
    errSSLPeerInsufficientSecurity = -9837, /**< Alert: the ciphers are too weak. */
    errSSLPeerInternalError = -9838, /**< Alert: an error of the peer's own. */
    errSSLPeerUserCancelled = -9839, /**< Alert: the peer's user has given up. */
    errSSLPeerNoRenegotiation = -9840, /**< Alert: no other handshake. */
    errSSLHostNameMismatch = -9843, /**< The peer's certificate is for another name, or there is no name to compare it with. */
    errSSLBadRecordMac = -9846, /**< A record from the peer is damaged. */
    errSSLRecordOverflow = -9847, /**< A record or a message from the peer is too long. */
    errSSLBadConfiguration = -9848, /**< The settings are refused. */
    errSSLUnexpectedRecord = -9849 /**< A message from the peer does not belong here. */
};

CF_EXTERN_C_END

#endif /* ! __CFSOCKETSTREAM__ */
