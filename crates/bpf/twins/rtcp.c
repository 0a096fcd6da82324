/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * RTCP's twin. After the settings, it reads one event per line: `open AT_US MSS`, `ack AT_US RTT_US SEGMENTS`, `state
 * N`; `wrote BYTES`, `priority N` and `port N` to classify the flow; `watch UNTIL_NS` and `clock NS` for the lease of
 * watchers. Each answer is the connection's state, the number of recorded samples, and the end of the lease.
 */
#include "../programs/rtcp.bpf.c"

int main(void)
{
	struct sock *sk = &connection.inet_conn.icsk_inet.sk;
	struct rtcp *rtcp = private_of(sk);
	char word[16];
	long long a, b, c;

	connection.snd_cwnd_clamp = ~0U;
	read_settings((void *)&settings, sizeof settings);
	while (scanf("%15s", word) == 1) {
		if (!strcmp(word, "open") && scanf("%lld %lld", &a, &b) == 2) {
			connection.tcp_mstamp = a;
			connection.mss_cache = (u32)b;
			rtcp_init(sk);
		} else if (!strcmp(word, "ack") && scanf("%lld %lld %lld", &a, &b, &c) == 3) {
			struct rate_sample sample = { .rtt_us = b, .acked_sacked = (u32)c };

			connection.tcp_mstamp = a;
			rtcp_acknowledged(sk, 0, 0, &sample);
		} else if (!strcmp(word, "state") && scanf("%lld", &a) == 1) {
			rtcp_state(sk, (u8)a);
		} else if (!strcmp(word, "wrote") && scanf("%lld", &a) == 1) {
			connection.write_seq = (u32)a;
		} else if (!strcmp(word, "priority") && scanf("%lld", &a) == 1) {
			sk->sk_priority = (u32)a;
		} else if (!strcmp(word, "port") && scanf("%lld", &a) == 1) {
			sk->__sk_common.skc_num = (u16)a;
		} else if (!strcmp(word, "watch") && scanf("%lld", &a) == 1) {
			watchers = (u64)a;
		} else if (!strcmp(word, "clock") && scanf("%lld", &a) == 1) {
			connection.tcp_clock_cache = (u64)a;
		} else {
			return 2;
		}
		printf("%llu %llu %llu %u %u %llu %llu %llu\n", rtcp->cwnd_bytes, rtcp->counter_q16, rtcp->congestion_kb_q16,
		       rtcp->delay_us, connection.snd_cwnd, weight_of(sk)->bytes_q16 >> 16,
		       samples_told, watchers);
	}
	rtcp_release(sk);
	(void)rtcp_ssthresh(sk);
	(void)rtcp_undo(sk);
	return 0;
}
