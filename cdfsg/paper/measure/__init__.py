"""What is measured besides runs: the cost of a step, the data sets."""
