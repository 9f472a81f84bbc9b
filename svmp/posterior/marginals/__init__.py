"""The posterior of each variable, as users read it."""
