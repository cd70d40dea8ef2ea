"""Training: settings and a run folder in, one record a member out; resuming is the same call.

Importing this package does not import torch; ``training.loop`` does.
"""
