/* SPDX-License-Identifier: Apache-2.0 */
/* What schedule_points.h has the library call; whoever links with it defines it. Keeps errno, safe in signal handlers. */
#ifndef CRL_TESTS_SCHEDULE_POINT_H
#define CRL_TESTS_SCHEDULE_POINT_H

void schedule_point(void);

#endif
