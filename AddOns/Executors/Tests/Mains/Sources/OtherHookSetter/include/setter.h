/* SPDX-License-Identifier: Apache-2.0 */
/* A library that sets the runtime's hooks. OTHER_HOOKS in the environment is "first": all in a constructor that runs before others;
 * "later": those of the executors in one that runs behind this package's; "main" or "chain": that of the main thread, when it is called. */

/* With "chain" the hook calls what was there. */
void set_main_hook(void);
