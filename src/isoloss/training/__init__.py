"""Training: settings in, one record a member out.

Importing this package does not import torch; ``training.loop`` does.
"""
