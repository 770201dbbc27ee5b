"""The second law: whatever others wrote before, an honest write that is stored without us is stored with us."""
