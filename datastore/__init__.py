"""The history: what was published, kept. The stores arrive with temporal operators."""
