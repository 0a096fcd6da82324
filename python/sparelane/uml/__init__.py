"""Scenarios on the real Linux TCP, in virtual time: User-Mode Linux, built from the distribution's source package."""
