/* SPDX-License-Identifier: Apache-2.0 */
/* The product is linked. What it declares, the calls of CRLNats.h, is in the module CCoreRunLoop. */
