"""What the papers' learners share: parameters, the run of a fit, growing, sharing records, boosting."""
