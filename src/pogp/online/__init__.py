"""The parts of `OnlineGP`: members, weights, bands, and retuning in slices."""
