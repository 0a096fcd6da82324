/*
 * Watches packets at devices: a digest of all that are watched, and captures as pcap files.
 */
#ifndef CAPTURES_H
#define CAPTURES_H

/* From now on every packet at a device of this namespace enters the digest. Returns the number, or -1. */
int captures_watch(const char *device);

/* Writes every packet at a device of this namespace into the file captureN instead, from N = 0 on. */
int captures_write(const char *device);

/* The socket to poll for a number. */
int captures_socket(int number);

/* Takes the packets that are waiting there. */
void captures_read(int number);

/* Takes what is left, closes the captures, and writes the count of packets and their digest. Returns 0, or -1. */
int captures_finish(const char *path);

#endif
