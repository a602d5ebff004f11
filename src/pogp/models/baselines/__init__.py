"""The methods that POG is compared with."""
