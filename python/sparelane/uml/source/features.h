/*
 * Features of network devices, as `ethtool -K` sets them.
 */
#ifndef FEATURES_H
#define FEATURES_H

/* Turns "tso" or "gro" on or off at a device of this namespace. Returns 0, or -1 with errno set. */
int features_set(const char *device, const char *name, int is_on);

#endif
