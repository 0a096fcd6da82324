/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Fixed-point mathematics, as programs in the kernel have no floating point. Q32 has 32 bits behind the point.
 */
#ifndef SPARELANE_FIXED_H
#define SPARELANE_FIXED_H

#include "kernel.h"

#define ONE_Q32 (1ULL << 32)
/* ln 2, and log2(e) - 1. */
#define LN2_Q32 2977044472ULL
#define LOG2E_LESS_ONE_Q32 1901360723ULL
/* e^-x is nothing in Q32 from here on. */
#define LARGEST_EXPONENT_Q32 (23ULL << 32)

/* -ln v for v in (0, 1], to about 1e-9: v = m 2^-n with m in (1/2, 1], and ln m by the series of atanh. */
static ALWAYS_INLINE u64 minus_ln_q32(u64 v_q32)
{
	u64 m = v_q32, shifts = 0, z, square, sum;

	if (m == 0)
		return LARGEST_EXPONENT_Q32;
	if (m >= ONE_Q32)
		return 0;
	if (m <= ONE_Q32 >> 16) { m <<= 16; shifts += 16; }
	if (m <= ONE_Q32 >> 8) { m <<= 8; shifts += 8; }
	if (m <= ONE_Q32 >> 4) { m <<= 4; shifts += 4; }
	if (m <= ONE_Q32 >> 2) { m <<= 2; shifts += 2; }
	if (m <= ONE_Q32 >> 1) { m <<= 1; shifts += 1; }
	z = ((ONE_Q32 - m) << 31) / ((ONE_Q32 + m) >> 1);
	square = (z * z) >> 32;
	sum = ONE_Q32 / 19;
	sum = ONE_Q32 / 17 + ((sum * square) >> 32);
	sum = ONE_Q32 / 15 + ((sum * square) >> 32);
	sum = ONE_Q32 / 13 + ((sum * square) >> 32);
	sum = ONE_Q32 / 11 + ((sum * square) >> 32);
	sum = ONE_Q32 / 9 + ((sum * square) >> 32);
	sum = ONE_Q32 / 7 + ((sum * square) >> 32);
	sum = ONE_Q32 / 5 + ((sum * square) >> 32);
	sum = ONE_Q32 / 3 + ((sum * square) >> 32);
	sum = ONE_Q32 + ((sum * square) >> 32);
	return shifts * LN2_Q32 + 2 * ((z * (sum >> 1)) >> 31);
}

/* e^-x, to about 1e-9: 2^-n e^-f with f below ln 2, by Taylor's series. */
static ALWAYS_INLINE u64 exp_minus_q32(u64 x_q32)
{
	u64 power, f, sum = ONE_Q32;

	if (x_q32 >= LARGEST_EXPONENT_Q32)
		return 0;
	power = x_q32 + (x_q32 >> 32) * LOG2E_LESS_ONE_Q32 + (((x_q32 & (ONE_Q32 - 1)) * LOG2E_LESS_ONE_Q32) >> 32);
	f = ((power & (ONE_Q32 - 1)) * LN2_Q32) >> 32;
	sum = ONE_Q32 - ((f * sum) >> 32) / 12;
	sum = ONE_Q32 - ((f * sum) >> 32) / 11;
	sum = ONE_Q32 - ((f * sum) >> 32) / 10;
	sum = ONE_Q32 - ((f * sum) >> 32) / 9;
	sum = ONE_Q32 - ((f * sum) >> 32) / 8;
	sum = ONE_Q32 - ((f * sum) >> 32) / 7;
	sum = ONE_Q32 - ((f * sum) >> 32) / 6;
	sum = ONE_Q32 - ((f * sum) >> 32) / 5;
	sum = ONE_Q32 - ((f * sum) >> 32) / 4;
	sum = ONE_Q32 - ((f * sum) >> 32) / 3;
	sum = ONE_Q32 - ((f * sum) >> 32) / 2;
	sum = ONE_Q32 - ((f * sum) >> 32);
	return sum >> (power >> 32);
}

/* a b / 2^16, for a up to 2^48 and b up to 2^31, without overflow. */
static ALWAYS_INLINE u64 scaled_q16(u64 a, u64 b_q16)
{
	return (a >> 16) * b_q16 + (((a & 0xffff) * b_q16) >> 16);
}

#endif
