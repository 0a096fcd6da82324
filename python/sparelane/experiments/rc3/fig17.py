"""NSDI 2014, Fig. 17: strict priority in a queue that two hosts share."""

from sparelane.experiments.rc3.priorities import HIGH, LOW, Place, experiment

EXPERIMENT = experiment(
    17,
    "Priority queueing in the switch",
    "Mittal et al., NSDI 2014, section 5.2, Fig. 17",
    "from two hosts to one, through a switch whose port is the narrowest place; the paper's is an Arista, ours is a "
    "router of Linux",
    Place(
        pairs={HIGH: ("left0", "right0"), LOW: ("left1", "right0")},
        settings=(
            "topology.access_rate={more}Gbps",
            "topology.bottleneck_rate={rate}Gbps",
            "queue.limit=1000packets",
        ),
    ),
)
