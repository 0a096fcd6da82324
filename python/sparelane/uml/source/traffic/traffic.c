// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
/*
 * Senders, receivers and packet sockets of a simulated network, served inside the kernel.
 *
 * In User-Mode Linux a system call costs two switches between processes of the host and six calls of ptrace. A
 * program that serves its sockets itself makes about six system calls for each packet, which take most of the time
 * of a run. Here the program opens the sockets, hands them over through /proc/traffic, and sleeps in TRAFFIC_WAIT.
 * The call returns only for other work: a sample, a flow to start, a connection to accept.
 *
 * The loop acts like a program with epoll, in the same order and at the same virtual times, so that every packet is
 * the same as with such a program. Sockets are served in the order in which they became ready, level-triggered and
 * 64 at a time. A read or write that would block takes a microsecond, as handle_syscall() charges for failed calls.
 *
 * Only one program can open the file, and all calls come from its one thread.
 */
#include "traffic.h"
#include <linux/delay.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/if_ether.h>
#include <linux/init.h>
#include <linux/ip.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/tcp.h>
#include <linux/uaccess.h>
#include <linux/uio.h>
#include <linux/virtio_net.h>
#include <net/sock.h>

enum {
	BLOCK = 1 << 16,	/* Bytes that a sender writes at once; the largest packet that is carried */
	BATCH = 64,		/* Sockets served between two readings of the clock */
	SNAP = 128,		/* Bytes of a packet in the digest */
	MAX_LOSSES = 10000,
	PORTS = 1 << 16,
};

struct served {
	struct list_head all, ready;
	wait_queue_entry_t wait;
	wait_queue_head_t *head;
	struct file *file, *out;	/* `out` is the socket to which packets are forwarded */
	struct socket *socket;
	/* Returns an enum traffic_reason to end TRAFFIC_WAIT, a negative errno, or 0 */
	int (*serve)(struct served *s);
	__poll_t events;
	int fd;
	u32 name;			/* Number of the flow, or the program's name for a watched descriptor */
	u64 bytes, written;
	bool is_one_write;
};

static DEFINE_MUTEX(lock);
static LIST_HEAD(all);
static LIST_HEAD(ready);
static DEFINE_SPINLOCK(ready_lock);
static struct task_struct *waiter;
/* The sockets that were ready at the last check, and the number of those that were served since */
static struct served *batch[BATCH];
static int batch_count, batch_next;
static struct traffic_count counts[TRAFFIC_MAX_FLOWS];
static struct traffic_digest seen;
static struct { u32 port, byte, copies; } losses[MAX_LOSSES];
static int loss_count;
/* The sequence number of the first byte of the flow to each port, from its SYN */
static u32 first_byte[PORTS];
/* Whether a batch is being served, and whether a flow ended in this batch */
static bool is_serving, has_finished;
static int broken_errno;
static void *block;

static u64 now(void)
{
	struct timespec64 t;

	ktime_get_ts64(&t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* Charges the virtual time of a system call that would block. */
static void charge(void)
{
	udelay(1);
	schedule();
}

/* Called when a socket may have become ready. */
static int on_wake(wait_queue_entry_t *wait, unsigned int mode, int sync, void *key)
{
	struct served *s = container_of(wait, struct served, wait);
	__poll_t events = key_to_poll(key);
	unsigned long flags;

	spin_lock_irqsave(&ready_lock, flags);
	if (!events || events & s->events) {
		if (list_empty(&s->ready))
			list_add_tail(&s->ready, &ready);
		if (waiter)
			wake_up_process(waiter);
	}
	spin_unlock_irqrestore(&ready_lock, flags);
	return 1;
}

/* Joins the wait queue of a socket, as poll() does. */
struct joining {
	poll_table table;
	struct served *served;
};

static void join(struct file *file, wait_queue_head_t *head, poll_table *table)
{
	struct served *s = container_of(table, struct joining, table)->served;

	/* Sockets have one queue */
	if (!s->head) {
		s->head = head;
		add_wait_queue(head, &s->wait);
	}
}

static bool is_ready(struct served *s, poll_table *table)
{
	table->_key = s->events;
	return vfs_poll(s->file, table) & s->events;
}

/* Sets the events to wait for, and queues the socket if it is ready. */
static void set_events(struct served *s, __poll_t events, poll_table *table)
{
	unsigned long flags;

	s->events = events | EPOLLERR | EPOLLHUP;
	if (!is_ready(s, table))
		return;
	spin_lock_irqsave(&ready_lock, flags);
	if (list_empty(&s->ready))
		list_add_tail(&s->ready, &ready);
	spin_unlock_irqrestore(&ready_lock, flags);
}

/* Stops serving a descriptor and frees its state. */
static void release(struct served *s)
{
	unsigned long flags;

	if (s->head)
		remove_wait_queue(s->head, &s->wait);
	spin_lock_irqsave(&ready_lock, flags);
	list_del(&s->ready);
	spin_unlock_irqrestore(&ready_lock, flags);
	list_del(&s->all);
	for (int i = batch_next; i < batch_count; i++)
		if (batch[i] == s)
			batch[i] = NULL;
	fput(s->file);
	if (s->out)
		fput(s->out);
	kfree(s);
}

/* Serves a descriptor from now on. The caller has set the other fields; `s` is freed if this fails. */
static int serve(struct served *s, int fd, __poll_t events)
{
	struct joining joining = { .served = s };
	int err = -EBADF;

	s->fd = fd;
	s->file = fget(fd);
	if (!s->file)
		goto refused;
	err = -ENOTSOCK;
	s->socket = sock_from_file(s->file);
	if (!s->socket)
		goto refused;
	INIT_LIST_HEAD(&s->ready);
	init_waitqueue_func_entry(&s->wait, on_wake);
	list_add_tail(&s->all, &all);
	init_poll_funcptr(&joining.table, join);
	set_events(s, events, &joining.table);
	return 0;

refused:
	if (s->file)
		fput(s->file);
	if (s->out)
		fput(s->out);
	kfree(s);
	return err;
}

/* Writes this number of zero bytes. */
static int write_zeros(struct served *s, u64 bytes)
{
	struct msghdr message = { .msg_flags = MSG_NOSIGNAL | MSG_DONTWAIT };
	u64 parts;
	struct kvec one, *vector = &one;
	int sent;

	bytes = min_t(u64, bytes, MAX_RW_COUNT);
	parts = DIV_ROUND_UP_ULL(bytes, BLOCK);
	if (parts > 1)
		vector = kvmalloc_array(parts, sizeof(*vector), GFP_KERNEL);
	if (!vector)
		return -ENOMEM;
	for (u64 i = 0; i < parts; i++) {
		vector[i].iov_base = block;
		vector[i].iov_len = min_t(u64, BLOCK, bytes - i * BLOCK);
	}
	iov_iter_kvec(&message.msg_iter, ITER_SOURCE, vector, parts, bytes);
	sent = sock_sendmsg(s->socket, &message);
	if (vector != &one)
		kvfree(vector);
	return sent;
}

static int serve_sender(struct served *s)
{
	poll_table none = {};
	int sent;

	while (!s->bytes || s->written < s->bytes) {
		u64 left = s->bytes - s->written;

		sent = write_zeros(s, s->is_one_write || (s->bytes && left < BLOCK) ? left : BLOCK);
		if (sent < 0) {
			charge();
			if (sent == -EAGAIN)
				return 0;
			broken_errno = -sent;
			return TRAFFIC_BROKEN;
		}
		s->written += sent;
	}
	set_events(s, 0, &none);
	return 0;
}

static int serve_receiver(struct served *s)
{
	struct traffic_count *count = &counts[s->name];
	struct msghdr message;
	int got;

	for (;;) {
		message = (struct msghdr) {};
		got = kernel_recvmsg(s->socket, &message, NULL, 0, 1 << 24, MSG_TRUNC | MSG_DONTWAIT);
		if (got <= 0)
			break;
		count->delivered += got;
	}
	if (got < 0)
		charge();
	if (s->bytes && count->delivered >= s->bytes && count->finish == TRAFFIC_NEVER) {
		count->finish = now();
		has_finished = true;
	}
	return 0;
}

static void mix(const void *data, size_t length)
{
	for (const u8 *p = data; length; length--, p++)
		seen.digest = (seen.digest ^ *p) * 0x100000001b3ULL;
}

/* Reads a packet's timestamp, the only control message of its socket. */
static u64 time_of(const struct cmsghdr *control, size_t length)
{
	struct __kernel_old_timespec t;

	if (length < CMSG_LEN(sizeof(t)) || control->cmsg_type != SO_TIMESTAMPNS_OLD)
		return 0;
	memcpy(&t, CMSG_DATA(control), sizeof(t));
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static int serve_hash(struct served *s)
{
	u8 bytes[SNAP], control[128] __aligned(__alignof__(struct cmsghdr));
	struct kvec part = { bytes, sizeof(bytes) };
	struct msghdr message;
	u64 time;
	s64 length;

	for (;;) {
		message = (struct msghdr) { .msg_control = control, .msg_controllen = sizeof(control) };
		length = kernel_recvmsg(s->socket, &message, &part, 1, sizeof(bytes), MSG_TRUNC | MSG_DONTWAIT);
		if (length < 0) {
			charge();
			return 0;
		}
		time = time_of((void *)control, sizeof(control) - message.msg_controllen);
		mix(&time, sizeof(time));
		mix(&length, sizeof(length));
		mix(bytes, min_t(size_t, length, SNAP));
		seen.packets++;
	}
}

/* Returns whether an IPv4 packet is to be lost, and counts the loss. */
static bool is_lost(const u8 *packet, size_t length)
{
	struct iphdr ip;
	struct tcphdr tcp;
	size_t header;
	u32 payload;
	u16 port;

	if (length < sizeof(ip))
		return false;
	memcpy(&ip, packet, sizeof(ip));
	header = ip.ihl * 4;
	if (ip.version != 4 || ip.protocol != IPPROTO_TCP || length < header + sizeof(tcp))
		return false;
	memcpy(&tcp, packet + header, sizeof(tcp));
	payload = ntohs(ip.tot_len) - header - tcp.doff * 4;
	port = ntohs(tcp.dest);
	if (tcp.syn)
		first_byte[port] = ntohl(tcp.seq) + 1;
	for (int i = 0; i < loss_count; i++) {
		if (losses[i].port != port || !losses[i].copies)
			continue;
		if (losses[i].byte - (ntohl(tcp.seq) - first_byte[port]) < payload) {
			losses[i].copies--;
			return true;
		}
	}
	return false;
}

static int serve_way(struct served *s)
{
	const size_t before = sizeof(struct virtio_net_hdr) + sizeof(struct ethhdr);
	struct socket *out = sock_from_file(s->out);
	static u8 packet[BLOCK];

	for (;;) {
		struct kvec part = { packet, sizeof(packet) };
		struct msghdr message = {};
		int length = kernel_recvmsg(s->socket, &message, &part, 1, sizeof(packet), MSG_DONTWAIT), sent;

		if (length < 0) {
			charge();
			return length == -EAGAIN ? 0 : length;
		}
		if (length > before && is_lost(packet + before, length - before))
			continue;
		message = (struct msghdr) { .msg_flags = MSG_DONTWAIT };
		part = (struct kvec) { packet, length };
		sent = kernel_sendmsg(out, &message, &part, 1, length);
		if (sent != length)
			return sent < 0 ? sent : -EIO;
	}
}

static int serve_watch(struct served *s)
{
	return TRAFFIC_READ;
}

/* Fills the batch with sockets that are still ready. They stay in the list, and the next call checks them again. */
static int look(void)
{
	struct served *s, *next;
	poll_table none = {};
	LIST_HEAD(looked_at);

	batch_count = batch_next = 0;
	spin_lock_irq(&ready_lock);
	list_splice_init(&ready, &looked_at);
	spin_unlock_irq(&ready_lock);
	list_for_each_entry_safe(s, next, &looked_at, ready) {
		if (batch_count == BATCH)
			break;
		list_del_init(&s->ready);
		if (!is_ready(s, &none))
			continue;
		batch[batch_count++] = s;
		spin_lock_irq(&ready_lock);
		list_add_tail(&s->ready, &ready);
		spin_unlock_irq(&ready_lock);
	}
	spin_lock_irq(&ready_lock);
	list_splice(&looked_at, &ready);
	spin_unlock_irq(&ready_lock);
	return batch_count;
}

/* Sleeps until a socket is ready, or until a number of nanoseconds has passed. */
static int sleep_until_ready(u64 nanoseconds)
{
	bool has_timed_out = !nanoseconds;
	struct timespec64 end;
	ktime_t expires;

	poll_select_set_timeout(&end, nanoseconds / NSEC_PER_SEC, nanoseconds % NSEC_PER_SEC);
	expires = timespec64_to_ktime(end);
	for (;;) {
		if (!list_empty(&ready) && look())
			return 0;
		if (has_timed_out)
			return 0;
		if (signal_pending(current))
			return -EINTR;
		WRITE_ONCE(waiter, current);
		set_current_state(TASK_INTERRUPTIBLE);
		if (list_empty(&ready))
			has_timed_out = !schedule_hrtimeout_range(&expires, current->timer_slack_ns, HRTIMER_MODE_ABS);
		__set_current_state(TASK_RUNNING);
		WRITE_ONCE(waiter, NULL);
	}
}

/* Serves sockets until `until`, the end of a flow, or an event that the program has to handle. */
static int wait_and_serve(struct traffic_wait *w)
{
	int err;

	for (;;) {
		if (!is_serving) {
			err = sleep_until_ready(w->until > w->time ? w->until - w->time : 0);
			if (err)
				return err;
			is_serving = true;
		}
		while (batch_next < batch_count) {
			struct served *s = batch[batch_next++];
			int reason = s ? s->serve(s) : 0;

			if (reason < 0)
				return reason;
			if (reason) {
				w->reason = reason;
				w->name = s->name;
				w->error = broken_errno;
				return 0;
			}
			cond_resched();
		}
		is_serving = false;
		batch_count = batch_next = 0;
		w->time = now();
		if (has_finished || w->time >= w->until) {
			has_finished = false;
			w->reason = TRAFFIC_TIME;
			return 0;
		}
	}
}

static struct served *find(int fd, int (*serve)(struct served *s))
{
	struct served *s;

	list_for_each_entry(s, &all, all)
		if (s->fd == fd && (!serve || s->serve == serve))
			return s;
	return NULL;
}

static int serve_end(const struct traffic_end *end, int (*serve_it)(struct served *s), __poll_t events)
{
	struct served *s;

	if (end->flow >= TRAFFIC_MAX_FLOWS)
		return -ERANGE;
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	s->serve = serve_it;
	s->name = end->flow;
	s->bytes = end->bytes;
	s->is_one_write = end->is_one_write;
	return serve(s, end->fd, events);
}

/* Lets the ends of an open connection carry a further flow. */
static int serve_next(const struct traffic_next *next)
{
	struct served *sender = find(next->sender, serve_sender), *receiver = find(next->receiver, serve_receiver);
	poll_table none = {};

	if (next->flow >= TRAFFIC_MAX_FLOWS)
		return -ERANGE;
	if (!sender || !receiver)
		return -ENOENT;
	sender->name = receiver->name = next->flow;
	sender->bytes = receiver->bytes = next->bytes;
	sender->written = 0;
	set_events(sender, EPOLLOUT, &none);
	return 0;
}

static int serve_other(int fd, u32 name, int (*serve_it)(struct served *s), int out)
{
	struct served *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return -ENOMEM;
	s->serve = serve_it;
	s->name = name;
	if (serve_it == serve_way) {
		s->out = fget(out);
		if (!s->out || !sock_from_file(s->out)) {
			if (s->out)
				fput(s->out);
			kfree(s);
			return -ENOTSOCK;
		}
	}
	return serve(s, fd, EPOLLIN);
}

static int add_loss(const struct traffic_loss *loss)
{
	if (loss->port >= PORTS)
		return -ERANGE;
	if (loss_count == MAX_LOSSES)
		return -ENOSPC;
	losses[loss_count].port = loss->port;
	losses[loss_count].byte = loss->byte;
	losses[loss_count++].copies = loss->copies;
	return 0;
}

static int forget(int fd)
{
	struct served *s = find(fd, NULL);

	if (!s)
		return -ENOENT;
	release(s);
	return 0;
}

static int drain(int fd)
{
	struct served *s = find(fd, serve_hash);

	return s ? s->serve(s) : -ENOENT;
}

/* The argument of each call */
union argument {
	struct traffic_end end;
	struct traffic_next next;
	struct traffic_way way;
	struct traffic_loss loss;
	struct traffic_watch watch;
	struct traffic_wait wait;
	struct traffic_counts counts;
	struct traffic_digest digest;
	__s32 fd;
};

static long called(unsigned int call, union argument *a)
{
	switch (call) {
	case TRAFFIC_SEND:
		return serve_end(&a->end, serve_sender, EPOLLOUT);
	case TRAFFIC_RECEIVE:
		return serve_end(&a->end, serve_receiver, EPOLLIN);
	case TRAFFIC_NEXT:
		return serve_next(&a->next);
	case TRAFFIC_HASH:
		return serve_other(a->fd, 0, serve_hash, -1);
	case TRAFFIC_CARRY:
		return serve_other(a->way.in, 0, serve_way, a->way.out);
	case TRAFFIC_LOSE:
		return add_loss(&a->loss);
	case TRAFFIC_WATCH:
		return serve_other(a->watch.fd, a->watch.name, serve_watch, -1);
	case TRAFFIC_FORGET:
		return forget(a->fd);
	case TRAFFIC_WAIT:
		return wait_and_serve(&a->wait);
	case TRAFFIC_COUNTS:
		if (a->counts.flows > TRAFFIC_MAX_FLOWS)
			return -ERANGE;
		return copy_to_user((void __user *)a->counts.count, counts, a->counts.flows * sizeof(*counts)) ? -EFAULT : 0;
	case TRAFFIC_DRAIN:
		return drain(a->fd);
	case TRAFFIC_DIGEST:
		a->digest = seen;
		return 0;
	}
	return -ENOTTY;
}

static long traffic_ioctl(struct file *file, unsigned int call, unsigned long data)
{
	void __user *user = (void __user *)data;
	size_t size = _IOC_SIZE(call);
	union argument a;
	long result;

	if (_IOC_TYPE(call) != 'T' || size > sizeof(a))
		return -ENOTTY;
	if (_IOC_DIR(call) & _IOC_WRITE && copy_from_user(&a, user, size))
		return -EFAULT;
	if (mutex_lock_interruptible(&lock))
		return -EINTR;
	result = called(call, &a);
	mutex_unlock(&lock);
	if (!result && _IOC_DIR(call) & _IOC_READ && copy_to_user(user, &a, size))
		return -EFAULT;
	return result;
}

static int traffic_open(struct inode *inode, struct file *file)
{
	int err = 0;

	mutex_lock(&lock);
	if (block)
		err = -EBUSY;
	else if (!(block = kvzalloc(BLOCK, GFP_KERNEL)))
		err = -ENOMEM;
	if (!err) {
		for (int i = 0; i < TRAFFIC_MAX_FLOWS; i++)
			counts[i] = (struct traffic_count) { 0, TRAFFIC_NEVER };
		seen = (struct traffic_digest) { 0, 0xcbf29ce484222325ULL };
		loss_count = 0;
	}
	mutex_unlock(&lock);
	return err;
}

static int traffic_release(struct inode *inode, struct file *file)
{
	struct served *s, *next;

	mutex_lock(&lock);
	list_for_each_entry_safe(s, next, &all, all)
		release(s);
	is_serving = has_finished = false;
	batch_count = batch_next = 0;
	kvfree(block);
	block = NULL;
	mutex_unlock(&lock);
	return 0;
}

static const struct proc_ops operations = {
	.proc_open = traffic_open,
	.proc_release = traffic_release,
	.proc_ioctl = traffic_ioctl,
};

static int __init traffic_init(void)
{
	return proc_create("traffic", 0600, NULL, &operations) ? 0 : -ENOMEM;
}
late_initcall(traffic_init);
