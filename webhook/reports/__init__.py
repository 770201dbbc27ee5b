"""What a command found, as plain data, and the formats in which other programs read it."""
