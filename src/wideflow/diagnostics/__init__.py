"""Measurements: of finished runs, of a model before and after training, of networks across widths."""
