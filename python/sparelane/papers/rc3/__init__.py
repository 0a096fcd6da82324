"""Mittal, Sherry, Ratnasamy, Shenker: Recursively Cautious Congestion Control. NSDI 2014; HotNets 2013; slides."""
