"""One module per paper: its estimator, and nothing but the paper's own choices."""
