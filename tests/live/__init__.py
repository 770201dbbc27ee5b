"""The live timeline: what is seen, what is sent, who may read it, and the server as a command."""
