/*
 * The first and only program of the guest: it lays out a network, sends flows over it in virtual time, and writes
 * what became of them. Usage, on the kernel's command line: init=THIS PLACE, where PLACE is a folder of the host with
 * a file "plan"; the results are written there. One line of the plan is one of
 *
 *     run COMMAND...                          a command of iproute2 or a setting, before time zero
 *     set NAMESPACE PATH VALUE                writes VALUE into a file of /proc or /sys; "-" is the first namespace
 *     feature NAMESPACE DEVICE tso|gro 0|1    as `ethtool -K` does
 *     flow CONTROLLER FROM TO ADDRESS START_NS BYTES TOS LEVELS    0 bytes: as many as there is time for; with RC3 at
 *                                             so many levels of low priority, and then written at once
 *     watch NAMESPACE DEVICE                  takes a digest of every packet that leaves or enters there
 *     capture NAMESPACE DEVICE                writes what leaves or enters there; captures are numbered from 0
 *     carry NAMESPACE ONE OTHER               carries packets between two devices, both ways
 *     lose FLOW BYTE COPIES                   where they are carried, the segment with this byte is lost so many times
 *     host NAMESPACE                          writes what the kernel has counted for it, at the end
 *     sample INTERVAL_NS                      writes each flow's window and round trip so often
 *     queue NAMESPACE DEVICE                  writes the length of the output queue, too; queues are numbered from 0
 *     count NAMESPACE                         writes what its queues have counted, at the end
 *     end NS                                  when to stop
 *
 * A flow starts with its SYN, and is done when the receiver has read its last byte. The kernel serves the sockets
 * (traffic/traffic.h): this program wakes up for samples, starts of flows, connections, and captures.
 */
#define _GNU_SOURCE
#include "captures.h"
#include "features.h"
#include "queues.h"
#include "traffic/traffic.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <linux/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_FLOWS = TRAFFIC_MAX_FLOWS,
	MAX_HOSTS = 400,
	MAX_COUNTED = 200,
	FIRST_PORT = 10000,
	RC3 = 64,	/* The socket option of linux/rc3 */
};
#define NONE UINT64_MAX

struct flow {
	char controller[24], from[24], to[24], address[40];
	uint64_t start, bytes, delivered, finish;
	int tos, sender, receiver, is_started, levels;
	struct tcp_info info;
};

static struct flow flows[MAX_FLOWS];
static char counted[MAX_COUNTED][24], hosts[MAX_HOSTS][24];
/* The file by which the kernel is given sockets to serve */
static int traffic;
static int flow_count, counted_count, host_count;
static uint64_t zero, sample_every, end = NONE;

static void stop(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static void fail(const char *what, const char *which)
{
	FILE *file = fopen("/run/place/error", "w");

	if (file) {
		fprintf(file, "%s %s: %s\n", what, which, strerror(errno));
		fclose(file);
	}
	printf("%s %s: %s\n", what, which, strerror(errno));
	fflush(stdout);
	stop();
}

static void ask(unsigned long what, void *with, const char *of)
{
	if (ioctl(traffic, what, with))
		fail("the kernel does not serve", of);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec - zero;
}

static void enter(const char *namespace)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "/run/netns/%s", namespace);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		fail("no namespace", namespace);
	close(fd);
}

static void run(char *line)
{
	char *words[64];
	int count = 0, status;

	for (char *w = strtok(line, " "); w && count < 63; w = strtok(NULL, " "))
		words[count++] = w;
	words[count] = NULL;
	pid_t child = fork();
	if (child == 0) {
		execvp(words[0], words);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || status) {
		errno = EINVAL;
		for (int i = 1; i < count; i++)
			words[i][-1] = ' ';
		fail("this command failed:", words[0]);
	}
}

/* Writes a setting inside of a namespace; the child's own view of /proc/sys/net is that of its namespace. */
static void set(const char *namespace, const char *path, const char *value)
{
	int fd;

	if (strcmp(namespace, "-"))
		enter(namespace);
	/* A mount of /sys shows the devices of the namespace that it was made in. */
	if (!strncmp(path, "/sys/", 5) && mount("sys", "/sys", "sysfs", 0, NULL))
		fail("no /sys in", namespace);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail("cannot set", path);
	close(fd);
	if (!strncmp(path, "/sys/", 5))
		umount("/sys");
}

/* Watches a device; into a file, where it is a capture. */
static void watch(const char *namespace, const char *device, int is_capture)
{
	struct traffic_watch own;
	int number;

	enter(namespace);
	number = is_capture ? captures_write(device) : captures_watch(device);
	if (number < 0)
		fail("cannot watch", device);
	own = (struct traffic_watch){ .fd = captures_socket(number), .name = MAX_FLOWS + number };
	if (is_capture)
		ask(TRAFFIC_WATCH, &own, device);
	else
		ask(TRAFFIC_HASH, &own.fd, device);
}

/* One way from a device to another. */
static void carry(const char *namespace, const char *from, const char *to)
{
	struct traffic_way way;

	enter(namespace);
	way.in = captures_carry(from);
	way.out = captures_carry(to);
	if (way.in < 0 || way.out < 0)
		fail("cannot carry from", from);
	ask(TRAFFIC_CARRY, &way, from);
}

static void feature(const char *namespace, const char *device, const char *name, int is_on)
{
	enter(namespace);
	if (features_set(device, name, is_on))
		fail("cannot set a feature of", device);
}

static void follow(const char *namespace, const char *device)
{
	enter(namespace);
	if (queues_follow(device))
		fail("no queue at", device);
}

/* The tail is the end of the bytes written: all are written at once, into a buffer that is large enough. */
static void ask_for_rc3(struct flow *f)
{
	int room = 1 << 30;

	if (setsockopt(f->sender, IPPROTO_TCP, RC3, &f->levels, sizeof f->levels))
		fail("the kernel has no", "RC3");
	setsockopt(f->sender, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
}

/* The address of a flow's receiver, or, to listen, any; returns its length. */
static socklen_t address_of(const struct flow *f, int is_any, struct sockaddr_storage *at)
{
	struct sockaddr_in6 *six = (void *)at;
	struct sockaddr_in *four = (void *)at;
	in_port_t port = htons(FIRST_PORT + (f - flows));

	memset(at, 0, sizeof *at);
	if (strchr(f->address, ':')) {
		six->sin6_family = AF_INET6;
		six->sin6_port = port;
		if (!is_any)
			inet_pton(AF_INET6, f->address, &six->sin6_addr);
		return sizeof *six;
	}
	four->sin_family = AF_INET;
	four->sin_port = port;
	if (!is_any)
		inet_pton(AF_INET, f->address, &four->sin_addr);
	return sizeof *four;
}

static int socket_of(const struct flow *f, int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (family == AF_INET)
		setsockopt(fd, IPPROTO_IP, IP_TOS, &f->tos, sizeof f->tos);
	return fd;
}

/* Listens for a flow, and makes the socket that it is sent from. */
static void open_flow(int index)
{
	struct flow *f = &flows[index];
	struct sockaddr_storage at;
	socklen_t length = address_of(f, 1, &at);
	struct traffic_watch listener;
	int one = 1;

	enter(f->to);
	f->receiver = socket_of(f, at.ss_family);
	if (f->receiver < 0 || bind(f->receiver, (void *)&at, length) || listen(f->receiver, 1))
		fail("cannot listen at", f->to);
	/* The SYN of DCTCP is ECN-capable: a receiver that has another controller takes it for a broken path. */
	if (!strcmp(f->controller, "dctcp") &&
	    setsockopt(f->receiver, IPPROTO_TCP, TCP_CONGESTION, f->controller, strlen(f->controller)))
		fail("the kernel has no controller", f->controller);
	listener = (struct traffic_watch){ .fd = f->receiver, .name = index };
	ask(TRAFFIC_WATCH, &listener, f->to);
	enter(f->from);
	f->sender = socket_of(f, at.ss_family);
	if (setsockopt(f->sender, IPPROTO_TCP, TCP_CONGESTION, f->controller, strlen(f->controller)))
		fail("the kernel has no controller", f->controller);
	setsockopt(f->sender, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (f->levels)
		ask_for_rc3(f);
}

/* Takes the connection that the listener of a flow has, in place of the listener. */
static void accept_flow(struct flow *f)
{
	struct traffic_end end = { .flow = f - flows, .bytes = f->bytes };
	int connection = accept4(f->receiver, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (connection < 0)
		return;
	ask(TRAFFIC_FORGET, &f->receiver, f->to);
	close(f->receiver);
	f->receiver = end.fd = connection;
	ask(TRAFFIC_RECEIVE, &end, f->to);
}

static void note(struct flow *f)
{
	socklen_t length = sizeof f->info;

	getsockopt(f->sender, IPPROTO_TCP, TCP_INFO, &f->info, &length);
}

static void start_flow(int index)
{
	struct flow *f = &flows[index];
	struct sockaddr_storage at;
	socklen_t length = address_of(f, 0, &at);
	struct traffic_end end = { .fd = f->sender, .flow = index, .bytes = f->bytes, .is_one_write = f->levels > 0 };

	f->is_started = 1;
	if (connect(f->sender, (void *)&at, length) && errno != EINPROGRESS)
		fail("cannot connect to", f->address);
	ask(TRAFFIC_SEND, &end, f->from);
}

static void write_flows(void)
{
	FILE *out = fopen("/run/place/flows.csv", "w");

	if (!out)
		fail("cannot write", "flows.csv");
	fprintf(out, "start_ns,finish_ns,delivered_bytes,segments,retransmissions,srtt_us,min_rtt_us\n");
	for (struct flow *f = flows; f < flows + flow_count; f++) {
		note(f);
		fprintf(out, "%lu,", f->start);
		if (f->finish != NONE)
			fprintf(out, "%lu", f->finish);
		fprintf(out, ",%lu,%u,%u,%u,%u\n", f->delivered, f->info.tcpi_data_segs_out, f->info.tcpi_total_retrans,
			f->info.tcpi_rtt, f->info.tcpi_min_rtt);
	}
	if (fclose(out))
		fail("cannot write", "flows.csv");
	if (captures_finish("/run/place/packets", traffic))
		fail("cannot write", "packets");
}

static void write_counts(void)
{
	FILE *out = fopen("/run/place/counts.csv", "w");

	if (!out || fprintf(out, COLUMNS "\n") < 0 || fclose(out))
		fail("cannot write", "counts.csv");
	for (int i = 0; i < counted_count; i++) {
		enter(counted[i]);
		if (queues_count("/run/place/counts.csv", counted[i]))
			fail("cannot read the queues of", counted[i]);
	}
}

/* What /proc tells of one host after the other. */
static void write_hosts(void)
{
	static const char *const files[] = { "snmp", "netstat" };
	FILE *out = fopen("/run/place/hosts", "w");
	char line[8192], path[40];

	for (int i = 0; out && i < host_count; i++) {
		enter(hosts[i]);
		fprintf(out, "host %s\n", hosts[i]);
		for (int file = 0; file < 2; file++) {
			snprintf(path, sizeof path, "/proc/self/net/%s", files[file]);
			FILE *in = fopen(path, "r");
			if (!in)
				fail("cannot read", path);
			while (fgets(line, sizeof line, in))
				fputs(line, out);
			fclose(in);
		}
	}
	if (!out || fclose(out))
		fail("cannot write", "hosts");
}

/* Segments that are under way as far as the sender knows: not those that are reported to be there, or taken for lost. */
static uint32_t in_flight(const struct tcp_info *info)
{
	return info->tcpi_unacked - info->tcpi_sacked - info->tcpi_lost + info->tcpi_retrans;
}

static void write_samples(FILE *out, uint64_t time)
{
	for (struct flow *f = flows; f < flows + flow_count; f++) {
		if (!f->is_started || f->finish != NONE)
			continue;
		note(f);
		fprintf(out, "%lu,%d,%lu,%lu,%u,%lu\n", time, (int)(f - flows),
			(uint64_t)f->info.tcpi_snd_cwnd * f->info.tcpi_snd_mss,
			(uint64_t)in_flight(&f->info) * f->info.tcpi_snd_mss, f->info.tcpi_rtt, f->delivered);
	}
}

static void read_counts(void)
{
	static struct traffic_count counts[MAX_FLOWS];
	struct traffic_counts all = { .flows = flow_count, .count = counts };

	ask(TRAFFIC_COUNTS, &all, "the flows");
	for (int i = 0; i < flow_count; i++) {
		flows[i].delivered = counts[i].delivered;
		flows[i].finish = counts[i].finish == TRAFFIC_NEVER ? NONE : counts[i].finish - zero;
	}
}

/* Leaves the flows to the kernel until a time, or until one of them ends. Returns the time that it is then. */
static uint64_t serve_until(uint64_t until, uint64_t time)
{
	struct traffic_wait wait = { .until = until == NONE ? TRAFFIC_NEVER : zero + until, .time = zero + time };

	do {
		ask(TRAFFIC_WAIT, &wait, "the flows");
		if (wait.reason == TRAFFIC_BROKEN) {
			errno = wait.error;
			fail("a flow broke off:", flows[wait.name].from);
		}
		if (wait.reason == TRAFFIC_READ && wait.name >= MAX_FLOWS)
			captures_read(wait.name - MAX_FLOWS);
		else if (wait.reason == TRAFFIC_READ)
			accept_flow(&flows[wait.name]);
	} while (wait.reason != TRAFFIC_TIME);
	read_counts();
	return wait.time - zero;
}

static void run_flows(FILE *samples, FILE *queues)
{
	uint64_t next_sample = sample_every ? 0 : NONE, time = now();

	for (;;) {
		uint64_t next = end;
		int open = 0;

		for (int i = 0; i < flow_count; i++) {
			if (!flows[i].is_started && flows[i].start <= time)
				start_flow(i);
			else if (!flows[i].is_started && flows[i].start < next)
				next = flows[i].start;
			open += flows[i].finish == NONE;
		}
		if (next_sample <= time) {
			write_samples(samples, next_sample);
			if (queues_sample(queues, next_sample))
				fail("cannot read the queues of", "a device");
			next_sample += sample_every;
		}
		if (time >= end || !open)
			return;
		time = serve_until(next_sample < next ? next_sample : next, time);
	}
}

static void read_plan(void)
{
	FILE *plan = fopen("/run/place/plan", "r");
	char line[400], a[24], b[200], c[100];
	unsigned copies;
	uint32_t byte;
	int is_on, flow;

	if (!plan)
		fail("cannot read", "plan");
	while (fgets(line, sizeof line, plan)) {
		struct flow *f = &flows[flow_count];
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "run ", 4))
			run(line + 4);
		else if (sscanf(line, "set %23s %199s %99[^\n]", a, b, c) == 3)
			set(a, b, c);
		else if (sscanf(line, "feature %23s %199s %99s %d", a, b, c, &is_on) == 4)
			feature(a, b, c, is_on);
		else if (flow_count < MAX_FLOWS && sscanf(line, "flow %23s %23s %23s %39s %lu %lu %d %d", f->controller,
							  f->from, f->to, f->address, &f->start, &f->bytes,
							  &f->tos, &f->levels) == 8) {
			f->finish = NONE;
			flow_count++;
		} else if (sscanf(line, "watch %23s %99s", a, c) == 2)
			watch(a, c, 0);
		else if (sscanf(line, "capture %23s %99s", a, c) == 2)
			watch(a, c, 1);
		else if (sscanf(line, "carry %23s %99s %199s", a, c, b) == 3) {
			carry(a, c, b);
			carry(a, b, c);
		} else if (sscanf(line, "lose %d %u %u", &flow, &byte, &copies) == 3) {
			struct traffic_loss loss = { .port = FIRST_PORT + flow, .byte = byte, .copies = copies };
			if (ioctl(traffic, TRAFFIC_LOSE, &loss))
				fail("cannot plan a loss:", line);
		} else if (host_count < MAX_HOSTS && sscanf(line, "host %23s", hosts[host_count]) == 1)
			host_count++;
		else if (sscanf(line, "queue %23s %99s", a, c) == 2)
			follow(a, c);
		else if (counted_count < MAX_COUNTED && sscanf(line, "count %23s", counted[counted_count]) == 1)
			counted_count++;
		else if (sscanf(line, "sample %lu", &sample_every) != 1 && sscanf(line, "end %lu", &end) != 1) {
			errno = EINVAL;
			fail("no such line of a plan:", line);
		}
	}
	fclose(plan);
}

int main(int count, char **words)
{
	FILE *samples, *queues;
	struct timespec settle = { 100, 0 };

	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	mount("run", "/run", "tmpfs", 0, NULL);
	mkdir("/run/place", 0755);
	mkdir("/run/netns", 0755);
	if (count < 2 || mount("none", "/run/place", "hostfs", 0, words[1]))
		fail("cannot reach the folder of the plan", count < 2 ? "" : words[1]);
	traffic = open("/proc/traffic", O_RDWR | O_CLOEXEC);
	if (traffic < 0)
		fail("the kernel has no", "/proc/traffic");
	read_plan();
	for (int i = 0; i < flow_count; i++)
		open_flow(i);
	/* Waits of other programs may end late, by a thousandth of their length; a real-time program's do not. */
	if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 }))
		fail("cannot keep time", "");
	/* The same instant in each run, however long the layout took. */
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &settle, NULL);
	zero = now();
	samples = fopen("/run/place/samples.csv", "w");
	queues = fopen("/run/place/queues.csv", "w");
	if (!samples || !queues)
		fail("cannot write", "samples.csv");
	fprintf(samples, "time_ns,flow,cwnd_bytes,in_flight_bytes,srtt_us,delivered_bytes\n");
	run_flows(samples, queues);
	if (fclose(samples) || fclose(queues))
		fail("cannot write", "samples.csv");
	write_flows();
	write_counts();
	write_hosts();
	stop();
}
