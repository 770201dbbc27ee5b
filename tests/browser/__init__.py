"""What a page asks of the commands, without a browser."""
