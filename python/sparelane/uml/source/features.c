/*
 * Sets features of network devices by ioctl, so that `ethtool` need not be installed on the host.
 */
#include "features.h"
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int features_set(const char *device, const char *name, int is_on)
{
	struct ethtool_value value = { .data = is_on };
	struct ifreq request = { .ifr_data = (void *)&value };
	int fd, status;

	if (!strcmp(name, "tso"))
		value.cmd = ETHTOOL_STSO;
	else if (!strcmp(name, "gro"))
		value.cmd = ETHTOOL_SGRO;
	else {
		errno = EINVAL;
		return -1;
	}
	strncpy(request.ifr_name, device, sizeof request.ifr_name - 1);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	status = fd < 0 ? -1 : ioctl(fd, SIOCETHTOOL, &request);
	if (fd >= 0)
		close(fd);
	return status;
}
