/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The scavenger's twin. After the settings, it reads one event per line: `open MSS`, `ack AT_US RTT_US SRTT_US
 * SEGMENTS`, `state N`, `undo`. Each answer is the window, the threshold, the gain, the stage, and TCP's window. Socket
 * options that were set are lines of their own before it.
 */
#include "../programs/scavenger.bpf.c"

int main(void)
{
	struct sock *sk = &connection.inet_conn.icsk_inet.sk;
	struct scavenger *it = state_of(sk);
	char word[16];
	long long a, b, c, d;

	read_settings((void *)&settings, sizeof settings);
	sk->__sk_common.skc_family = AF_INET;
	connection.is_cwnd_limited = 1;
	while (scanf("%15s", word) == 1) {
		if (!strcmp(word, "open") && scanf("%lld", &a) == 1) {
			connection.mss_cache = (u32)a;
			scavenger_init(sk);
		} else if (!strcmp(word, "ack") && scanf("%lld %lld %lld %lld", &a, &b, &c, &d) == 4) {
			struct rate_sample sample = { .rtt_us = b, .acked_sacked = (u32)d };

			connection.tcp_mstamp = a;
			connection.srtt_us = (u32)c << 3;
			connection.snd_una += (u32)d * connection.mss_cache;
			scavenger_acknowledged(sk, 0, 0, &sample);
		} else if (!strcmp(word, "state") && scanf("%lld", &a) == 1) {
			scavenger_state(sk, (u8)a);
		} else if (!strcmp(word, "undo")) {
			scavenger_undo(sk);
		} else {
			return 2;
		}
		printf("%llu %llu %u %u %u\n", it->cwnd_q16 >> 16, it->ssthresh_bytes, it->gain, it->stage, connection.snd_cwnd);
	}
	(void)scavenger_ssthresh(sk);
	scavenger_release(sk);
	return 0;
}
