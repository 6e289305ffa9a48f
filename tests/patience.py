"""How long tests wait: nothing is red by the clock, on a machine as busy as may be, except what hangs."""

PATIENCE = 900  # seconds
