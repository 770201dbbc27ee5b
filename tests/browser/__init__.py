"""The calls of a page to the commands, without a browser."""
