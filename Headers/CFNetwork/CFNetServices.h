/* SPDX-License-Identifier: Apache-2.0 */
#error "CoreRunLoop has no <CFNetwork/CFNetServices.h>: docs/rules.md says under 'What is not there' what to take instead"
