/* SPDX-License-Identifier: Apache-2.0 */
/* What SwiftPM needs to see of OpenSSL, so that it names the package to install if it is missing. The C sources include what they use. */
#include <openssl/ssl.h>
