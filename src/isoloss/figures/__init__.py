"""Charts in one style, and their texts: what is measured elsewhere is drawn here."""
