"""What the example scripts share: models of configs/models, steps and their marks."""
