"""The requests of an audit log: who made them, which were refused, and where the log has gaps."""
