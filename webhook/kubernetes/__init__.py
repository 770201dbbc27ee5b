"""The Kubernetes API: field errors, formats, versions, objects, reviews, stamps. No I/O, no clock, no policy."""
