"""The three presets, as data inside the wheel."""
