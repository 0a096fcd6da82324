/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The interface of /proc/traffic, through which a program hands its sockets over to the kernel's event loop.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC. The program keeps its descriptors; it must call TRAFFIC_FORGET before
 * close().
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define TRAFFIC_MAX_FLOWS 1000
#define TRAFFIC_NEVER (~0ULL)

/*
 * One end of a flow. The sender writes zeros, in blocks of 64 KiB or all of them at once; the receiver discards them.
 */
struct traffic_end {
	__s32 fd;
	__u32 flow;		/* Number of the flow, from 0 */
	__u64 bytes;		/* Size of the flow; 0 for one that does not end */
	__u32 is_one_write;
	__u32 pad;
};

/* The next flow on an open connection whose earlier flows have finished. Both ends are served already. */
struct traffic_next {
	__s32 sender, receiver;
	__u32 flow;		/* Number of the flow */
	__u32 pad;
	__u64 bytes;		/* Size of the flow; 0 for one that does not end */
};

/* A descriptor that the program reads itself if TRAFFIC_WAIT returns its name. */
struct traffic_watch {
	__s32 fd;
	__u32 name;
};

/* One direction between two packet sockets with PACKET_VNET_HDR. */
struct traffic_way {
	__s32 in, out;
};

/* The segment to this port with this byte of its flow is lost this number of times. */
struct traffic_loss {
	__u32 port, byte, copies, pad;
};

/* The reasons for which TRAFFIC_WAIT returns. */
enum traffic_reason {
	TRAFFIC_TIME,		/* `until` is reached, or a flow has ended; `time` is the time now */
	TRAFFIC_READ,		/* The program must read the descriptor `name` and call TRAFFIC_WAIT again */
	TRAFFIC_BROKEN,		/* A sender's connection failed: `name` is the flow, `error` an errno */
};

struct traffic_wait {
	__u64 until;
	__u64 time;		/* In and out: the program's time, from which the wait is counted */
	__u32 reason;		/* Out: of enum traffic_reason */
	__u32 name;
	__s32 error;
	__u32 pad;
};

struct traffic_count {
	__u64 delivered;	/* Bytes that the receiver has read */
	__u64 finish;		/* Time at which it had all of them, or TRAFFIC_NEVER */
};

struct traffic_counts {
	__u32 flows, pad;
	struct traffic_count *count;
};

/* The digest of all packets that hashed packet sockets have read: FNV-1a of times, lengths and first bytes. */
struct traffic_digest {
	__u64 packets, digest;
};

#define TRAFFIC_SEND _IOW('T', 1, struct traffic_end)
#define TRAFFIC_RECEIVE _IOW('T', 2, struct traffic_end)
#define TRAFFIC_HASH _IOW('T', 3, __s32)
#define TRAFFIC_CARRY _IOW('T', 4, struct traffic_way)
#define TRAFFIC_LOSE _IOW('T', 5, struct traffic_loss)
#define TRAFFIC_WATCH _IOW('T', 6, struct traffic_watch)
#define TRAFFIC_FORGET _IOW('T', 7, __s32)
#define TRAFFIC_WAIT _IOWR('T', 8, struct traffic_wait)
#define TRAFFIC_COUNTS _IOW('T', 9, struct traffic_counts)
/* Reads all packets that wait at one hashed socket. */
#define TRAFFIC_DRAIN _IOW('T', 10, __s32)
#define TRAFFIC_DIGEST _IOR('T', 11, struct traffic_digest)
#define TRAFFIC_NEXT _IOW('T', 12, struct traffic_next)

#endif
