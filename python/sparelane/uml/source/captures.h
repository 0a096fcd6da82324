/* Packet sockets at devices: for a digest of all packets, for captures as pcap files, and for forwarding. */
#ifndef CAPTURES_H
#define CAPTURES_H

/* Opens a socket for every packet at a device of this namespace, for the digest. Returns its number, or -1. */
int captures_watch(const char *device);

/* Like captures_watch, but writes every packet to the file captureN, with N counted from 0. */
int captures_write(const char *device);

/* Opens a socket that receives the packets that arrive at a device, and can send from it. Returns the socket, or -1. */
int captures_carry(const char *device);

/* Returns the socket with this number. */
int captures_socket(int number);

/* Writes the packets that wait at the socket of a capture. */
void captures_read(int number);

/* Reads the remaining packets, closes captures, and writes the number of packets and the digest. Returns 0, or -1. */
int captures_finish(const char *path, int traffic);

#endif
