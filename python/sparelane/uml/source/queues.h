/* What the kernel counts at queues: sampled while flows run, and read in full at the end. */
#pragma once
#include <stdint.h>
#include <stdio.h>

/* Remembers the output queue of a device of the present namespace, for `queues_sample`. Nonzero: there is none. */
int queues_follow(const char *device);

/* Writes a line for each queue that is followed: time_ns, its number, bytes and packets in it, and those that it sent. */
int queues_sample(FILE *out, uint64_t time);

/* Adds a line for each discipline of the present namespace to a file: the namespace's name, then what COLUMNS says. */
int queues_count(const char *path, const char *namespace);
#define COLUMNS "namespace,device,kind,parent,sent_bytes,sent_packets,drops,marks,queued_packets"
