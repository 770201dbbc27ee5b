"""The parts of `check`: manifests as reviews, what each policy says of them, and the forms in which that is printed."""
