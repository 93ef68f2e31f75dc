/* SPDX-License-Identifier: Apache-2.0 */
#error "CoreRunLoop has no <CoreFoundation/CFXMLNode.h>: docs/rules.md says under 'What is not there' what to take instead"
