"""The public shape of what is counted and released: trees as a table of nodes, tables of crossed features."""
