"""Declaring networks: models, dims, variables, expressions, conjugacy, Markov blankets."""
