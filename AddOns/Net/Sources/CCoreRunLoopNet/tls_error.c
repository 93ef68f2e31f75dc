/* SPDX-License-Identifier: Apache-2.0 */
/* See tls_error.h. */
#include "tls_error.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "CFNetwork/CFSocketStream.h"
#include "CoreFoundation/CFError.h"
#include "Support/invariant.h"

/* Constant. */
struct meaning {
    long code; /* of OpenSSL */
    int error;
};

/* Returns the error of the code, or `other`. */
static int look_up(const struct meaning *meanings, size_t count, long code, int other)
{
    for (size_t i = 0; i < count; i++) {
        if (meanings[i].code == code) {
            return meanings[i].error;
        }
    }
    return other;
}

#define LOOK_UP(meanings, code, other) look_up(meanings, sizeof(meanings) / sizeof(meanings)[0], code, other)

static int error_of_verification(long result)
{
    static const struct meaning meanings[] = {
        {X509_V_ERR_CERT_HAS_EXPIRED, errSSLCertExpired},
        {X509_V_ERR_CERT_NOT_YET_VALID, errSSLCertNotYetValid},
        {X509_V_ERR_HOSTNAME_MISMATCH, errSSLHostNameMismatch},
        {X509_V_ERR_IP_ADDRESS_MISMATCH, errSSLHostNameMismatch},
        {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, errSSLUnknownRootCert},
        {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, errSSLUnknownRootCert},
        {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, errSSLNoRootCert},
        {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, errSSLNoRootCert},
        {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, errSSLNoRootCert},
    };

    return LOOK_UP(meanings, result, errSSLXCertChainInvalid);
}

static int error_of_alert(int alert)
{
    static const struct meaning meanings[] = {
        {TLS1_AD_DECODE_ERROR, errSSLPeerDecodeError},
        {TLS1_AD_DECRYPT_ERROR, errSSLPeerDecryptError},
        {TLS1_AD_RECORD_OVERFLOW, errSSLPeerRecordOverflow},
        {TLS1_AD_UNKNOWN_CA, errSSLPeerUnknownCA},
        {TLS1_AD_ACCESS_DENIED, errSSLPeerAccessDenied},
        {TLS1_AD_PROTOCOL_VERSION, errSSLPeerProtocolVersion},
        {TLS1_AD_INSUFFICIENT_SECURITY, errSSLPeerInsufficientSecurity},
        {TLS1_AD_INTERNAL_ERROR, errSSLPeerInternalError},
        {TLS1_AD_USER_CANCELLED, errSSLPeerUserCancelled},
        {TLS1_AD_NO_RENEGOTIATION, errSSLPeerNoRenegotiation},
        {TLS13_AD_CERTIFICATE_REQUIRED, errSSLPeerCertUnknown},
        {SSL3_AD_UNEXPECTED_MESSAGE, errSSLPeerUnexpectedMsg},
        {SSL3_AD_BAD_RECORD_MAC, errSSLPeerBadRecordMac},
        {SSL3_AD_HANDSHAKE_FAILURE, errSSLPeerHandshakeFail},
        {SSL3_AD_BAD_CERTIFICATE, errSSLPeerBadCert},
        {SSL3_AD_UNSUPPORTED_CERTIFICATE, errSSLPeerUnsupportedCert},
        {SSL3_AD_CERTIFICATE_REVOKED, errSSLPeerCertRevoked},
        {SSL3_AD_CERTIFICATE_EXPIRED, errSSLPeerCertExpired},
        {SSL3_AD_CERTIFICATE_UNKNOWN, errSSLPeerCertUnknown},
        {SSL3_AD_ILLEGAL_PARAMETER, errSSLIllegalParam},
    };

    return LOOK_UP(meanings, alert, errSSLFatalAlert);
}

static int error_of_reason(int reason, bool is_open)
{
    static const struct meaning meanings[] = {
        {SSL_R_NO_SHARED_CIPHER, errSSLNegotiation},          {SSL_R_UNKNOWN_CIPHER_RETURNED, errSSLNegotiation},
        {SSL_R_WRONG_CIPHER_RETURNED, errSSLNegotiation},     {SSL_R_PACKET_LENGTH_TOO_LONG, errSSLRecordOverflow},
        {SSL_R_EXCESSIVE_MESSAGE_SIZE, errSSLRecordOverflow}, {SSL_R_ENCRYPTED_LENGTH_TOO_LONG, errSSLRecordOverflow},
        {SSL_R_DATA_LENGTH_TOO_LONG, errSSLRecordOverflow},   {SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC, errSSLBadRecordMac},
        {SSL_R_DECRYPTION_FAILED, errSSLBadRecordMac},        {SSL_R_UNEXPECTED_MESSAGE, errSSLUnexpectedRecord},
        {SSL_R_UNEXPECTED_RECORD, errSSLUnexpectedRecord},
    };

    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
        return is_open ? errSSLClosedNoNotify : errSSLClosedAbort;
    }
    if (reason & ERR_RFLAG_COMMON) { /* OpenSSL's own trouble; all other reasons are what the peer has done */
        return errSSLInternal;
    }
    if (reason > SSL_AD_REASON_OFFSET) {
        return error_of_alert(reason - SSL_AD_REASON_OFFSET);
    }
    return LOOK_UP(meanings, reason, errSSLProtocol);
}

CFStreamError tls_error(int ssl_error)
{
    return (CFStreamError){kCFStreamErrorDomainSSL, ssl_error};
}

/* ---- words ---- */

/* Says which name, or address, the certificate should have had. */
static CFStringRef create_reason_of_mismatch(SSL *ssl)
{
    X509_VERIFY_PARAM *wanted = SSL_get0_param(ssl);
    const char *host = X509_VERIFY_PARAM_get0_host(wanted, 0);
    char *address = host ? NULL : X509_VERIFY_PARAM_get1_ip_asc(wanted);
    const char *name = host ? host : address;
    CFStringRef words =
        name ? CFStringCreateWithFormat(NULL, NULL, CFSTR("The certificate of the peer is for another name than %s"), name) : NULL;

    OPENSSL_free(address);
    return words;
}

/* The words for the number, and OpenSSL's. */
static CFStringRef create_reason_of_number(int ssl_error, const char *text)
{
    CFErrorRef plain = text ? CFErrorCreate(NULL, kCFErrorDomainOSStatus, ssl_error, NULL) : NULL;
    CFStringRef words = plain ? CFErrorCopyFailureReason(plain) : NULL;
    CFStringRef both = words ? CFStringCreateWithFormat(NULL, NULL, CFSTR("%@ (%s)"), words, text) : NULL;

    if (words) {
        CFRelease(words);
    }
    if (plain) {
        CFRelease(plain);
    }
    return both;
}

static CFStringRef create_reason(SSL *ssl, int ssl_error, unsigned long code)
{
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;

    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && ssl_error == errSSLHostNameMismatch) {
        return create_reason_of_mismatch(ssl);
    }
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        return CFStringCreateWithFormat(NULL, NULL, CFSTR("The certificates of the peer are refused: %s"),
                                        X509_verify_cert_error_string(SSL_get_verify_result(ssl)));
    }
    return create_reason_of_number(ssl_error, ERR_reason_error_string(code));
}

CFStreamError tls_error_take(SSL *ssl, bool is_open, CFStringRef *ret_reason)
{
    unsigned long last = ERR_peek_last_error();
    bool is_refusal = ERR_GET_LIB(last) == ERR_LIB_SSL && ERR_GET_REASON(last) == SSL_R_CERTIFICATE_VERIFY_FAILED;
    unsigned long code = is_refusal ? last : ERR_peek_error(); /* a wrong signature has left errors of its own before it */
    int reason = ERR_GET_REASON(code);
    bool is_memory = ERR_GET_REASON(ERR_peek_error()) == ERR_R_MALLOC_FAILURE;
    CFStreamError error;

    *ret_reason = NULL;
    ERR_clear_error();
    if (is_memory) {
        return (CFStreamError){kCFStreamErrorDomainPOSIX, ENOMEM};
    }
    if (is_refusal) {
        error = tls_error(error_of_verification(SSL_get_verify_result(ssl)));
    } else {
        error = tls_error(ERR_GET_LIB(code) == ERR_LIB_SSL ? error_of_reason(reason, is_open) : errSSLBadCert);
    }
    invariant(error.error != 0);
    *ret_reason = create_reason(ssl, error.error, code);
    return error;
}
