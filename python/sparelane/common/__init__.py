"""Building blocks without knowledge of simulations: names, units, folders, data frames, percentiles and extras."""
