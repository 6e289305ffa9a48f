"""Speed, memory and scale: programs about the library, which are not part of it."""
