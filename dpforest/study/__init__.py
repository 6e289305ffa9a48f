"""Experiments and pictures: programs of the library's users, which nothing else in it needs."""
