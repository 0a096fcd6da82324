"""Linux itself beside our controllers, in virtual time; needs the kernel of `sparelane linux build`."""
