/* SPDX-License-Identifier: Apache-2.0 */
/* The product is linked. What it declares is in the module CCoreRunLoop. */
