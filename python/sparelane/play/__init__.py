"""The playground: the simulator in a page of the browser, which `make web` builds and `sparelane play` serves."""
