/*
 * Losses that are planned, by packet sockets: no queue discipline of the kernel loses the packets of a list.
 */
#include "losses.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

enum { MAX_WAYS = 128, MAX_PLANNED = 10000, PORTS = 1 << 16, ROOM = 1 << 16 };

static struct { int in, out; } ways[MAX_WAYS];
static struct { int port; uint32_t byte; unsigned copies; } planned[MAX_PLANNED];
static int way_count, planned_count;
/* The number of the first byte of the flow to each port, as its SYN has it. */
static uint32_t first[PORTS];

/* Sums that are left to the device stay so: a header before each packet says which. */
static int open_socket(const char *device)
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

int losses_carry(const char *from, const char *to)
{
	if (way_count >= MAX_WAYS) {
		errno = ENOSPC;
		return -1;
	}
	ways[way_count].in = open_socket(from);
	ways[way_count].out = open_socket(to);
	return ways[way_count].in < 0 || ways[way_count].out < 0 ? -1 : way_count++;
}

int losses_socket(int number)
{
	return ways[number].in;
}

int losses_plan(int port, uint32_t byte, unsigned copies)
{
	if (planned_count >= MAX_PLANNED || port < 0 || port >= PORTS) {
		errno = ENOSPC;
		return -1;
	}
	planned[planned_count].port = port;
	planned[planned_count].byte = byte;
	planned[planned_count++].copies = copies;
	return 0;
}

/* Whether this packet of IPv4 is one of those that are lost. */
static int is_lost(const unsigned char *packet, size_t length)
{
	struct iphdr ip;
	struct tcphdr tcp;
	size_t header, payload;
	int port;

	if (length < sizeof ip)
		return 0;
	memcpy(&ip, packet, sizeof ip);
	header = ip.ihl * 4;
	if (ip.version != 4 || ip.protocol != IPPROTO_TCP || length < header + sizeof tcp)
		return 0;
	memcpy(&tcp, packet + header, sizeof tcp);
	header += tcp.doff * 4;
	payload = ntohs(ip.tot_len) - header;
	port = ntohs(tcp.dest);
	if (tcp.syn)
		first[port] = ntohl(tcp.seq) + 1;
	for (int i = 0; i < planned_count; i++) {
		if (planned[i].port != port || !planned[i].copies)
			continue;
		if (planned[i].byte - (ntohl(tcp.seq) - first[port]) < payload) {
			planned[i].copies--;
			return 1;
		}
	}
	return 0;
}

int losses_read(int number)
{
	static unsigned char bytes[ROOM];
	const size_t before = sizeof(struct virtio_net_hdr) + sizeof(struct ether_header);
	ssize_t length;

	while ((length = recv(ways[number].in, bytes, sizeof bytes, 0)) >= 0) {
		if ((size_t)length > before && is_lost(bytes + before, length - before))
			continue;
		if (send(ways[number].out, bytes, length, 0) != length)
			return -1;
	}
	return errno == EAGAIN ? 0 : -1;
}
