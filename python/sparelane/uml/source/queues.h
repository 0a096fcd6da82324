/* Counters of queue disciplines: sampled while flows run, and read completely at the end. */
#pragma once
#include <stdint.h>
#include <stdio.h>

/* Adds the output queue of a device of this namespace to `queues_sample`. Returns nonzero on failure. */
int queues_follow(const char *device);

/* Writes a row for each sampled queue: time_ns, number, queued bytes and packets, and sent bytes and packets. */
int queues_sample(FILE *out, uint64_t time);

/* Appends a row with COLUMNS for each queue discipline of this namespace to a file. */
int queues_count(const char *path, const char *namespace);
#define COLUMNS "namespace,device,kind,parent,sent_bytes,sent_packets,drops,marks,queued_packets"
