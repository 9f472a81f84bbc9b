"""What follows from q: predictions for new and missing rows, joint draws, and prior draws.

The rows to predict are declared as a network of their own. Nothing in it is fitted: parents are
drawn from q, elements that the fit does not know from their prior given drawn parents, and no row
pulls on its parents.
"""
