"""How loops are compiled, cached and run: SIMD, threads, sorting, random streams."""
