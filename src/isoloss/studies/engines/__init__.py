"""Engines: where cohorts are trained. ``local`` uses this machine's cores or devices."""
