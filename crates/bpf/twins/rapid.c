/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * RAPID's twin. After the settings, it reads one event per line:
 * - `open MSS`, `depart NOW_NS DUE_NS NEXT`, `ack UNA SENT_US RECEIVED_US SACKED NEXT`, `state N` and `undo` are events
 *   of a connection. The answer is its rate, its estimate, the numbers of judged and skipped p-streams, the next gap,
 *   the pacing rate and the window.
 * - `sample SENT_US RECEIVED_US BPS`, `estimate` and `forget` are calls of the estimator. The answer is the estimate
 *   and the number of samples.
 */
#include "../programs/rapid.bpf.c"

int main(void)
{
	struct sock *sk = &connection.inet_conn.icsk_inet.sk;
	struct rapid *rapid = state_of(sk);
	char word[16];
	long long a, b, c, d, e;

	_Static_assert(sizeof(struct rapid) <= sizeof stored, "the state of a connection does not fit");
	setvbuf(stdout, NULL, _IOLBF, 0);
	read_settings((void *)&settings, sizeof settings);
	connection.data_segs_out = UNPACED_SEGMENTS;
	connection.tcp_usec_ts = 1;
	while (scanf("%15s", word) == 1) {
		u64 estimate = 0;
		int of_estimator = 1;

		if (!strcmp(word, "sample") && scanf("%lld %lld %lld", &a, &b, &c) == 3) {
			add_sample(&rapid->estimator, a * 1000, b * 1000, c);
		} else if (!strcmp(word, "estimate")) {
			estimate = estimate_bps(&rapid->estimator, &rapid->estimator_settings);
		} else if (!strcmp(word, "forget")) {
			forget(&rapid->estimator);
		} else {
			of_estimator = 0;
		}
		if (of_estimator) {
			printf("%llu %u\n", estimate, rapid->estimator.count);
			continue;
		}
		if (!strcmp(word, "open") && scanf("%lld", &a) == 1) {
			connection.mss_cache = (u32)a;
			rapid_init(sk);
		} else if (!strcmp(word, "depart") && scanf("%lld %lld %lld", &a, &b, &c) == 3) {
			connection.tcp_clock_cache = a;
			connection.tcp_wstamp_ns = b;
			connection.snd_nxt = (u32)c;
			rapid_departs(sk);
		} else if (!strcmp(word, "ack") && scanf("%lld %lld %lld %lld %lld", &a, &b, &c, &d, &e) == 5) {
			struct rate_sample sample = { .rtt_us = 1, .acked_sacked = 1 };

			connection.snd_una = (u32)a;
			connection.rx_opt.rcv_tsecr = (u32)b;
			connection.rx_opt.rcv_tsval = (u32)c;
			connection.sacked_out = (u32)d;
			connection.snd_nxt = (u32)e;
			rapid_acknowledged(sk, 0, 0, &sample);
		} else if (!strcmp(word, "state") && scanf("%lld", &a) == 1) {
			rapid_state(sk, (u8)a);
		} else if (!strcmp(word, "undo")) {
			rapid_undo(sk);
		} else {
			return 2;
		}
		printf("%llu %llu %llu %llu %llu %lu %u\n", rapid->rate_bps, rapid->estimate_bps, rapid->judged, rapid->skipped,
		       rapid->next_gap_ns, sk->sk_pacing_rate, connection.snd_cwnd);
	}
	(void)rapid_ssthresh(sk);
	rapid_release(sk);
	return 0;
}
