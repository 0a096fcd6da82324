/*
 * Packet sockets at devices. The kernel reads those for the digest and for forwarded packets (traffic.h). Those for
 * captures are read here.
 */
#include "captures.h"
#include "traffic/traffic.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

enum { MAX_WATCHED = 64, SNAP = 128 };

/* The header of a pcap file with nanosecond times (magic) and packets without link-layer header (link type 101). */
static const struct {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, snap, link;
} HEADER = { 0xa1b23c4d, 2, 4, 0, 0, SNAP, 101 };

static struct { int fd; FILE *out; } watched[MAX_WATCHED];
static int count, file_count;

/* Opens a socket for every packet at a device, without link-layer headers. Returns -1 on failure. */
static int open_socket(const char *device)
{
	int one = 1, room = 1 << 28;
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int fd;

	at.sll_ifindex = if_nametoindex(device);
	fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
	if (fd < 0 || !at.sll_ifindex || bind(fd, (void *)&at, sizeof at))
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
	return fd;
}

int captures_watch(const char *device)
{
	if (count >= MAX_WATCHED) {
		errno = ENOSPC;
		return -1;
	}
	watched[count].fd = open_socket(device);
	return watched[count].fd < 0 ? -1 : count++;
}

int captures_write(const char *device)
{
	int number = captures_watch(device);
	char path[40];

	if (number < 0)
		return -1;
	snprintf(path, sizeof path, "/run/shared/capture%d", file_count++);
	watched[number].out = fopen(path, "w");
	if (!watched[number].out || fwrite(&HEADER, sizeof HEADER, 1, watched[number].out) != 1)
		return -1;
	return number;
}

/* PACKET_VNET_HDR puts a header before each packet that says which checksums are left to the device. */
int captures_carry(const char *device)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
	int one = 1, room = 1 << 28;

	at.sll_ifindex = if_nametoindex(device);
	if (fd < 0 || !at.sll_ifindex || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) || bind(fd, (void *)&at, sizeof at))
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
	return fd;
}

int captures_socket(int number)
{
	return watched[number].fd;
}

void captures_read(int number)
{
	char bytes[SNAP], control[128];
	struct iovec part = { bytes, sizeof bytes };
	FILE *out = watched[number].out;

	for (;;) {
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
					  .msg_controllen = sizeof control };
		ssize_t length = recvmsg(watched[number].fd, &message, MSG_TRUNC);
		size_t kept = length < SNAP ? length : SNAP;
		struct timespec t = { 0, 0 };

		if (length < 0)
			return;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
			if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS)
				memcpy(&t, CMSG_DATA(c), sizeof t);
		uint32_t record[4] = { t.tv_sec, t.tv_nsec, kept, length };
		fwrite(record, sizeof record, 1, out);
		fwrite(bytes, kept, 1, out);
	}
}

int captures_finish(const char *path, int traffic)
{
	struct traffic_digest all;
	FILE *file;

	for (int number = 0; number < count; number++) {
		FILE *out = watched[number].out;

		if (!out && ioctl(traffic, TRAFFIC_DRAIN, &watched[number].fd))
			return -1;
		if (out)
			captures_read(number);
		if (out && (ferror(out) || fclose(out)))
			return -1;
	}
	file = fopen(path, "w");
	if (!file || ioctl(traffic, TRAFFIC_DIGEST, &all) ||
	    fprintf(file, "%llu %016llx\n", all.packets, all.digest) < 0)
		return -1;
	return fclose(file);
}
