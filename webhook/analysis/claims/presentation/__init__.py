"""An account of a lease as text, as JSON, and as what to do now."""
