"""Models that choose their own scales and hyperparameters, once, and the methods by name."""
