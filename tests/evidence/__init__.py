"""What managedFields prove, tried on the field manager of the API server itself."""
