"""The objects of an installation, composed of what kustomize rendered ahead for each overlay and component."""
