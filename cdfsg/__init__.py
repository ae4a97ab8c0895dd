"""Replication suite for stochastic optimization over the generalized Stiefel manifold."""
