"""What a review costs, beside what others ship, and what it costs when reviews, policies and workers grow."""
