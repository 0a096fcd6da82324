/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The replacement of the kernel for a twin: a BPF program that is compiled for the host, and reads events from its
 * standard input.
 */
#ifndef SPARELANE_TWIN_H
#define SPARELANE_TWIN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONSTANT static
#define SEC(name)
#define ALWAYS_INLINE inline
#define NOT_INLINE static
#define MAP_NUMBER(name, number) int(*name)[number]
#define MAP_TYPE(name, kind) kind *name
#define BIT_FIELD(object, member) ((object)->member)

enum { BPF_MAP_TYPE_QUEUE, BPF_MAP_TYPE_SK_STORAGE, BPF_F_NO_PREALLOC, BPF_EXIST };

#define OPERATION1(kind, name, member, type1, a1) static kind name(type1 a1)
#define OPERATION2(kind, name, member, type1, a1, type2, a2) static kind name(type1 a1, type2 a2)
#define OPERATION4(kind, name, member, type1, a1, type2, a2, type3, a3, type4, a4)                                     \
	static kind name(type1 a1, type2 a2, type3 a3, type4 a4)

/* The only connection of a twin, and the program's storage for it. */
static struct tcp_sock connection;
static u64 stored[8192];

static inline u64 bpf_ktime_get_ns(void)
{
	return connection.tcp_clock_cache;
}

static inline long bpf_map_push_elem(void *map, const void *value, u64 flags)
{
	return 0;
}

static inline void *bpf_sk_storage_get(void *map, void *socket, void *value, u64 flags)
{
	return stored;
}

static inline long bpf_setsockopt(void *socket, int level, int name, void *value, int length)
{
	printf("option %d %d %d\n", level, name, *(int *)value);
	return 0;
}

/* Reads the constants in hexadecimal digits, byte for byte as the loader would set them. */
static inline void read_settings(void *settings, size_t bytes)
{
	for (size_t at = 0; at < bytes; at++) {
		unsigned int byte;

		if (scanf("%2x", &byte) != 1) {
			fprintf(stderr, "%zu of %zu bytes of settings\n", at, bytes);
			exit(2);
		}
		((unsigned char *)settings)[at] = (unsigned char)byte;
	}
}

#endif
