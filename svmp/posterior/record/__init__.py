"""The data of a finished run, which are saved, printed and plotted."""
