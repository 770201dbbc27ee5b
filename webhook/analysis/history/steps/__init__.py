"""What an observation does to what is known of a lease, step by step."""
