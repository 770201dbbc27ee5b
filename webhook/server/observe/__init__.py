"""What is recorded about verdicts: metrics, log lines, captures."""
