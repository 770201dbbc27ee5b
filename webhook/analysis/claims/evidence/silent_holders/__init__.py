"""Evidence that a holder did not renew its lease, and the causes of that."""
