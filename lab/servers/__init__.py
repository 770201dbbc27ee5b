"""Python's servers beside ours: what each does with clients that mean harm, and what a review costs."""
