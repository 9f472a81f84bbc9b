"""Calls that run fits: svmp.fit, several starts, online steps, calibration."""
