"""The updater of each variable, chosen before the run."""
