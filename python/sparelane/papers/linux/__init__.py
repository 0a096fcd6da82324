"""Comparisons of our controllers with those of Linux. They need the kernel that `sparelane linux build` builds."""
