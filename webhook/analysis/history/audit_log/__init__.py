"""What an audit log shows beside what was stored: who asked, what was refused, and what it lacks."""
