"""The cost of a review, beside other servers, and when reviews, policies and workers grow."""
