"""What people look at: words, figures, notebooks and the report."""
