"""Lossless datacentres: priority-based flow control, DCQCN (SIGCOMM 2015), HPCC (SIGCOMM 2019), and RC3 in them."""
