"""The topics of the tests: a module with `run` for each, and a line in `topic_list`."""
