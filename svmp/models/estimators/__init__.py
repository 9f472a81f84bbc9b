"""Estimators with the conventions of scikit-learn, each a declaration of a network."""
