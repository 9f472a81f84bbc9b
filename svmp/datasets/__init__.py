"""Generated data sets, one file each. The same arguments give the same bits."""

from svmp.datasets.netflix import netflix_shaped

__all__ = ["netflix_shaped"]
