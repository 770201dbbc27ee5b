"""Rules about leader election: writes that kube-apiserver admits and that cost a leader its lease."""
