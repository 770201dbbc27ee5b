"""Rules that repeat what kube-apiserver validates itself, with its texts."""
