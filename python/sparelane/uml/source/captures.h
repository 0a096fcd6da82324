/* Packet sockets at devices: for a digest of all packets, for captures as pcap files, and to carry packets on. */
#ifndef CAPTURES_H
#define CAPTURES_H

/* Opens a socket for every packet at a device of this namespace, for the digest. Returns its number, or -1. */
int captures_watch(const char *device);

/* Writes every packet at a device of this namespace into the file captureN instead, from N = 0 on. */
int captures_write(const char *device);

/* Opens a socket that takes what comes to a device, and sends from it what it is given. Returns the socket, or -1. */
int captures_carry(const char *device);

/* The socket of a number. */
int captures_socket(int number);

/* Writes the packets that wait at a capture. */
void captures_read(int number);

/* Takes what is left, closes the captures, and writes the count of packets and their digest. Returns 0, or -1. */
int captures_finish(const char *path, int traffic);

#endif
