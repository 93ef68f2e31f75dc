/* SPDX-License-Identifier: Apache-2.0 */
/* What SwiftPM needs to see of c-ares, so that it names the package to install where it is missing. The C sources include what they use. */
#include <ares.h>
