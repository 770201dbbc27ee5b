"""The webhook in real pods: on a cluster that is given, or on a single node of our own."""
