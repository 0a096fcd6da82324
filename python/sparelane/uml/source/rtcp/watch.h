/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * A program that is built into the kernel has no telemetry. The guest's program reads windows by itself.
 */
#ifndef SPARELANE_WATCH_H
#define SPARELANE_WATCH_H

#include "kernel.h"

enum { SAMPLE_VALUES = 6 };
enum { ON_ACKNOWLEDGMENT = 0, ON_DEPARTURE = 1, ON_CONGESTION = 2, ON_END = 3 };
enum { watchers = 0 };

static __always_inline u32 next_connection(void)
{
	return 0;
}

static __always_inline void tell(struct sock *sk, u32 connection, u32 event, long rtt_us, const u64 *values)
{
}

#endif
