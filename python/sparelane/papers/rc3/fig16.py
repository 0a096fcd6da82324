"""NSDI 2014, Fig. 16: strict priority in the queue of a Linux host."""

from sparelane.papers.rc3.priorities import HIGH, LOW, Place, experiment

EXPERIMENT = experiment(
    16,
    "Priority queueing in the Linux host",
    "Mittal et al., NSDI 2014, section 5.2, Fig. 16",
    "from one host, whose own queue is the narrowest place",
    Place(
        pairs={HIGH: ("left0", "right0"), LOW: ("left0", "right0")},
        settings=("topology.access_rate={rate}Gbps", "topology.bottleneck_rate={more}Gbps"),
    ),
)
