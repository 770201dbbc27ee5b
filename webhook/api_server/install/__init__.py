"""The objects of an installation, composed from what kustomize rendered in advance."""
