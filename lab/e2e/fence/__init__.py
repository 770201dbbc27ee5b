"""The fence, tested on real API servers: controllers that lose their lease and go on writing."""
