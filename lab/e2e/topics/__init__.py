"""What is tested, topic by topic: a module with `run`, and a line in `topic_list`."""
