/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing to call: its constructor sets the hook before others do. */
