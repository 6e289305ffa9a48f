"""Everything of the library audited, by every layer, in one report."""
