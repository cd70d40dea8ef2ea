"""Figures: rows and analyses to charts in one style; measures nothing."""
