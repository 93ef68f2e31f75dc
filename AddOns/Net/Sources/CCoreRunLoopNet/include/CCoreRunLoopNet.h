/* SPDX-License-Identifier: Apache-2.0 */
/* The product is linked and installs itself. What it declares, CRLNetworkInstall, is in the module CCoreRunLoop. */
