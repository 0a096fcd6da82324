/*
 * Carries packets between two devices of a namespace, both ways, and loses chosen segments of flows on the way.
 */
#ifndef LOSSES_H
#define LOSSES_H

#include <stdint.h>

/* What comes to one device of this namespace leaves by another from now on. Returns the number of this way, or -1. */
int losses_carry(const char *from, const char *to);

/* The socket to poll for a number. */
int losses_socket(int number);

/* The segment that has this byte of the flow to this port, from 0, is lost so many times. Returns 0, or -1. */
int losses_plan(int port, uint32_t byte, unsigned copies);

/* Carries the packets that are waiting there. Returns 0, or -1. */
int losses_read(int number);

#endif
