/* SPDX-License-Identifier: Apache-2.0 */
/* What Swift may not call. */

/* As fork. A child that hangs is killed by SIGALRM. */
int fork_process(void);

/* How the child has ended: its status, or minus the number of the signal. */
int end_of_child(int pid);

/* Replaces the process by /bin/true. */
void become_another_program(void);
