/*
 * The init process of the guest, and its only program. It builds a network, sends flows over it in virtual time, and
 * writes their results. Usage, on the kernel's command line: init=THIS FOLDER, where FOLDER is a folder of the host
 * that contains a file "plan"; results are written there. Each line of the plan is one of
 *
 *     run COMMAND...                          runs a command of iproute2, before time zero
 *     set NAMESPACE PATH VALUE                writes VALUE into a file of /proc or /sys; "-" is the first namespace
 *     feature NAMESPACE DEVICE tso|gro 0|1    sets a feature of a device, as `ethtool -K` does
 *     flow CONTROLLER FROM TO ADDRESS START_NS BYTES TOS LEVELS POOL PRIORITY    adds a flow; 0 bytes is a flow without
 *                                             end; LEVELS above 0 turns on RC3 with this number of low-priority levels,
 *                                             and the sender then writes all bytes at once; POOL above 0 takes the idle
 *                                             connection of flows of this number that was opened first, or opens one;
 *                                             PRIORITY above 0 sets SO_PRIORITY at the flow's start
 *     watch NAMESPACE DEVICE                  adds every packet at the device to the digest
 *     capture NAMESPACE DEVICE                writes every packet at the device to a file; captures count from 0
 *     carry NAMESPACE ONE OTHER               forwards packets between two devices in both directions
 *     lose FLOW BYTE COPIES                   drops the segment with this byte this many times where it is forwarded
 *     host NAMESPACE                          writes the kernel's protocol counters of the namespace at the end
 *     sample INTERVAL_NS                      writes each flow's window and round-trip time at this interval
 *     queue NAMESPACE DEVICE                  samples the output queue of the device, too; queues count from 0
 *     at NS COMMAND...                        runs a command of iproute2 at this time; times do not decrease
 *     count NAMESPACE                         writes the counters of all queues of the namespace at the end
 *     end NS                                  the end of the run
 *
 * A flow starts with its SYN, or with its first byte on an open connection, and ends when the receiver has read its
 * last byte. The kernel moves the data (traffic/traffic.h). This program wakes up only for samples, starts of flows,
 * commands, connections and captures.
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
	MAX_COMMANDS = 1000,
	FIRST_PORT = 10000,
	RC3 = 64,	/* The socket option that the RC3 patches add */
};
#define NONE UINT64_MAX

struct flow {
	char controller[24], from[24], to[24], address[40];
	uint64_t start, bytes, delivered, finish;
	int tos, sender, receiver, is_started, levels, pool, priority;
	/* The flow that opened the connection, and the flow that uses it now or used it last */
	int connection, last;
	/* Another flow uses the connection now, so that `info` stays */
	int is_over;
	struct tcp_info info;
	/* Of the connection, before this flow */
	struct tcp_info before;
};

/* A command that is run at a time */
struct command {
	uint64_t at;
	char line[200];
};

static struct flow flows[MAX_FLOWS];
static struct command commands[MAX_COMMANDS];
static char counted[MAX_COUNTED][24], hosts[MAX_HOSTS][24];
/* The descriptor of /proc/traffic, through which the kernel is given sockets to serve */
static int traffic;
static int flow_count, counted_count, host_count, command_count;
/* The clock at time zero of the run, and the other times relative to it, in nanoseconds */
static uint64_t zero, sample_interval, end = NONE;

/* Powers the guest off. */
static void stop(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* Reports an error with errno, and powers the guest off. */
static void fail(const char *what, const char *which)
{
	FILE *file = fopen("/run/shared/error", "w");

	if (file) {
		fprintf(file, "%s %s: %s\n", what, which, strerror(errno));
		fclose(file);
	}
	printf("%s %s: %s\n", what, which, strerror(errno));
	fflush(stdout);
	stop();
}

/* Sends a request to /proc/traffic. */
static void request(unsigned long number, void *argument, const char *subject)
{
	if (ioctl(traffic, number, argument))
		fail("the kernel does not serve", subject);
}

/* The time since time zero in nanoseconds. */
static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec - zero;
}

/* Moves this process into a network namespace. */
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

/* Runs a command and waits for its end. */
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
		/* Joins the words again, for the message. */
		for (int i = 1; i < count; i++)
			words[i][-1] = ' ';
		fail("this command failed:", words[0]);
	}
}

/* Writes a setting in a namespace. /proc/sys/net shows the settings of the namespace of the process. */
static void set(const char *namespace, const char *path, const char *value)
{
	int fd;

	if (strcmp(namespace, "-"))
		enter(namespace);
	/* A mount of /sys shows the devices of the namespace in which it was mounted. */
	if (!strncmp(path, "/sys/", 5) && mount("sys", "/sys", "sysfs", 0, NULL))
		fail("no /sys in", namespace);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		fail("cannot set", path);
	close(fd);
	if (!strncmp(path, "/sys/", 5))
		umount("/sys");
}

/* Adds the packets at a device to the digest or, for a capture, writes them to a file. */
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
		request(TRAFFIC_WATCH, &own, device);
	else
		request(TRAFFIC_HASH, &own.fd, device);
}

/* Forwards packets from one device to another. */
static void carry(const char *namespace, const char *from, const char *to)
{
	struct traffic_way way;

	enter(namespace);
	way.in = captures_carry(from);
	way.out = captures_carry(to);
	if (way.in < 0 || way.out < 0)
		fail("cannot carry from", from);
	request(TRAFFIC_CARRY, &way, from);
}

/* Turns a feature of a device on or off. */
static void feature(const char *namespace, const char *device, const char *name, int is_on)
{
	enter(namespace);
	if (features_set(device, name, is_on))
		fail("cannot set a feature of", device);
}

/* Samples the output queue of a device during the run. */
static void follow(const char *namespace, const char *device)
{
	enter(namespace);
	if (queues_follow(device))
		fail("no queue at", device);
}

/*
 * Turns on RC3. RC3 sends the end of the written data at low priority, so the sender writes all data at once, into a
 * buffer that is large enough.
 */
static void enable_rc3(struct flow *f)
{
	int room = 1 << 30;

	if (setsockopt(f->sender, IPPROTO_TCP, RC3, &f->levels, sizeof f->levels))
		fail("the kernel has no", "RC3");
	setsockopt(f->sender, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
}

/* Writes the address of a flow's receiver, or the wildcard address for listening. Returns the length of the address. */
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

/* Creates a socket for one end of a flow. */
static int socket_of(const struct flow *f, int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (family == AF_INET)
		setsockopt(fd, IPPROTO_IP, IP_TOS, &f->tos, sizeof f->tos);
	return fd;
}

/* Creates the listening socket and the sending socket of a flow. */
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
	/*
	 * DCTCP sends an ECN-capable SYN. A receiver with another controller would assume a broken path and turn ECN
	 * off.
	 */
	if (!strcmp(f->controller, "dctcp") &&
	    setsockopt(f->receiver, IPPROTO_TCP, TCP_CONGESTION, f->controller, strlen(f->controller)))
		fail("the kernel has no controller", f->controller);
	listener = (struct traffic_watch){ .fd = f->receiver, .name = index };
	request(TRAFFIC_WATCH, &listener, f->to);
	enter(f->from);
	f->sender = socket_of(f, at.ss_family);
	if (setsockopt(f->sender, IPPROTO_TCP, TCP_CONGESTION, f->controller, strlen(f->controller)))
		fail("the kernel has no controller", f->controller);
	setsockopt(f->sender, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (f->levels)
		enable_rc3(f);
}

/* Accepts the connection of a flow, and replaces the listening socket with it. */
static void accept_flow(struct flow *f)
{
	struct traffic_end end = { .flow = f - flows, .bytes = f->bytes };
	int connection = accept4(f->receiver, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (connection < 0)
		return;
	request(TRAFFIC_FORGET, &f->receiver, f->to);
	close(f->receiver);
	f->receiver = end.fd = connection;
	request(TRAFFIC_RECEIVE, &end, f->to);
}

/* Reads the TCP statistics of a flow's sender. */
static void read_info(struct flow *f)
{
	socklen_t length = sizeof f->info;

	if (f->is_over)
		return;
	getsockopt(f->sender, IPPROTO_TCP, TCP_INFO, &f->info, &length);
}

/* Sets the priority of a flow, by which a controller may tell classes. */
static void set_priority(const struct flow *f)
{
	if (f->priority && setsockopt(f->sender, SOL_SOCKET, SO_PRIORITY, &f->priority, sizeof f->priority))
		fail("cannot set the priority of a flow from", f->from);
}

/* Finds the connection for a flow that was opened first, among the idle ones of its pool. Returns NULL without one. */
static struct flow *idle_connection(const struct flow *f)
{
	for (struct flow *c = flows; f->pool && c < flows + flow_count; c++)
		if (c->is_started && c->connection == c - flows && c->pool == f->pool &&
		    flows[c->last].finish != NONE && !strcmp(c->from, f->from) && !strcmp(c->to, f->to))
			return c;
	return NULL;
}

/* Sends a flow on an open connection. */
static void continue_on(struct flow *f, struct flow *c)
{
	struct flow *before = &flows[c->last];
	struct traffic_next next = { .sender = c->sender, .receiver = c->receiver, .flow = f - flows, .bytes = f->bytes };

	read_info(before);
	before->is_over = 1;
	f->before = before->info;
	/* The sockets that were prepared for a connection of its own are not needed. */
	request(TRAFFIC_FORGET, &f->receiver, f->to);
	close(f->receiver);
	close(f->sender);
	f->sender = c->sender;
	f->receiver = c->receiver;
	f->connection = c - flows;
	c->last = f - flows;
	f->is_started = 1;
	set_priority(f);
	request(TRAFFIC_NEXT, &next, f->from);
}

/* Connects the sender of a flow, unless it takes an open connection, and lets the kernel send its data. */
static void start_flow(int index)
{
	struct flow *f = &flows[index], *c = idle_connection(f);
	struct sockaddr_storage at;
	socklen_t length = address_of(f, 0, &at);
	struct traffic_end end = { .fd = f->sender, .flow = index, .bytes = f->bytes, .is_one_write = f->levels > 0 };

	if (c) {
		continue_on(f, c);
		return;
	}
	f->is_started = 1;
	set_priority(f);
	if (connect(f->sender, (void *)&at, length) && errno != EINPROGRESS)
		fail("cannot connect to", f->address);
	request(TRAFFIC_SEND, &end, f->from);
}

/* Writes the results of all flows, and the digest of packets. */
static void write_flows(void)
{
	FILE *out = fopen("/run/shared/flows.csv", "w");

	if (!out)
		fail("cannot write", "flows.csv");
	fprintf(out, "start_ns,finish_ns,delivered_bytes,segments,retransmissions,srtt_us,min_rtt_us,connection\n");
	for (struct flow *f = flows; f < flows + flow_count; f++) {
		read_info(f);
		fprintf(out, "%lu,", f->start);
		if (f->finish != NONE)
			fprintf(out, "%lu", f->finish);
		fprintf(out, ",%lu,%u,%u,%u,%u,%d\n", f->delivered,
			f->info.tcpi_data_segs_out - f->before.tcpi_data_segs_out,
			f->info.tcpi_total_retrans - f->before.tcpi_total_retrans, f->info.tcpi_rtt,
			f->info.tcpi_min_rtt, f->connection);
	}
	if (fclose(out))
		fail("cannot write", "flows.csv");
	if (captures_finish("/run/shared/packets", traffic))
		fail("cannot write", "packets");
}

/* Writes the counters of queues. */
static void write_counts(void)
{
	FILE *out = fopen("/run/shared/counts.csv", "w");

	if (!out || fprintf(out, COLUMNS "\n") < 0 || fclose(out))
		fail("cannot write", "counts.csv");
	for (int i = 0; i < counted_count; i++) {
		enter(counted[i]);
		if (queues_count("/run/shared/counts.csv", counted[i]))
			fail("cannot read the queues of", counted[i]);
	}
}

/* Writes the protocol counters of all hosts. */
static void write_hosts(void)
{
	static const char *const files[] = { "snmp", "netstat" };
	FILE *out = fopen("/run/shared/hosts", "w");
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

/* The number of segments in flight: sent, and neither acknowledged, selectively acknowledged, nor marked as lost. */
static uint32_t in_flight(const struct tcp_info *info)
{
	return info->tcpi_unacked - info->tcpi_sacked - info->tcpi_lost + info->tcpi_retrans;
}

/* Writes one row for each running flow. */
static void write_samples(FILE *out, uint64_t time)
{
	for (struct flow *f = flows; f < flows + flow_count; f++) {
		if (!f->is_started || f->finish != NONE)
			continue;
		read_info(f);
		fprintf(out, "%lu,%d,%lu,%lu,%u,%lu\n", time, (int)(f - flows),
			(uint64_t)f->info.tcpi_snd_cwnd * f->info.tcpi_snd_mss,
			(uint64_t)in_flight(&f->info) * f->info.tcpi_snd_mss, f->info.tcpi_rtt, f->delivered);
	}
}

/* Reads from the kernel what each receiver has read, and when it had all bytes. */
static void read_counts(void)
{
	static struct traffic_count counts[MAX_FLOWS];
	struct traffic_counts all = { .flows = flow_count, .count = counts };

	request(TRAFFIC_COUNTS, &all, "the flows");
	for (int i = 0; i < flow_count; i++) {
		flows[i].delivered = counts[i].delivered;
		flows[i].finish = counts[i].finish == TRAFFIC_NEVER ? NONE : counts[i].finish - zero;
	}
}

/* Lets the kernel serve the flows until a time, or until a flow ends. Returns the current time. */
static uint64_t serve_until(uint64_t until, uint64_t time)
{
	struct traffic_wait wait = { .until = until == NONE ? TRAFFIC_NEVER : zero + until, .time = zero + time };

	do {
		request(TRAFFIC_WAIT, &wait, "the flows");
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

/* Runs commands, starts flows and takes samples until the end of the run, or until all flows have finished. */
static void run_flows(FILE *samples, FILE *queues)
{
	uint64_t next_sample = sample_interval ? 0 : NONE, time = now();
	struct command *command = commands, *last = commands + command_count;

	for (;;) {
		uint64_t next = end;
		int open = 0;

		for (; command < last && command->at <= time; command++)
			run(command->line);
		if (command < last && command->at < next)
			next = command->at;

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
			next_sample += sample_interval;
		}
		if (time >= end || !open)
			return;
		time = serve_until(next_sample < next ? next_sample : next, time);
	}
}

/* Reads the plan, and executes each line that can be executed at once. */
static void read_plan(void)
{
	FILE *plan = fopen("/run/shared/plan", "r");
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
		else if (flow_count < MAX_FLOWS && sscanf(line, "flow %23s %23s %23s %39s %lu %lu %d %d %d %d",
							  f->controller, f->from, f->to, f->address, &f->start,
							  &f->bytes, &f->tos, &f->levels, &f->pool,
							  &f->priority) == 10) {
			f->finish = NONE;
			f->connection = f->last = flow_count++;
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
		else if (command_count < MAX_COMMANDS && sscanf(line, "at %lu %199[^\n]", &commands[command_count].at,
								commands[command_count].line) == 2)
			command_count++;
		else if (counted_count < MAX_COUNTED && sscanf(line, "count %23s", counted[counted_count]) == 1)
			counted_count++;
		else if (sscanf(line, "sample %lu", &sample_interval) != 1 && sscanf(line, "end %lu", &end) != 1) {
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
	mkdir("/run/shared", 0755);
	mkdir("/run/netns", 0755);
	if (count < 2 || mount("none", "/run/shared", "hostfs", 0, words[1]))
		fail("cannot reach the folder of the plan", count < 2 ? "" : words[1]);
	traffic = open("/proc/traffic", O_RDWR | O_CLOEXEC);
	if (traffic < 0)
		fail("the kernel has no", "/proc/traffic");
	read_plan();
	for (int i = 0; i < flow_count; i++)
		open_flow(i);
	/* The kernel may delay the wake-ups of ordinary processes by 0.1 % of the wait, but not those of real-time ones. */
	if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ .sched_priority = 1 }))
		fail("cannot keep time", "");
	/* Time zero is the same in each run, no matter how long the setup took. */
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &settle, NULL);
	zero = now();
	samples = fopen("/run/shared/samples.csv", "w");
	queues = fopen("/run/shared/queues.csv", "w");
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
