/* SPDX-License-Identifier: Apache-2.0 */
/* See error_reason.h. */
#define _GNU_SOURCE /* EAI_NODATA */
#include "Runtime/Value/error_reason.h"

#include <netdb.h>
#include <stddef.h>

#include "CFNetwork/CFSocketStream.h"

/* Constant. */
struct reason {
    int code;
    const char *text;
};

static const char *find_reason(const struct reason *reasons, size_t count, CFIndex code)
{
    for (size_t i = 0; i < count; i++) {
        if (reasons[i].code == code) {
            return reasons[i].text;
        }
    }
    return NULL;
}

const char *error_reason_of_tls(CFIndex code)
{
    static const struct reason reasons[] = {
        {errSSLProtocol, "The peer does not speak TLS, breaks its rules, or has no version that is allowed here"},
        {errSSLNegotiation, "The peer has no cipher of TLS that is allowed here"},
        {errSSLFatalAlert, "The peer sent an alert of TLS"},
        {errSSLClosedAbort, "The peer closed the connection in the handshake of TLS"},
        {errSSLXCertChainInvalid, "The certificate of the peer, or of an authority, is not valid"},
        {errSSLBadCert, "The certificate of the peer cannot be read"},
        {errSSLInternal, "Internal error of TLS"},
        {errSSLUnknownRootCert, "The certificate of the peer, or its authority's, is self-signed and not trusted"},
        {errSSLNoRootCert, "The issuer of the peer's certificate is unknown"},
        {errSSLCertExpired, "The certificate of the peer, or of an authority, has expired"},
        {errSSLCertNotYetValid, "The certificate of the peer, or of an authority, is not valid yet"},
        {errSSLClosedNoNotify, "The peer closed the connection without close_notify, so that bytes may be missing"},
        {errSSLPeerUnexpectedMsg, "The peer sent the alert unexpected_message"},
        {errSSLPeerBadRecordMac, "The peer sent the alert bad_record_mac"},
        {errSSLPeerRecordOverflow, "The peer sent the alert record_overflow"},
        {errSSLPeerHandshakeFail, "The peer sent the alert handshake_failure"},
        {errSSLPeerBadCert, "The peer sent the alert bad_certificate"},
        {errSSLPeerUnsupportedCert, "The peer sent the alert unsupported_certificate"},
        {errSSLPeerCertRevoked, "The peer sent the alert certificate_revoked"},
        {errSSLPeerCertExpired, "The peer sent the alert certificate_expired"},
        {errSSLPeerCertUnknown, "The peer sent the alert certificate_unknown or certificate_required"},
        {errSSLIllegalParam, "The peer sent the alert illegal_parameter"},
        {errSSLPeerUnknownCA, "The peer sent the alert unknown_ca"},
        {errSSLPeerAccessDenied, "The peer sent the alert access_denied"},
        {errSSLPeerDecodeError, "The peer sent the alert decode_error"},
        {errSSLPeerDecryptError, "The peer sent the alert decrypt_error"},
        {errSSLPeerProtocolVersion, "The peer sent the alert protocol_version"},
        {errSSLPeerInsufficientSecurity, "The peer sent the alert insufficient_security"},
        {errSSLPeerInternalError, "The peer sent the alert internal_error"},
        {errSSLPeerUserCancelled, "The peer sent the alert user_canceled"},
        {errSSLPeerNoRenegotiation, "The peer sent the alert no_renegotiation"},
        {errSSLHostNameMismatch, "The certificate of the peer is for another name, or there is no name to compare it with"},
        {errSSLBadRecordMac, "The peer sent a damaged record of TLS"},
        {errSSLRecordOverflow, "The peer sent a record of TLS that is too long"},
        {errSSLBadConfiguration, "The settings of TLS are refused"},
        {errSSLUnexpectedRecord, "The peer sent a message of TLS that does not belong there"},
    };

    return find_reason(reasons, sizeof reasons / sizeof reasons[0], code);
}

const char *error_reason_of_name(CFIndex code)
{
    static const struct reason reasons[] = {
        {EAI_NONAME, "There is no host of this name"},
        {EAI_AGAIN, "No server of names has answered, or it has a problem"},
        {EAI_FAIL, "The answer of the server of names makes no sense"},
        {EAI_MEMORY, "No memory to resolve the name"},
        {EAI_FAMILY, "This family of addresses is unknown"},
        {EAI_SOCKTYPE, "This type of socket is unknown"},
        {EAI_SERVICE, "There is no such service for this type of socket"},
        {EAI_BADFLAGS, "The flags for resolving a name are not valid"},
        {EAI_OVERFLOW, "The name is too long"},
        {EAI_SYSTEM, "The system failed to resolve the name"},
#ifdef EAI_NODATA
        {EAI_NODATA, "The host has no address"},
#endif
#ifdef EAI_ADDRFAMILY
        {EAI_ADDRFAMILY, "The host has no address of this family"},
#endif
    };

    return find_reason(reasons, sizeof reasons / sizeof reasons[0], code);
}
