/*
 * Reads the counters of queue disciplines by rtnetlink. The guest samples too often to run `tc` each time.
 */
#include "queues.h"
#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_QUEUES = 400, ROOM = 1 << 16 };

struct counters {
	char kind[16];
	uint32_t parent, packets, drops, marks, queued_packets, queued_bytes;
	uint64_t bytes;
	int device;
};

static struct {
	int netlink, device;
} followed[MAX_QUEUES];
static int followed_count;
static _Alignas(struct nlmsghdr) char answer[ROOM];

/* Requests the queue disciplines of a device, or of all devices for device 0. */
static int request_qdiscs(int netlink, int device, int flags)
{
	struct {
		struct nlmsghdr header;
		struct tcmsg message;
	} request = {
		.header = { .nlmsg_len = sizeof request, .nlmsg_type = RTM_GETQDISC, .nlmsg_flags = NLM_F_REQUEST | flags },
		.message = { .tcm_family = AF_UNSPEC, .tcm_ifindex = device, .tcm_parent = device ? TC_H_ROOT : 0 },
	};

	return send(netlink, &request, sizeof request, 0) == sizeof request ? 0 : -1;
}

/* Returns the number of ECN marks, which each discipline counts in a structure of its own. */
static uint32_t marks_of(const char *kind, const void *own, size_t length)
{
	if (!strcmp(kind, "codel") && length >= sizeof(struct tc_codel_xstats))
		return ((const struct tc_codel_xstats *)own)->ecn_mark + ((const struct tc_codel_xstats *)own)->ce_mark;
	if (!strcmp(kind, "fq_codel") && length >= sizeof(struct tc_fq_codel_xstats))
		return ((const struct tc_fq_codel_xstats *)own)->qdisc_stats.ecn_mark;
	if (!strcmp(kind, "red") && length >= sizeof(struct tc_red_xstats))
		return ((const struct tc_red_xstats *)own)->marked;
	if (!strcmp(kind, "pie") && length >= sizeof(struct tc_pie_xstats))
		return ((const struct tc_pie_xstats *)own)->ecn_mark;
	return 0;
}

/* Parses the attribute TCA_STATS2. */
static void read_statistics(struct counters *c, struct rtattr *all)
{
	int left = RTA_PAYLOAD(all);

	for (struct rtattr *a = RTA_DATA(all); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == TCA_STATS_BASIC) {
			struct gnet_stats_basic basic;
			memcpy(&basic, RTA_DATA(a), sizeof basic);
			c->bytes = basic.bytes;
			c->packets = basic.packets;
		} else if (a->rta_type == TCA_STATS_QUEUE) {
			struct gnet_stats_queue queue;
			memcpy(&queue, RTA_DATA(a), sizeof queue);
			c->drops = queue.drops;
			c->queued_packets = queue.qlen;
			c->queued_bytes = queue.backlog;
		} else if (a->rta_type == TCA_STATS_APP) {
			c->marks = marks_of(c->kind, RTA_DATA(a), RTA_PAYLOAD(a));
		}
	}
}

/* Parses a message about a queue discipline. */
static void read_discipline(struct counters *c, struct nlmsghdr *header)
{
	struct tcmsg *message = NLMSG_DATA(header);
	int left = TCA_PAYLOAD(header);

	memset(c, 0, sizeof *c);
	c->device = message->tcm_ifindex;
	c->parent = message->tcm_parent;
	for (struct rtattr *a = TCA_RTA(message); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == TCA_KIND)
			snprintf(c->kind, sizeof c->kind, "%s", (char *)RTA_DATA(a));
		else if (a->rta_type == TCA_STATS2)
			read_statistics(c, a);
	}
}

int queues_follow(const char *device)
{
	int index = if_nametoindex(device);

	if (followed_count >= MAX_QUEUES || !index) {
		errno = index ? ENOSPC : ENODEV;
		return -1;
	}
	followed[followed_count].netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	followed[followed_count].device = index;
	return followed[followed_count++].netlink < 0;
}

int queues_sample(FILE *out, uint64_t time)
{
	for (int i = 0; i < followed_count; i++) {
		struct counters c;
		if (request_qdiscs(followed[i].netlink, followed[i].device, NLM_F_ECHO) ||
		    recv(followed[i].netlink, answer, sizeof answer, 0) < (ssize_t)sizeof(struct nlmsghdr) ||
		    ((struct nlmsghdr *)answer)->nlmsg_type != RTM_NEWQDISC) {
			errno = EPROTO;
			return -1;
		}
		read_discipline(&c, (struct nlmsghdr *)answer);
		fprintf(out, "%lu,%d,%u,%u,%lu,%u\n", time, i, c.queued_bytes, c.queued_packets, c.bytes, c.packets);
	}
	return 0;
}

int queues_count(const char *path, const char *namespace)
{
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), is_open = 1;
	FILE *out = fopen(path, "a");
	ssize_t length;

	if (netlink < 0 || !out || request_qdiscs(netlink, 0, NLM_F_DUMP))
		return -1;
	while (is_open && (length = recv(netlink, answer, sizeof answer, 0)) > 0)
		for (struct nlmsghdr *h = (void *)answer; NLMSG_OK(h, length); h = NLMSG_NEXT(h, length)) {
			char device[IF_NAMESIZE] = "";
			struct counters c;
			if (h->nlmsg_type != RTM_NEWQDISC) {
				is_open = 0;
				break;
			}
			read_discipline(&c, h);
			if_indextoname(c.device, device);
			fprintf(out, "%s,%s,%s,%x,%lu,%u,%u,%u,%u\n", namespace, device, c.kind, c.parent, c.bytes, c.packets,
				c.drops, c.marks, c.queued_packets);
		}
	close(netlink);
	return fclose(out);
}
