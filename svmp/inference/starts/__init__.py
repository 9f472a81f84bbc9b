"""Starting values of q."""
